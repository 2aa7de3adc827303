"""Protobuf text to a tree with positions, recovering from mistakes.

Knows the form of the text, and no field of any message. What C++ protobuf's `TextFormat` accepts gives a tree without faults; in everything else each mistake
gives one fault, and the tree holds what was probably meant. Whether names, types and numbers are right is for the caller to say.
"""

from __future__ import annotations

from operator import itemgetter

from tritongen.sources.pbtxt_brackets import CLOSERS, BracketReader
from tritongen.sources.pbtxt_mending import mend
from tritongen.sources.pbtxt_tokens import END, FOREIGN, ID, INT, STRINGS, TEMPLATE, Token, tokenize
from tritongen.sources.pbtxt_tree import MAX_EDITS, Edit, Fault, FaultKind, Field, Items, Message, ParsedPbtxt, Scalar, Value

_OPENERS = {"{": "}", "<": ">"}


def parse_fields(text: str) -> ParsedPbtxt:
    """Reads a text; never raises. Bytes that are no UTF-8 are expected as lone surrogates (`surrogateescape`)."""
    faults: list[Fault] = []
    tokens = tokenize(text)
    is_cut = tokens[-1].start < len(text)
    if not FOREIGN.isdisjoint(map(itemgetter(0), tokens)):
        tokens = mend(text, tokens, faults)
    parser = _Parser(text, tokens.copy(), faults.copy(), by_indent=False, is_cut=is_cut)
    fields = parser.read()
    if any(fault.kind is FaultKind.BRACKET for fault in parser.faults):
        # Where a bracket is missing, the indentation often tells which: read again with its help, and take the better of the two.
        other = _Parser(text, tokens, faults, by_indent=True, is_cut=is_cut)
        other_fields = other.read()
        if other.closed_by_indent and len(other.faults) <= len(parser.faults):
            parser, fields = other, other_fields
    return ParsedPbtxt(fields, tuple(sorted(parser.faults, key=lambda fault: fault.start)))


class _Parser(BracketReader):
    """A recursive descent over the tokens."""

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
            if kind == ID or self.is_quoted_name():
                if self.by_indent and closer and self.is_dedented(start):
                    return start
                fields.append(self.read_field() if kind == ID else self.read_quoted_name())
                if self.goes_on_as_list() and isinstance(value := fields[-1].value, Scalar):
                    fields[-1].value = self.read_bare_list(value, in_list=closer == "]")
                self.skip_separator()
            elif kind == closer:
                self.index += 1
                return end
            elif kind in CLOSERS:
                if self.closes_outside(kind, closer):
                    return start
            elif kind == END:
                self.report_unclosed_at_end(closer)
                return start
            else:
                self.skip_unexpected(fields)

    def skip_separator(self) -> None:
        """One comma or semicolon may stand behind any field."""
        if self.tokens[self.index].kind in (",", ";"):
            self.index += 1

    def is_quoted_name(self) -> bool:
        """True where a string is followed by what only follows a field's name."""
        return self.tokens[self.index].kind in STRINGS and self.tokens[self.index + 1].kind in (":", "=", "{")

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
        elif kind not in ("{", "[", "<") and not self.value_without_colon(end):
            return Field(name, start, end, colon, None)
        return Field(name, start, end, colon, self.read_value(end))

    def read_value(self, name_end: int) -> Value | None:
        """The value behind a name: a message, a list, a scalar; None where there is none."""
        kind, start, _ = self.tokens[self.index]
        if kind in _OPENERS:
            return self.read_braced_list() if self.holds_values(self.index + 1) else self.read_message()
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
        if self.is_too_deep(start):
            return Message(start, start, fields)
        closer = _OPENERS[kind]
        self.stack.append((closer, start))
        end = self.read_fields(fields, closer)
        self.stack.pop()
        return Message(start, end, fields)

    def read_items(self) -> Items:
        start = self.tokens[self.index].start
        self.index += 1
        items = Items(start, start, [])
        if self.is_too_deep(start):
            return items
        self.stack.append(("]", start))
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
        missing: list[int] = []
        expecting = True
        separator: Token | None = None
        while True:
            kind, start, end = self.tokens[self.index]
            if kind in (",", ";"):
                if not expecting:
                    separator = self.tokens[self.index]
                self.read_separator(kind, expecting)
                expecting = True
            elif kind == "]":
                if expecting and separator is not None:
                    self.surplus_comma(separator, "a comma before the closing bracket of a list")
                self.index += 1
                items.end = end
                break
            elif kind == END or kind in CLOSERS or self.is_name(self.index):
                if self.list_is_over(kind, items):
                    break
            else:
                if not expecting:
                    missing.append(self.tokens[self.index - 1].end)
                if kind == INT and self.tokens[self.index + 1].kind in (",", "]"):
                    items.items.append(Scalar(INT, start, end, self.text[start:end]))  # long lists are lists of numbers
                    self.index += 1
                else:
                    self.read_item(items)
                expecting = False
        if missing:
            count = "a comma is" if len(missing) == 1 else f"{len(missing)} commas are"
            edits = [Edit(place, place, ",") for place in missing] if len(missing) <= MAX_EDITS else []
            self.fault(FaultKind.PUNCTUATION, missing[0], f"{count} missing between items of the list", "separate the items by commas", *edits)

    def read_separator(self, kind: str, expecting: bool) -> None:
        """A comma in a list, or a semicolon in its place."""
        token = self.tokens[self.index]
        if expecting:
            self.surplus_comma(token, "a comma with no item before it")
        elif kind == ";" and self.tokens[self.index + 1].kind != "]":
            self.fault(FaultKind.PUNCTUATION, token.start, "items of a list are separated by commas", "write ','", Edit(token.start, token.end, ","))
        self.index += 1

    def list_is_over(self, kind: str, items: Items) -> bool:
        """Deals with what cannot be an item: another bracket's closer, the end of the text, a field. True where the list ends before it."""
        start = self.tokens[self.index].start
        if kind == END:
            self.report_unclosed_at_end("]")
            return True
        last = items.items[-1] if items.items else None
        if kind in CLOSERS:
            if self.tokens[self.index + 1].kind == "]" and isinstance(last, Message) and self.tokens[self.index - 1].end == last.end:
                self.fault(FaultKind.BRACKET, last.end - 1, f"the item is closed here, and once more in {self.place(start)}", "remove one of the two")
                self.index += 1
                return False
            return self.closes_outside(kind, "]")
        if self.by_indent and self.is_dedented(start):
            return True
        if not isinstance(last, Message):
            self.fault(FaultKind.BRACKET, items.start, f"'[' is not closed before {self.place(start)}", "add the ']'")
            return True
        self.reopen(last)
        return False

    def read_item(self, items: Items) -> None:
        kind, start, _ = self.tokens[self.index]
        if kind in _OPENERS:
            items.items.append(self.read_message())
        elif kind == "[":
            self.fault(FaultKind.PUNCTUATION, start, "a list stands in a list", "write one flat list: [1, 2, 3]")
            items.items.extend(self.read_items().items)
        elif (scalar := self.read_scalar()) is not None:
            items.items.append(scalar)
        else:
            self.skip_unexpected([])

    def reopen(self, message: Message) -> None:
        """Fields follow where a comma should: the brace that closed the item before them was one too many."""
        closer = message.end - 1
        where = self.place(self.tokens[self.index].start)
        self.fault(FaultKind.BRACKET, closer, f"the item is closed here, but more fields of it follow in {where}", "remove this bracket")
        self.stack.append((self.text[closer] if self.text[closer] in "}>" else "}", message.start))
        message.end = self.read_fields(message.fields, self.stack[-1][0])
        self.stack.pop()

    def skip_unexpected(self, fields: list[Field]) -> None:
        """Something that begins no field: says what it is, and goes on behind it."""
        kind, start, end = self.tokens[self.index]
        following = self.tokens[self.index + 1].kind if kind != END else END
        if kind in (",", ";"):
            self.fault(FaultKind.PUNCTUATION, start, f"'{kind}' separates nothing here", "remove it", Edit(start, end, ""))
            self.index += 1
            return
        if kind == TEMPLATE:
            self.template(start, end)
            self.index += 1
            if following in (":", "="):
                self.index += 1
                self.read_value(end)
        elif kind == "[":
            self.skip_extension()
        elif kind in _OPENERS:
            fields.extend(self.read_nameless(kind))
        else:
            self.skip_to_field()
        self.skip_separator()

    def read_quoted_name(self) -> Field:
        """A field whose name is in quotes, as in JSON."""
        _, start, end = self.tokens[self.index]
        self.tokens[self.index] = Token(ID, start, end)
        field = self.read_field()
        field.name, field.start, field.end, field.quoted = self.text[start + 1 : end - 1], start, end, True
        return field

    def read_nameless(self, kind: str) -> list[Field]:
        """Braces with no field's name before them, such as those of JSON around the whole text."""
        count = len(self.faults)
        message = self.read_message()
        edits: tuple[Edit, ...] = ()
        what, hint = "braces without a field's name before them", "write the name before them, or remove them"
        if not self.stack:
            what, hint = "braces around fields of the config itself", "remove them"
            if len(self.faults) == count and self.text[message.end - 1] == _OPENERS[kind]:
                edits = (Edit(message.start, message.start + 1, ""), Edit(message.end - 1, message.end, ""))
        self.fault(FaultKind.PUNCTUATION, message.start, what, hint, *edits)
        return message.fields

    def skip_extension(self) -> None:
        """`[package.name]: value`, which no message of Triton's has."""
        start = self.tokens[self.index].start
        message = "a field's name in brackets is an extension, and no message of Triton's has extensions"
        self.fault(FaultKind.EXTENSION, start, message, "write the field's plain name")
        self.index += 1
        while self.tokens[self.index].kind not in ("]", END):
            self.index += 1
        for kind in ("]", ":"):
            self.index += self.tokens[self.index].kind == kind
        self.read_value(self.tokens[self.index].start)
