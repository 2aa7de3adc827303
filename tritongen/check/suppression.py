"""Comments in a config.pbtxt that suppress findings: `# tritongen: ignore[TG371]`, on the line of the finding or on the line above it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tritongen.check.selection import matching_codes, unknown_code
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.rules.rule import Consequence

_COMMENT = re.compile(r"#\s*tritongen\s*:\s*ignore\b\s*(?P<list>\[(?P<words>[^\]]*)\])?", re.IGNORECASE)
_MARK = b"tritongen"
# A `#` inside a string begins no comment: what comes before it is pieces that are no quote, or whole strings.
_BEFORE = re.compile(r"""(?:[^"'#]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*""")


@dataclass(frozen=True)
class Suppression:
    """One word of a comment.

    Attributes:
        codes: what the word stands for; empty where it stands for nothing.
        word: as it is written; "" where the comment has no list.
        location: where the comment is.
        lines: the lines it covers.
    """

    codes: frozenset[str]
    word: str
    location: Location
    lines: frozenset[int]

    def covers(self, diagnostic: Diagnostic) -> bool:
        """Whether it suppresses this finding."""
        place = diagnostic.location
        return place is not None and place.path == self.location.path and (place.line or 1) in self.lines and diagnostic.code in self.codes


def read_suppressions(text: bytes, path: str) -> tuple[Suppression, ...]:
    """Every suppression in a config's text."""
    if _MARK not in text.lower():
        return ()
    lines = text.decode("utf-8", "replace").splitlines()
    found: list[Suppression] = []
    for index, line in enumerate(lines):
        before = _BEFORE.match(line)
        match = _COMMENT.match(line, before.end()) if before else None
        if match is None:
            continue
        place = Location(path, index + 1, match.start() + 1, line)
        covered = {index + 1, _next_code_line(lines, index)} if not line[: match.start()].strip() else {index + 1}
        words = [word.strip() for word in (match["words"] or "").split(",") if word.strip()] or [""]
        found += [Suppression(matching_codes(word) if word else frozenset(), word, place, frozenset(covered)) for word in words]
    return tuple(found)


def _next_code_line(lines: list[str], index: int) -> int:
    """The number of the next line that holds more than a comment."""
    for number in range(index + 1, len(lines)):
        if not lines[number].lstrip().startswith("#"):
            return number + 1
    return index + 1


def unused(suppressions: Iterable[Suppression], used: Collection[Suppression], judged: Collection[str], model: str) -> list[Diagnostic]:
    """What is wrong with suppressions: words that stand for nothing, and those that suppressed nothing although all their codes were looked for.

    `used` are those that did suppress a finding, `judged` the codes that this run looked for in the model.
    """
    found = []
    for suppression in suppressions:
        if not suppression.codes:
            found.append(_wrong_word(suppression, model))
        elif suppression not in used and suppression.codes <= set(judged):
            message = f"nothing is suppressed by {suppression.word!r} here"
            hint = "remove it from the comment, or move the comment to the line of the finding or right above it"
            found.append(Diagnostic("TG074", message, suppression.location, Consequence.FRAGILE.words, hint, model, Severity.ADVICE))
    return found


def _wrong_word(suppression: Suppression, model: str) -> Diagnostic:
    if suppression.word:
        problem = unknown_code(suppression.word, "the comment names")
        message, hint = problem.message, problem.hint
    else:
        message, hint = "the comment does not say what to ignore", "name the codes: # tritongen: ignore[TG371]"
    return Diagnostic("TG074", message, suppression.location, Consequence.FRAGILE.words, hint, model, Severity.ADVICE)
