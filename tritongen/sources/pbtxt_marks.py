"""What other tools put around and before the lines of a config that was copied out of them: fences of Markdown, and the marks of a patch.

Each of these would otherwise be one mistake a line. Protobuf text knows none of them: a text with one is refused, whatever else is in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from tritongen.sources.pbtxt_tokens import END, Token
from tritongen.sources.pbtxt_tree import MAX_EDITS, Edit, Fault, FaultKind

_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^`\n]*(?:\n|\Z)", re.MULTILINE)
_HEAD = re.compile(r"^(?:@@ [^\n]*|diff --git [^\n]*|index [0-9a-f]+\.\.[0-9a-f]+[^\n]*|(?:---|\+\+\+) [^\n]*)(?:\n|\Z)", re.MULTILINE)
_ADDED = re.compile(r"^\+(?![ \t]*[0-9.])", re.MULTILINE)
_REMOVED = re.compile(r"^-(?![ \t]*[0-9.])[^\n]*(?:\n|\Z)", re.MULTILINE)
_SURELY_A_PATCH = re.compile(r"^(?:@@ -[0-9]|diff --git |\+[ \t]*[A-Za-z_}\]\"']|-(?:[A-Za-z_][A-Za-z0-9_]*[ \t]*[:{\[<]|[ \t]*[}\]]))", re.MULTILINE)


def without_marks(text: str, tokens: list[Token], faults: list[Fault]) -> list[Token]:
    """The tokens without those of fences, of a patch's heads and removed lines, and without its plus signs; one fault for each of the two kinds."""
    spans = _fences(text, faults)
    if _SURELY_A_PATCH.search(text) is not None:
        spans += _patch(text, faults)
    if not spans:
        return tokens
    spans.sort()
    starts = [start for start, _ in spans]

    def is_marked(token: Token) -> bool:
        index = bisect_right(starts, token.start) - 1
        return index >= 0 and token.start < spans[index][1]

    return [token for token in tokens if token.kind == END or not is_marked(token)]


def _fences(text: str, faults: list[Fault]) -> list[tuple[int, int]]:
    spans = [match.span() for match in _FENCE.finditer(text)]
    if spans:
        more = f", here and in {len(spans) - 1} more" if len(spans) > 1 else ""
        message = f"a line that opens or closes a code block of Markdown stands in the text{more}"
        faults.append(Fault(FaultKind.UNEXPECTED, spans[0][0], message, "remove the whole line", _removed(spans)))
    return spans


def _patch(text: str, faults: list[Fault]) -> list[tuple[int, int]]:
    heads = [match.span() for match in _HEAD.finditer(text)]
    inside = {start for start, _ in heads}
    removed = [match.span() for match in _REMOVED.finditer(text) if match.start() not in inside]
    added = [match.span() for match in _ADDED.finditer(text) if match.start() not in inside]
    spans = [*heads, *removed, *added]
    first = min(start for start, _ in spans)
    hint = "take the marks out: the + of added lines, whole lines that begin with -, and heads such as @@; or apply the patch with `git apply`"
    # What a patch removes may have to stay: whether it is to be applied is not for us to say.
    edits = () if removed else _removed(spans)
    faults.append(Fault(FaultKind.UNEXPECTED, first, "the text is a patch: its lines begin with + and -", hint, edits))
    return spans


def _removed(spans: list[tuple[int, int]]) -> tuple[Edit, ...]:
    return tuple(Edit(start, end, "") for start, end in spans) if len(spans) <= MAX_EDITS else ()
