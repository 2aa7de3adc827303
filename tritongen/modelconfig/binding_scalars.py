"""Scalar values of a config's text to Python values, as C++ protobuf reads them, and what is wrong with those that it refuses."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from tritongen.modelconfig.fields import FieldTable, Kind
from tritongen.modelconfig.suggestions import example, meant_enum
from tritongen.sources.pbtxt_literals import floating, integer, string_content
from tritongen.sources.pbtxt_tokens import BAD_NUMBER, END, FLOAT, ID, INT, TEMPLATE, tokenize
from tritongen.sources.pbtxt_tree import WORD, Edit, Scalar

_TRUE, _FALSE = ("true", "True", "t"), ("false", "False", "f")
_LIKE_TRUE, _LIKE_FALSE = ("true", "yes", "on", "1", "1.0", "enabled", "y"), ("false", "no", "off", "0", "0.0", "disabled", "n")
_TEMPLATE = re.compile(r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|<[A-Za-z_][\w ]*>|@[A-Za-z_]\w*@")
_PLUS = re.compile(r"\+([0-9.]\S*)")
_PLAIN_WORDS = re.compile(r"[^\"\\\n]*")
_MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}
_LONGEST_SHOWN = 60
_FLOAT_MAX = float.fromhex("0x1.fffffep+127")
_ROUNDS_TO_FLOAT_MAX = 3.4028235677973366e38  # protobuf prints the greatest float as 3.4028235e+38, which is more, and must read it back

PLACE, QUOTES, TYPE, ENUM, NUMBER = "TG205", "TG204", "TG210", "TG211", "TG212"


@dataclass(slots=True)
class Finding:
    """One mistake in what the text means: the code, the offset, what is wrong, what to do, and the edits that mend it where only one meaning is possible."""

    code: str
    start: int
    message: str
    hint: str
    edits: tuple[Edit, ...] = ()


@dataclass(slots=True)
class ScalarBinder:
    """Reads scalars for fields and collects what is wrong with them."""

    text: str
    findings: list[Finding] = dataclass_field(default_factory=list)

    def find(self, code: str, start: int, message: str, hint: str, *edits: Edit) -> None:
        """Notes one finding."""
        self.findings.append(Finding(code, start, message, hint, edits))

    def read(self, field: FieldTable, scalar: Scalar) -> str | int | float | bool | None:
        """The value of a scalar for a field, or None where it has none; what is wrong is noted, and a value that was obviously meant is returned."""
        if scalar.kind == TEMPLATE:
            return None
        if field.kind is Kind.STRING:
            return self._string(field, scalar)
        if scalar.quoted:
            return self._unquoted(field, scalar)
        if scalar.kind == WORD and (match := _PLUS.fullmatch(scalar.content)) is not None and field.kind in (Kind.INT, Kind.FLOAT):
            first, following = tokenize(match.group(1))[:2]
            if following.kind == END:
                self.find(NUMBER, scalar.start, "a plus sign before a number", "write the number without it", Edit(scalar.start, scalar.start + 1, ""))
                return self.read(field, Scalar(first.kind, scalar.start + 1, scalar.end, match.group(1)))
        if field.kind is Kind.INT:
            return self._int(field, scalar)
        if field.kind is Kind.ENUM:
            return self._enum(field, scalar)
        if field.kind is Kind.BOOL:
            return self._bool(field, scalar)
        return self._float(field, scalar)

    def _string(self, field: FieldTable, scalar: Scalar) -> str:
        if not scalar.quoted:
            written = self.text[scalar.start : scalar.end]
            edits = (Edit(scalar.start, scalar.end, f'"{written}"'),) if _PLAIN_WORDS.fullmatch(written) else ()
            self.find(TYPE, scalar.start, f"'{field.name}' is text, and {show(written)} has no quotes", f'write {field.name}: "{written}"', *edits)
            return written.encode(errors="surrogateescape").decode(errors="replace")
        if "\\" not in scalar.content and scalar.content.isascii():
            return scalar.content
        content = b""
        for start, end in scalar.parts:
            part, invalid = string_content(self.text[start:end], start)
            content += part
            if invalid:
                what = self.text[invalid[0] : invalid[0] + 2]
                more = f", nor do {len(invalid) - 1} more in this string" if len(invalid) > 1 else ""
                hint = "write \\\\ for a backslash; escapes are \\n \\t \\r \\\" \\' \\\\ \\x41 \\101 \\u00e9 and the like"
                self.find(QUOTES, invalid[0], f"{what} begins no escape{more}", hint)
        return content.decode(errors="replace")

    def _unquoted(self, field: FieldTable, scalar: Scalar) -> str | int | float | bool | None:
        """A string where something else is due: the value in the quotes, if it is one."""
        if _TEMPLATE.search(scalar.content):
            self.find(PLACE, scalar.start, f"{show(scalar.content)} is a place of a template that was not filled", "fill it in, without quotes")
            return None
        inner = _inner(scalar)
        silent = ScalarBinder(self.text)
        value = silent.read(field, inner) if inner is not None else None
        what = f"'{field.name}' is {_article(field)}, and a string is given"
        if inner is not None and value is not None and not silent.findings:
            written = self.text[inner.start - inner.negative : inner.end] if not inner.negative else scalar.content.strip()
            self.find(TYPE, scalar.start, what, f"write {field.name}: {written} without quotes", Edit(scalar.start, scalar.end, written))
            return value
        if value is not None and field.kind is Kind.ENUM:
            meant = next(name for name, number in field.enum_values.items() if number == value)
            self.find(TYPE, scalar.start, what, f"write {field.name}: {meant} without quotes", Edit(scalar.start, scalar.end, meant))
            return value
        self.find(TYPE, scalar.start, what, f"write such as {field.name}: {example(field)}")
        return value

    def _int(self, field: FieldTable, scalar: Scalar) -> int | None:
        if scalar.kind == INT:
            value = -integer(scalar.content) if scalar.negative else integer(scalar.content)
            if field.low <= value <= field.high and not (scalar.negative and field.low == 0):
                return value
            hint = f"give a whole number from {field.low} to {field.high}"
            self.find(NUMBER, scalar.start, f"{self._written(scalar)} is out of the range of '{field.name}'", hint)
            return None
        if scalar.kind == FLOAT:
            number = floating(scalar.content)
            if number.is_integer() and field.low <= number <= field.high:
                value = -int(number) if scalar.negative else int(number)
                edit = Edit(scalar.start, scalar.end, str(value))
                self.find(
                    NUMBER, scalar.start, f"'{field.name}' is a whole number, and {self._written(scalar)} is written as a fraction", f"write {value}", edit
                )
                return value
        if scalar.kind in (FLOAT, BAD_NUMBER):
            return self._bad_number(field, scalar)
        self._wrong(field, scalar, f"give a whole number from {field.low} to {field.high}")
        return None

    def _bad_number(self, field: FieldTable, scalar: Scalar) -> int | None:
        word = scalar.content
        value: int | None = None
        hint = f"write such as {field.name}: {example(field)}"
        if re.fullmatch(r"[0-9]+(?:_[0-9]+)+", word) and word[0] != "0":
            value = int(word.replace("_", "")[:30])
            hint = f"write {value}, without underscores"
        elif re.fullmatch(r"0[0-9]+", word):
            value = int(word[:30])
            hint = f"a leading 0 makes a number octal; write {value} if it is decimal"
        elif re.fullmatch(r"0[bo][0-9]+", word):
            hint = "write the number in decimal or, with 0x, in hexadecimal digits"
        elif word in ("0x", "0X"):
            hint = "hexadecimal digits must follow the x"
        elif (match := re.fullmatch(r"([0-9]{1,15})([A-Za-z]+)", word)) is not None:
            hint = f"write the number alone, without '{match.group(2)}'"
            if field.name.endswith("_microseconds"):
                factor = _MICROSECONDS.get(match.group(2))
                hint = f"write {int(match.group(1)) * factor}, in microseconds" if factor else f"{hint}, in microseconds"
        what = "is a whole number" if field.kind is Kind.INT else "is a number"
        self.find(NUMBER, scalar.start, f"'{field.name}' {what}, and {self._written(scalar)} is none", hint)
        return value if value is not None and not scalar.negative and field.low <= value <= field.high else None

    def _enum(self, field: FieldTable, scalar: Scalar) -> int | None:
        if scalar.kind == ID and not scalar.negative:
            number = field.enum_values.get(scalar.content)
            if number is not None:
                return number
        elif scalar.kind == INT:
            number = -integer(scalar.content) if scalar.negative else integer(scalar.content)
            if -(2**31) <= number < 2**31:
                return number
            self.find(NUMBER, scalar.start, f"{self._written(scalar)} is no number of a {field.enum_name}", f"write a name, such as {example(field)}")
            return None
        written = self.text[scalar.start : scalar.end]
        guess = meant_enum(written, field)
        names = ", ".join(name for name in field.enum_values if name != "TYPE_INVALID")
        if guess is None:
            self.find(ENUM, scalar.start, f"{show(written)} is no value of '{field.name}'", f"it is one of {names}")
            return None
        name, sure = guess
        edits = (Edit(scalar.start, scalar.end, name),) if sure else ()
        self.find(ENUM, scalar.start, f"{show(written)} is no value of '{field.name}'", f"did you mean {name}?", *edits)
        return field.enum_values[name]

    def _bool(self, field: FieldTable, scalar: Scalar) -> bool | None:
        if not scalar.negative:
            if (scalar.kind == ID and scalar.content in _TRUE) or (scalar.kind == INT and integer(scalar.content) == 1):
                return True
            if (scalar.kind == ID and scalar.content in _FALSE) or (scalar.kind == INT and integer(scalar.content) == 0):
                return False
        word = self.text[scalar.start : scalar.end].casefold()
        value = True if word in _LIKE_TRUE else False if word in _LIKE_FALSE else None
        if value is None:
            self._wrong(field, scalar, "write true or false")
            return None
        name = "true" if value else "false"
        self.find(
            TYPE,
            scalar.start,
            f"'{field.name}' is true or false, and {self._written(scalar)} is neither",
            f"write {name}",
            Edit(scalar.start, scalar.end, name),
        )
        return value

    def _float(self, field: FieldTable, scalar: Scalar) -> float | None:
        value: float
        if scalar.kind in (INT, FLOAT) and not (scalar.kind == INT and len(scalar.content) > 1 and scalar.content[0] == "0"):
            value = floating(scalar.content)
            if field.single and _FLOAT_MAX < value <= _ROUNDS_TO_FLOAT_MAX:
                value = _FLOAT_MAX
        elif scalar.kind == ID and scalar.content.lower() in ("inf", "infinity"):
            value = math.inf
        elif scalar.kind == ID and scalar.content.lower() == "nan":
            value = math.nan
        elif scalar.kind == INT:
            self.find(
                NUMBER, scalar.start, f"'{field.name}' is a decimal number, and {self._written(scalar)} is octal or hexadecimal", "write it in decimal digits"
            )
            return None
        elif scalar.kind == BAD_NUMBER:
            self._bad_number(field, scalar)
            return None
        else:
            self._wrong(field, scalar, "give a number")
            return None
        return -value if scalar.negative else value

    def _wrong(self, field: FieldTable, scalar: Scalar, hint: str) -> None:
        self.find(TYPE, scalar.start, f"'{field.name}' is {_article(field)}, and {self._written(scalar)} is none", hint)

    def _written(self, scalar: Scalar) -> str:
        return show(self.text[scalar.start : scalar.end])


def _inner(scalar: Scalar) -> Scalar | None:
    """What a string holds, as a scalar of its own, where it holds one word; the offsets are those of the word in the text, as far as it has any."""
    content = scalar.content.strip()
    tokens = tokenize(content)[:-1]
    negative = len(tokens) == 2 and tokens[0].kind == "-"
    if not (len(tokens) == 1 or negative) or tokens[-1].kind not in (ID, INT, FLOAT):
        return None
    start = scalar.parts[0][0] + scalar.content.index(content)
    return Scalar(tokens[-1].kind, start, start + len(content), content[tokens[-1].start :], negative=negative)


def _article(field: FieldTable) -> str:
    """Such as `a whole number`."""
    return {
        Kind.INT: "a whole number",
        Kind.FLOAT: "a number",
        Kind.BOOL: "true or false",
        Kind.ENUM: f"a name such as {example(field)}",
        Kind.STRING: "text",
        Kind.MESSAGE: "a message",
    }[field.kind]


def show(text: str) -> str:
    """A piece of text in quotes, on one line, cut where it is long."""
    piece = " ".join(text[: 4 * _LONGEST_SHOWN].encode(errors="replace").decode().split())
    return f"'{piece}'" if len(piece) <= _LONGEST_SHOWN else f"'{piece[: _LONGEST_SHOWN - 3]}...'"
