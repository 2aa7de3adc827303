"""Comments in a config.pbtxt that suppress findings: `# tritongen: ignore[TG371]`, on the line of the finding or on the line above it.

Other words may stand in the comment, before and behind.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tritongen.check.selection import matching_codes, unknown_code
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.rules.rule import Consequence

_LISTED = re.compile(r"\btritongen\s*:?\s*ignore\s*\[(?P<words>[^\]]*)\]", re.IGNORECASE)
_UNLISTED = re.compile(r"#\s*tritongen\s*:\s*ignore\b(?P<words>)", re.IGNORECASE)
_MARK = b"tritongen"
_MOST = 1_000
"""Suppressions of one file that are listened to; no person writes more."""

_LONGEST_LINE = 10_000


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
    found: list[Suppression] = []
    waiting: list[Suppression] = []
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if not line.lstrip().startswith("#"):
            found += [dataclasses.replace(one, lines=one.lines | {number}) for one in waiting]
            waiting = []
        elif len(found) + len(waiting) >= _MOST:
            continue
        comment = _comment(line)
        if comment is not None:
            start, listed = comment
            place = Location(path, number, start + 1, line)
            words = [word.strip() for word in listed.split(",") if word.strip()] or [""]
            here = [Suppression(matching_codes(word) if word else frozenset(), word, place, frozenset({number})) for word in words]
            # On a line of its own a comment also covers the next line that is no comment.
            (waiting if not line[:start].strip() else found).extend(here)
        if len(found) >= _MOST:
            break
    return tuple([*found, *waiting][:_MOST])


def _comment(line: str) -> tuple[int, str] | None:
    """Where the comment with a suppression begins, and its words; None where a line has none. A `#` in a string begins no comment."""
    if "tritongen" not in line.lower() or len(line) > _LONGEST_LINE:
        return None
    start = _comment_start(line)
    # Without a list of codes only a comment of its own is meant, and no sentence that speaks of such comments.
    match = (_LISTED.search(line, start) or _UNLISTED.search(line, start)) if start >= 0 else None
    return (line.rindex("#", 0, match.start() + 1), match["words"]) if match else None


def _comment_start(line: str) -> int:
    """The offset of the first `#` outside of strings; -1 where there is none."""
    quote, position = "", 0
    while position < len(line):
        char = line[position]
        if quote and char == "\\":
            position += 1
        elif char == quote:
            quote = ""
        elif char in "\"'" and not quote:
            quote = char
        elif char == "#" and not quote:
            return position
        position += 1
    return -1


def unused(suppressions: Iterable[Suppression], used: Collection[Suppression], judged: Collection[str], model: str) -> list[Diagnostic]:
    """What is wrong with suppressions: words that stand for nothing, and those that suppressed nothing although all their codes were looked for.

    `used` are those that did suppress a finding, `judged` the codes that this run looked for in the model.
    """
    found = []
    looked_for = frozenset(judged)
    for suppression in suppressions:
        if not suppression.codes:
            found.append(_wrong_word(suppression, model))
        elif suppression not in used and suppression.codes <= looked_for:
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
