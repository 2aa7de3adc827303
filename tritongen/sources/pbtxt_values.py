"""Scalar values and names of a protobuf text, with what people write in their place: words without quotes, several words, templates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritongen.sources.pbtxt_tokens import BAD_NUMBER, CURLY_QUOTES, CURLY_STR, END, FLOAT, ID, INT, NUMBERS, OPEN_STR, OTHER, STR, STRINGS, TEMPLATE, Token
from tritongen.sources.pbtxt_tree import MAX_EDITS, WORD, Edit, Fault, FaultKind, Items, Scalar
from tritongen.sources.text import SourceText

_ENDS_A_WORD = frozenset((",", ";", ":", "{", "}", "[", "]", "<", ">", STR, CURLY_STR, END))
BEHIND_A_NAME = frozenset(":{[<=")
MAX_FAULTS = 300
"""A text with more mistakes than this is given up on: it is another kind of text, or made to keep a reader busy."""

_GLUED = re.compile(r"(0|[1-9][0-9]*)([A-Za-z_][A-Za-z0-9_]*)")
_SHOWN = 40


class ScalarReader:
    """The tokens of a text, the place among them, and the readers of what is no bracket."""

    def __init__(self, text: str, tokens: list[Token], faults: list[Fault]) -> None:
        self.text = text
        self.tokens = tokens
        self.faults = faults
        self.index = 0
        self.stopped = False
        self.lines = SourceText("", text)

    def stop(self) -> None:
        """Gives up on the rest of the text."""
        self.stopped = True
        # Several ends, since a step may be about to skip a token or two behind the current one.
        self.tokens[self.index + 1 :] = [Token(END, len(self.text), len(self.text))] * 4

    def fault(self, kind: FaultKind, start: int, message: str, hint: str, *edits: Edit) -> None:
        """Notes one mistake."""
        if self.stopped:
            return
        self.faults.append(Fault(kind, start, message, hint, edits))
        if len(self.faults) >= MAX_FAULTS:
            self.stop()

    def place(self, offset: int) -> str:
        """Such as `line 3`."""
        return f"line {self.lines.line_index(offset) + 1}"

    def is_name(self, index: int) -> bool:
        """True where the token is a name with a colon or an opening bracket behind it, which only a field has."""
        return self.tokens[index].kind == ID and self.tokens[index + 1].kind in BEHIND_A_NAME

    def read_name(self) -> tuple[str, int, int]:
        """A field's name, its start and its end; `max-batch-size` and `a.b` are taken as one name."""
        _, start, end = self.tokens[self.index]
        self.index += 1
        while True:
            kind, joint, joint_end = self.tokens[self.index]
            if joint != end or not (kind == "-" or (kind == OTHER and self.text[joint] in "./")):
                break
            following = self.tokens[self.index + 1]
            if following.kind != ID or following.start != joint_end:
                break
            end = following.end
            self.index += 2
        return self.text[start:end], start, end

    def mend_colon(self) -> None:
        """What stands behind a name is `=`, `:=` or `::`; the index is behind its first character."""
        first = self.tokens[self.index - 1]
        end = first.end
        while self.tokens[self.index].kind in (":", "="):
            end = self.tokens[self.index].end
            self.index += 1
        written = self.text[first.start : end]
        hint = "write ':' between a name and its value"
        self.fault(FaultKind.PUNCTUATION, first.start, f"'{written}' stands where a colon should", hint, Edit(first.start, end, ":"))

    def value_without_colon(self, name_end: int) -> bool:
        """True where a value follows on the line of its name, without a colon."""
        kind, start, _ = self.tokens[self.index]
        if "\n" in self.text[name_end:start]:
            return False
        return kind in STRINGS or kind in NUMBERS or kind in ("-", TEMPLATE) or (kind == ID and not self.is_name(self.index))

    def holds_values(self, index: int) -> bool:
        """True where a number or a string follows that is no field's name in quotes."""
        kind = self.tokens[index].kind
        return kind in NUMBERS or kind == "-" or (kind in STRINGS and self.tokens[index + 1].kind not in (":", "=", "{"))

    def goes_on_as_list(self) -> bool:
        """True where more values follow one that has no brackets, as in `gpus: 0, 1` and `gpus: 0 1`."""
        comma = self.tokens[self.index].kind == ","
        return self.holds_values(self.index + comma) and (comma or self.tokens[self.index - 1].kind in NUMBERS)

    def read_bare_list(self, first: Scalar, *, in_list: bool) -> Items:
        """Values without brackets around them, or with the closing one alone."""
        items = Items(first.start, first.end, [first])
        edits = [Edit(first.start, first.start, "[")]
        while self.goes_on_as_list():
            if self.tokens[self.index].kind == ",":
                self.index += 1
            else:
                edits.append(Edit(items.end, items.end, ","))
            if (scalar := self.read_scalar()) is not None:
                items.items.append(scalar)
                items.end = scalar.end
        if self.tokens[self.index].kind == "]" and not in_list:
            self.index += 1
            message = "the list has no opening bracket"
        else:
            message = "several values have no brackets around them"
            edits.append(Edit(items.end, items.end, "]"))
            items.bare = True
        self.fault(FaultKind.PUNCTUATION, items.start, message, "write them as a list: [ ..., ... ]", *(edits if len(edits) <= MAX_EDITS else ()))
        return items

    def read_braced_list(self) -> Items | Scalar:
        """Values in braces, which should be brackets; a single one should have neither."""
        start = self.tokens[self.index].start
        items = Items(start, start, [])
        self.index += 1
        while self.holds_values(self.index):
            if (scalar := self.read_scalar()) is not None:
                items.items.append(scalar)
            if self.tokens[self.index].kind == ",":
                self.index += 1
        only = items.items[0] if len(items.items) == 1 else None
        edits: tuple[Edit, ...] = ()
        if self.tokens[self.index].kind == "}":
            items.end = self.tokens[self.index].end
            self.index += 1
            edits = (Edit(start, start + 1, "["), Edit(items.end - 1, items.end, "]"))
        if edits and only is not None:
            edits = tuple(self._without_blanks(start, only.start, only.end, items.end))
        hint = "write it without braces" if only is not None else "write a list in square brackets: [ ..., ... ]"
        self.fault(FaultKind.PUNCTUATION, start, "braces stand around plain values", hint, *edits)
        if not isinstance(only, Scalar):
            return items
        only.braces = (start, items.end) if edits else None
        return only

    def _without_blanks(self, *ends: int) -> Iterator[Edit]:
        """Edits that take braces away, with the blanks in them: from the first of four offsets to the second, and from the third to the fourth."""
        start, first, last, end = ends
        yield Edit(start, first if not self.text[start + 1 : first].strip() else start + 1, "")
        yield Edit(last if not self.text[last : end - 1].strip() else end - 1, end, "")

    def read_scalar(self) -> Scalar | None:
        """A string, a number or a word; None, with nothing read, where there is none."""
        kind, start, end = self.tokens[self.index]
        if kind in STRINGS:
            return self._read_string()
        if kind in ("-", "+") or kind in NUMBERS or kind in (ID, TEMPLATE, OTHER):
            return self._read_word(kind, start, end)
        return None

    def _read_string(self) -> Scalar:
        parts: list[tuple[int, int]] = []
        start = self.tokens[self.index].start
        while True:
            kind, first, last = self.tokens[self.index]
            if kind not in STRINGS:
                break
            closed = kind in (STR, CURLY_STR) or (last - first > 1 and self.text[last - 1] in CURLY_QUOTES)
            parts.append((first + 1, last - 1 if closed else last))
            self.index += 1
        content = "".join(self.text[first:last] for first, last in parts)
        return Scalar(STR, start, self.tokens[self.index - 1].end, content, parts=tuple(parts))

    def _read_word(self, kind: str, start: int, end: int) -> Scalar | None:
        """A number or a name, with all that clings to it."""
        self.index += 1
        if kind == "-":
            following, first, last = self.tokens[self.index]
            if following in (INT, FLOAT, BAD_NUMBER) or (following == ID and not self.is_name(self.index)):
                self.index += 1
                if not self._clings(last):
                    return Scalar(following, start, last, self.text[first:last], negative=True)
                end = last
        elif kind == BAD_NUMBER and (number := self._glued_number(start)) is not None:
            return number
        elif kind in (ID, INT, FLOAT, BAD_NUMBER) and not self._clings(end):
            if kind == ID and self._goes_on(end):
                end = self._rest_of_words(end)
                return Scalar(WORD, start, end, self.text[start:end])
            return Scalar(kind, start, end, self.text[start:end])
        has_template = kind == TEMPLATE
        while self._clings(end):
            has_template = has_template or self.tokens[self.index].kind == TEMPLATE
            if self.tokens[self.index].kind == OPEN_STR:
                # The quote at the end of a word whose opening quote is missing: a string, and noted as one already.
                self.index += 1
                return Scalar(STR, start, self.tokens[self.index - 1].end, self.text[start:end], parts=((start, end),))
            end = self.tokens[self.index].end
            self.index += 1
        if has_template:
            self.template(start, end)
            return Scalar(TEMPLATE, start, end, self.text[start:end])
        if kind in (OTHER, "-", "+") and end == start + 1:
            self.unexpected(start, end)
            return Scalar(TEMPLATE, start, end, "")
        end = self._rest_of_words(end)
        return Scalar(WORD, start, end, self.text[start:end])

    def _glued_number(self, start: int) -> Scalar | None:
        """The number in `8instance_group {`, where the blank before the next field is missing; that field's name becomes the next token."""
        word = self.tokens[self.index - 1]
        match = _GLUED.fullmatch(self.text, word.start, word.end)
        if match is None or self.tokens[self.index].kind not in BEHIND_A_NAME:
            return None
        end = match.end(1)
        message = f"a blank is missing between {match.group(1)} and {match.group(2)[:_SHOWN]}"
        self.fault(FaultKind.PUNCTUATION, end, message, "begin a new line there", Edit(end, end, "\n"))
        self.tokens.insert(self.index, Token(ID, end, word.end))
        return Scalar(INT, start, end, match.group(1))

    def _clings(self, end: int) -> bool:
        """True where the next token follows without a blank and can only be part of the same word."""
        token = self.tokens[self.index]
        return token.start == end and token.kind not in _ENDS_A_WORD

    def _goes_on(self, end: int) -> bool:
        """True where another word follows on the same line that is no field's name."""
        kind, start, _ = self.tokens[self.index]
        return kind in (ID, BAD_NUMBER, INT) and not self.is_name(self.index) and "\n" not in self.text[end:start]

    def _rest_of_words(self, end: int) -> int:
        while self._goes_on(end) or self._clings(end):
            end = self.tokens[self.index].end
            self.index += 1
        return end

    def template(self, start: int, end: int) -> None:
        """Notes a place of a template that was left open."""
        what = self.shown(start, end)
        self.fault(
            FaultKind.TEMPLATE, start, f"{what} is a place of a template that was not filled", "run the tool that fills the template, or write the value here"
        )

    def unexpected(self, start: int, end: int) -> None:
        """Notes text that means nothing where it stands."""
        if self.text[start] == "\0" or (self.text[start] < " "):
            self.fault(FaultKind.UNEXPECTED, start, f"a control character (0x{ord(self.text[start]):02x}) stands in the text", "remove it")
            return
        code = ord(self.text[start])
        if code > 126 and not self.text[start].isalnum() and end == start + 1:
            name = f"byte 0x{code - 0xDC00:02x}, which is no UTF-8" if 0xDC80 <= code <= 0xDCFF else f"the character U+{code:04X}"
            hint = "write a plain blank" if self.text[start].isspace() else "remove it; outside of strings and comments only ASCII is allowed"
            edits = (Edit(start, end, " "),) if self.text[start].isspace() else ()
            self.fault(FaultKind.UNEXPECTED, start, f"{name} stands in the text", hint, *edits)
            return
        hint = "a config holds lines such as name: value; comments start with #"
        self.fault(FaultKind.UNEXPECTED, start, f"{self.shown(start, end)} means nothing here", hint)

    def shown(self, start: int, end: int) -> str:
        """A piece of the text in quotes, on one line, cut where it is long."""
        piece = " ".join(self.text[start : min(end, start + 4 * _SHOWN)].encode(errors="replace").decode().split())
        return f"'{piece}'" if len(piece) <= _SHOWN else f"'{piece[:_SHOWN]}...'"
