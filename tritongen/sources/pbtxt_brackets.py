"""Brackets of a protobuf text that do not match, and what was probably meant by them."""

from __future__ import annotations

import re

from tritongen.sources.pbtxt_tokens import END, TEMPLATE, Token
from tritongen.sources.pbtxt_tree import Edit, Fault, FaultKind
from tritongen.sources.pbtxt_values import BEHIND_A_NAME, ScalarReader

MAX_DEPTH = 48
"""Deeper nesting is given up on. C++ protobuf sets no limit, but no message of Triton's nests deeper than ten."""

CLOSERS = frozenset("}>]")
_INDENT = re.compile(r"[ \t]*")


class BracketReader(ScalarReader):
    """Adds to the reader of scalars the brackets that are open.

    `stack` holds, from the outside in, the closer that is waited for and where its opener is. `by_indent` takes a line that begins no further right than the
    line of an opener for the end of that bracket; whether that ever happened is `closed_by_indent`. `is_cut` tells that the tokens end before the text does.
    """

    def __init__(self, text: str, tokens: list[Token], faults: list[Fault], *, by_indent: bool, is_cut: bool) -> None:
        super().__init__(text, tokens, faults)
        self.by_indent = by_indent
        self.closed_by_indent = False
        self.stack: list[tuple[str, int]] = []
        self._end_reported = is_cut
        self._dedented_at = -1

    def is_too_deep(self, start: int) -> bool:
        """True, and the rest of the text given up on, where one more bracket would be one too many."""
        if len(self.stack) < MAX_DEPTH:
            return False
        message = f"brackets are nested more than {MAX_DEPTH} deep"
        self.fault(FaultKind.DEPTH, start, message, "no config of Triton's nests deeper than ten: check what wrote this file")
        self.stop()
        self._end_reported = True
        return True

    def closes_outside(self, kind: str, closer: str) -> bool:
        """Deals with a closer that is not the expected one; True where it belongs to an outer bracket, so that the current one is over."""
        start = self.tokens[self.index].start
        if any(outer == kind for outer, _ in self.stack[:-1]):
            opener = self.stack[-1][1]
            self.fault(FaultKind.BRACKET, opener, f"'{self.text[opener]}' is never closed: '{kind}' comes first, in {self.place(start)}", f"add the '{closer}'")
            return True
        if closer and self.tokens[self.index + 1].kind != closer:
            opener = self.stack[-1][1]
            message = f"'{kind}' closes what '{self.text[opener]}' opened in {self.place(opener)}"
            self.fault(FaultKind.BRACKET, start, message, f"write '{closer}'", Edit(start, start + 1, closer))
            self.tokens[self.index] = self.tokens[self.index]._replace(kind=closer)
            return False
        count = 0
        while self.tokens[self.index].kind in CLOSERS and self.tokens[self.index].kind != closer:
            count += 1
            self.index += 1
        what = f"'{kind}' closes nothing" if count == 1 else f"{count} closing brackets from here on close nothing"
        self.fault(FaultKind.BRACKET, start, what, "remove it, or look for the bracket above that was closed too early")
        return False

    def report_unclosed_at_end(self, closer: str) -> None:
        """Notes brackets that are open where the text ends: once, since one closer that is missing leaves all around it open."""
        if not closer or self._end_reported:
            return
        self._end_reported = True
        opener = self.stack[-1][1]
        more = f" (nor {len(self.stack) - 1} around it)" if len(self.stack) > 1 else ""
        self.fault(FaultKind.BRACKET, opener, f"'{self.text[opener]}' is never closed{more}: the file ends first", f"add the '{closer}' where it belongs")

    def is_dedented(self, start: int) -> bool:
        """True where a line begins no further right than the line that opened the current bracket: then that bracket was to be closed before."""
        closer, opener = self.stack[-1]
        line = self.lines.line_start(self.lines.line_index(start))
        opener_line = self.lines.line_start(self.lines.line_index(opener))
        is_first = self.tokens[self.index - 1].end <= line
        if line == opener_line or not is_first or self.tokens[self.index + 1].kind not in BEHIND_A_NAME:
            return False
        indent = _INDENT.match(self.text, opener_line)
        assert indent is not None
        if start - line > indent.end() - opener_line:
            return False
        if self._dedented_at == start:
            return True  # the inner bracket of two on one line, `[ {`, was noted already
        self._dedented_at = start
        self.closed_by_indent = True
        self.fault(FaultKind.BRACKET, opener, f"'{self.text[opener]}' is not closed before {self.place(start)}", f"add the '{closer}'")
        return True

    def skip_to_field(self) -> None:
        """Goes to the next thing that looks like a field, or like the end of a bracket; one fault for all of it."""
        start = self.tokens[self.index].start
        while True:
            self.index += 1
            kind = self.tokens[self.index].kind
            if kind in (END, TEMPLATE) or kind in CLOSERS or self.is_name(self.index):
                break
        end = self.tokens[self.index - 1].end
        self.unexpected(start, end)

    def surplus_comma(self, comma: Token, what: str) -> None:
        """Notes a comma that separates nothing."""
        self.fault(FaultKind.PUNCTUATION, comma.start, what, "remove it", Edit(comma.start, comma.end, ""))
