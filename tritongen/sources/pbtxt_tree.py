"""Protobuf text as plain data with positions, and what was wrong with the text. Offsets count characters of the text from 0."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

WORD = "word"
"""The kind of a Scalar that is none of the format's: text without quotes, such as `resnet-50` or `my model`."""

MAX_EDITS = 1_000
"""A mistake that would take more edits than this is for its author to mend."""


class FaultKind(enum.Enum):
    """What sort of mistake a text has, as far as it can be told without knowing the fields."""

    BRACKET = "bracket"  # unclosed, or closed twice
    PUNCTUATION = "punctuation"  # a colon, a comma, a brace that is missing, doubled or another character
    UNEXPECTED = "unexpected"  # text that stands for nothing here
    QUOTE = "quote"  # a string's quotes or its escapes
    TEMPLATE = "template"  # a place of a template that nobody filled
    CONFLICT = "conflict"  # a merge conflict
    COMMENT = "comment"  # a comment of another language
    EXTENSION = "extension"  # `[name]: value`
    DEPTH = "depth"  # nested beyond all sense


class Edit(NamedTuple):
    """Replace the text from `start` up to `end` by `text`."""

    start: int
    end: int
    text: str


class Fault(NamedTuple):
    """One mistake: its kind, where it is, what is wrong and what to do; `edits` mend it where only one meaning is possible."""

    kind: FaultKind
    start: int
    message: str
    hint: str
    edits: tuple[Edit, ...] = ()


@dataclass(slots=True)
class Scalar:
    """One value that is no message.

    Attributes:
        kind: `id`, `int`, `float`, `str` or `number` as in `pbtxt_tokens`, WORD, or `template` for an
            unfilled place and for anything else in the place of a value that a fault was noted about: it has no value and is not to be judged again.
        start: offset of its first character, which is a minus sign where it has one.
        end: offset behind its last character.
        content: the digits, the name or the words; for a string its text as written, without quotes.
        negative: True behind a minus sign.
        parts: for a string, start and end of each literal of it, without the quotes.
        braces: start and end of braces around the value, which no value has: a fault at their start tells of them.
        quoted: True for a string.
    """

    kind: str
    start: int
    end: int
    content: str
    negative: bool = False
    parts: tuple[tuple[int, int], ...] = ()
    braces: tuple[int, int] | None = None

    @property
    def quoted(self) -> bool:
        """True for a string literal."""
        return bool(self.parts)


@dataclass(slots=True)
class Message:
    """Fields in braces; `start` is the offset of the opening brace and `end` the one behind the closing brace."""

    start: int
    end: int
    fields: list[Field]


@dataclass(slots=True)
class Items:
    """Values in square brackets; `start` is the offset of the opening bracket and `end` the one behind the closing bracket.

    `bare` ones have no brackets: a fault at `start` tells that, and adds them.
    """

    start: int
    end: int
    items: list[Scalar | Message]
    bare: bool = False


Value = Scalar | Message | Items


@dataclass(slots=True)
class Field:
    """A name and its value, which is None where the text has none.

    `start` and `end` enclose the name with its quotes, if it is `quoted`, which no name may be; `colon` tells whether one follows it.
    """

    name: str
    start: int
    end: int
    colon: bool
    value: Value | None
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class ParsedPbtxt:
    """What a text says, as well as could be understood, and everything that was wrong with its form."""

    fields: list[Field]
    faults: tuple[Fault, ...] = field(default=())
