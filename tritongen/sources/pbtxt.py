"""Protobuf text to a tree with positions, recovering from mistakes.

Knows the form of the text, and no field of any message. What C++ protobuf's `TextFormat` accepts gives a tree without faults; in everything else each mistake
gives one fault, and the tree holds what was probably meant. Whether names, types and numbers are right is for the caller to say.
"""

from __future__ import annotations

from tritongen.sources.pbtxt_mending import MENDED, mend
from tritongen.sources.pbtxt_tokens import END, ID, NUMBERS, STRINGS, TEMPLATE, tokenize
from tritongen.sources.pbtxt_tree import Edit, Fault, FaultKind, Field, Items, Message, ParsedPbtxt, Scalar, Value
from tritongen.sources.pbtxt_values import ScalarReader

MAX_DEPTH = 48
"""Deeper nesting is given up on. C++ protobuf sets no limit, but no message of Triton's nests deeper than ten."""

_OPENERS = {"{": "}", "<": ">"}
_CLOSERS = frozenset("}>]")
_BEHIND_A_NAME = frozenset(":{[<=")


def parse_fields(text: str) -> ParsedPbtxt:
    """Reads a text; never raises. Bytes that are no UTF-8 are expected as lone surrogates (`surrogateescape`)."""
    parser = _Parser(text, by_indent=False)
    fields = parser.read()
    if any(fault.kind is FaultKind.BRACKET for fault in parser.faults):
        # Where a bracket is missing, the indentation often tells which: read again with its help, and take the better of the two.
        other = _Parser(text, by_indent=True)
        other_fields = other.read()
        if other.closed_by_indent and len(other.faults) <= len(parser.faults):
            parser, fields = other, other_fields
    return ParsedPbtxt(fields, tuple(sorted(parser.faults, key=lambda fault: fault.start)))


class _Parser(ScalarReader):
    """A recursive descent over the tokens; `stack` holds, from the outside in, the closer that is waited for and where its opener is."""

    def __init__(self, text: str, *, by_indent: bool) -> None:
        faults: list[Fault] = []
        tokens = tokenize(text)
        if not MENDED.isdisjoint(token.kind for token in tokens):
            tokens = mend(text, tokens, faults)
        super().__init__(text, tokens, faults)
        self.by_indent = by_indent
        self.closed_by_indent = False
        self.stack: list[tuple[str, int]] = []
        self.stopped = False
        self.dedent = -1

    def read(self) -> list[Field]:
        """All fields of the text."""
        fields: list[Field] = []
        self.read_fields(fields, "")
        return fields

    def read_fields(self, fields: list[Field], closer: str) -> int:
        """Reads fields up to and with `closer`; returns the offset behind it."""
        tokens = self.tokens
        while True:
            kind, start, end = tokens[self.index]
            if kind == ID:
                if self.by_indent and closer and self.is_dedented(start):
                    return start
                fields.append(self.read_field())
                kind = tokens[self.index].kind
                if kind in (",", ";"):
                    self.index += 1
            elif kind == closer:
                self.index += 1
                return end
            elif kind in _CLOSERS:
                if self.closes_outside(kind, closer):
                    return start
            elif kind == END:
                self.report_unclosed_at_end(closer)
                return start
            else:
                self.skip_unexpected(fields)

    def closes_outside(self, kind: str, closer: str) -> bool:
        """Deals with a closer that is not the expected one; True where it belongs to an outer bracket, so that the current one is over."""
        start = self.tokens[self.index].start
        if any(outer == kind for outer, _ in self.stack[:-1]):
            opener = self.stack[-1][1]
            self.fault(FaultKind.BRACKET, opener, f"'{self.text[opener]}' is never closed: '{kind}' comes first, in {self.place(start)}", f"add the '{closer}'")
            return True
        if closer and kind != "]" and closer != "]":
            opener = self.stack[-1][1]
            message = f"'{kind}' closes what '{self.text[opener]}' opened in {self.place(opener)}"
            self.fault(FaultKind.BRACKET, start, message, f"write '{closer}'", Edit(start, start + 1, closer))
            self.tokens[self.index] = self.tokens[self.index]._replace(kind=closer)
            return False
        count = 0
        while self.tokens[self.index].kind in _CLOSERS and self.tokens[self.index].kind != closer:
            count += 1
            self.index += 1
        what = f"'{kind}' closes nothing" if count == 1 else f"{count} closing brackets from here on close nothing"
        self.fault(FaultKind.BRACKET, start, what, "remove it, or look for the bracket above that was closed too early")
        return False

    def report_unclosed_at_end(self, closer: str) -> None:
        if not closer or self.stopped:
            return
        self.stopped = True
        opener = self.stack[-1][1]
        more = f" (nor {len(self.stack) - 1} around it)" if len(self.stack) > 1 else ""
        self.fault(FaultKind.BRACKET, opener, f"'{self.text[opener]}' is never closed{more}: the file ends first", f"add the '{closer}' where it belongs")

    def is_dedented(self, start: int) -> bool:
        """True where a line begins no further right than the line that opened the current bracket: then that bracket was to be closed before."""
        if self.dedent == start:
            return True
        closer, opener = self.stack[-1]
        line = self.text.rfind("\n", 0, start) + 1
        opener_line = self.text.rfind("\n", 0, opener) + 1
        if line == opener_line or self.text[line:start].strip() or self.tokens[self.index + 1].kind not in _BEHIND_A_NAME:
            return False
        opener_text = self.text[opener_line:opener]
        if start - line > len(opener_text) - len(opener_text.lstrip()):
            return False
        self.dedent = start
        self.closed_by_indent = True
        self.fault(FaultKind.BRACKET, opener, f"'{self.text[opener]}' is not closed before {self.place(start)}", f"add the '{closer}'")
        return True

    def read_field(self) -> Field:
        """One field, from its name on."""
        name, start, end = self.read_name()
        tokens = self.tokens
        kind = tokens[self.index].kind
        colon = kind in (":", "=")
        if colon:
            self.index += 1
            if kind == "=" or tokens[self.index].kind in (":", "="):
                self.mend_colon()
            kind = tokens[self.index].kind
        elif kind not in ("{", "[", "<") and self.value_without_colon(end):
            self.fault(FaultKind.PUNCTUATION, end, f"a colon is missing behind '{name}'", f"write '{name}: ...'", Edit(end, end, ":"))
            colon = True
        elif kind not in ("{", "[", "<"):
            return Field(name, start, end, colon, None)
        return Field(name, start, end, colon, self.read_value(end))

    def read_value(self, name_end: int) -> Value | None:
        """The value behind a name: a message, a list, a scalar; None where there is none."""
        kind, start, _ = self.tokens[self.index]
        if kind in _OPENERS:
            return self.read_message()
        if kind == "[":
            return self.read_items()
        if kind == ID and self.is_name(self.index):
            if self.tokens[self.index + 1].kind in _OPENERS and not self.text[name_end:start].count("\n"):
                hint = "put it into braces: { ... }"
                self.fault(FaultKind.PUNCTUATION, start, f"'{self.text[start : self.tokens[self.index].end]}' is a field, and its braces are missing", hint)
                inner = self.read_field()
                return Message(start, start, [inner])
            return None
        return self.read_scalar()

    def read_message(self) -> Message:
        kind, start, _ = self.tokens[self.index]
        fields: list[Field] = []
        self.index += 1
        if len(self.stack) >= MAX_DEPTH:
            self.fault(
                FaultKind.DEPTH,
                start,
                f"brackets are nested more than {MAX_DEPTH} deep",
                "no config of Triton's nests deeper than ten: check what wrote this file",
            )
            self.stopped = True
            self.index = len(self.tokens) - 1
            return Message(start, start, fields)
        closer = _OPENERS[kind]
        self.stack.append((closer, start))
        end = self.read_fields(fields, closer)
        self.stack.pop()
        return Message(start, end, fields)

    def read_items(self) -> Items:
        start = self.tokens[self.index].start
        self.index += 1
        self.stack.append(("]", start))
        items = Items(start, start, [])
        if self.tokens[self.index].kind == "]":
            items.end = self.tokens[self.index].end
            self.index += 1
        elif self.is_name(self.index):
            self.fault(FaultKind.PUNCTUATION, start, "the list holds fields without braces around them", "put each item of the list into braces: [ { ... } ]")
            message = Message(self.tokens[self.index].start, start, [])
            items.items.append(message)
            items.end = message.end = self.read_fields(message.fields, "]")
        else:
            self.read_list(items)
        self.stack.pop()
        return items

    def read_list(self, items: Items) -> None:
        """Items with commas between them, up to and with the closing bracket."""
        missing: list[Edit] = []
        expecting = True
        while True:
            kind, start, end = self.tokens[self.index]
            if kind == "]":
                if expecting:
                    self.surplus_comma("a comma before the closing bracket of a list")
                self.index += 1
                items.end = end
                break
            if kind in (",", ";"):
                if kind == ";":
                    self.fault(FaultKind.PUNCTUATION, start, "items of a list are separated by commas", "write ','", Edit(start, end, ","))
                elif expecting:
                    self.surplus_comma("a comma with no item before it")
                expecting = True
                self.index += 1
            elif kind in _CLOSERS:
                if self.closes_outside(kind, "]"):
                    break
            elif kind == END:
                self.report_unclosed_at_end("]")
                break
            elif self.is_name(self.index):
                if self.by_indent and self.is_dedented(start):
                    break
                if not items.items or not isinstance(items.items[-1], Message):
                    self.fault(FaultKind.BRACKET, items.start, f"'[' is not closed before {self.place(start)}", "add the ']'")
                    break
                self.reopen(items.items[-1])
            else:
                if not expecting:
                    missing.append(Edit(self.tokens[self.index - 1].end, self.tokens[self.index - 1].end, ","))
                self.read_item(items)
                expecting = False
        if missing:
            count = "a comma is" if len(missing) == 1 else f"{len(missing)} commas are"
            self.fault(FaultKind.PUNCTUATION, missing[0].start, f"{count} missing between items of the list", "separate the items by commas", *missing)

    def read_item(self, items: Items) -> None:
        kind, start, _ = self.tokens[self.index]
        if kind in _OPENERS:
            items.items.append(self.read_message())
        elif kind == "[":
            self.fault(FaultKind.PUNCTUATION, start, "a list stands in a list", "write one flat list: [1, 2, 3]")
            if len(self.stack) < MAX_DEPTH:
                items.items.extend(self.read_items().items)
            else:
                self.index = len(self.tokens) - 1
                self.stopped = True
        elif (scalar := self.read_scalar()) is not None:
            items.items.append(scalar)
        else:
            self.skip_unexpected([])

    def reopen(self, message: Message) -> None:
        """Fields follow where a comma should: the brace that closed the item before them was one too many."""
        closer = message.end - 1
        self.fault(
            FaultKind.BRACKET,
            closer,
            f"'{self.text[closer]}' closes the item, but more fields of it follow in {self.place(self.tokens[self.index].start)}",
            "remove it",
        )
        self.stack.append((self.text[closer] if self.text[closer] in "}>" else "}", message.start))
        message.end = self.read_fields(message.fields, self.stack[-1][0])
        self.stack.pop()

    def surplus_comma(self, what: str) -> None:
        comma = self.tokens[self.index - 1] if self.tokens[self.index].kind == "]" else self.tokens[self.index]
        self.fault(FaultKind.PUNCTUATION, comma.start, what, "remove it", Edit(comma.start, comma.end, ""))

    def skip_unexpected(self, fields: list[Field]) -> None:
        """Something that begins no field: says what it is, and goes on behind it."""
        kind, start, end = self.tokens[self.index]
        following = self.tokens[self.index + 1].kind if kind != END else END
        if kind == TEMPLATE:
            self.template(start, end)
            self.index += 1
            if following in (":", "="):
                self.index += 1
                self.read_value(end)
        elif kind in STRINGS and following in (":", "="):
            content = self.text[start + 1 : end - 1]
            self.fault(
                FaultKind.QUOTE,
                start,
                f"the field's name {content} is in quotes",
                f"write {content} without quotes",
                Edit(start, start + 1, ""),
                Edit(end - 1, end, ""),
            )
            self.tokens[self.index] = self.tokens[self.index]._replace(kind=ID)
            fields.append(self.read_field())
            fields[-1].name, fields[-1].start = content, start
        elif kind == "[":
            self.fault(
                FaultKind.EXTENSION,
                start,
                "a field's name in brackets is an extension, and no message of Triton's has extensions",
                "write the field's plain name",
            )
            self.index += 1
            while self.tokens[self.index].kind not in ("]", END):
                self.index += 1
            self.index += self.tokens[self.index].kind == "]"
            self.index += self.tokens[self.index].kind == ":"
            self.read_value(self.tokens[self.index].start)
        elif kind in _OPENERS:
            self.fault(FaultKind.PUNCTUATION, start, "braces without a field's name before them", "write the name before them, or remove them")
            fields.extend(self.read_message().fields)
        elif kind in (",", ";"):
            self.fault(FaultKind.PUNCTUATION, start, f"'{kind}' separates nothing here", "remove it", Edit(start, end, ""))
            self.index += 1
        else:
            self.skip_to_field()

    def skip_to_field(self) -> None:
        """Goes to the next thing that looks like a field, or like the end of a bracket; one fault for all of it."""
        start = self.tokens[self.index].start
        while True:
            self.index += 1
            kind = self.tokens[self.index].kind
            if kind == END or kind in _CLOSERS or kind in NUMBERS and False or kind == TEMPLATE or self.is_name(self.index):
                break
        end = self.tokens[self.index - 1].end
        self.unexpected(start, end)
