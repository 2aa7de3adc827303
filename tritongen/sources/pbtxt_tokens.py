"""Protobuf text to tokens, as C++ protobuf's tokenizer cuts it, and what people write instead of it.

Knows characters only: no field, no nesting. The rules are those of `google/protobuf/io/tokenizer.cc` with `#` comments and an `f` allowed after a float, which
is how `TextFormat` sets it up. What that tokenizer refuses still becomes a token here, of a kind that says what it looks like (`COMMENT`, `TEMPLATE`, ...), so
that a reader can name the mistake and go on behind it.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

ID, INT, FLOAT, STR = "id", "int", "float", "str"
BAD_NUMBER, OPEN_STR, CURLY_STR, NUL_STR, TEMPLATE, COMMENT, MARKER, OTHER, END = (
    "number",
    "open",
    "curly",
    "nul_string",
    "template",
    "comment",
    "marker",
    "other",
    "end",
)
"""Kinds of tokens. The symbols of the format are their own kind: `{ } [ ] < > : , ; -`; so are `=` and `+`, which the format does not have.

BAD_NUMBER begins like a number and is none (`08`, `1k`, `1_000`). OPEN_STR lacks its closing quote. CURLY_STR is in typographic quotes. NUL_STR holds a NUL
character. TEMPLATE is an unfilled place of a template. COMMENT is one of another language. MARKER is a line that a merge conflict leaves. OTHER is any other
character.
"""

CURLY_QUOTES = "\u201c\u201d\u201e\u201f\u00bb\u2033\u2018\u2019"
"""Characters that end a string where typographic quotes are taken for plain ones."""

STRINGS = frozenset((STR, OPEN_STR, CURLY_STR))
NUMBERS = frozenset((INT, FLOAT, BAD_NUMBER))
FOREIGN = frozenset((OPEN_STR, CURLY_STR, NUL_STR, COMMENT, MARKER, OTHER, "+"))
"""What protobuf does not know, and what `pbtxt_mending` looks at before anything is parsed."""

MAX_ODD = 5_000


class Token(NamedTuple):
    """A piece of the text: its kind, and the offsets of its first character and of the one behind its last."""

    kind: str
    start: int
    end: int


_TEMPLATES = (
    r"\$\{\{[^{}\n]*\}\}",  # ${{ x }}
    r"\$\{[^{}\n]*\}",  # ${x}
    r"\$\([^()\n]*\)",  # $(x)
    r"\$[A-Za-z_][A-Za-z0-9_]*",  # $x
    r"\{\{[^{}\n]*\}\}",  # {{ x }}
    r"\{%[^\n]{0,200}?%\}",  # {% if x %}
    r"\{\#[^\n]{0,200}?\#\}",  # {# x #}
    r"<%[^\n]{0,200}?%>",  # <%= x %>
    r"<[A-Za-z_][A-Za-z0-9_ -]*>",  # <x>: a message needs a value behind the name, so this is none
    r"%[A-Za-z_][A-Za-z0-9_]*%",  # %x%
    r"%\([A-Za-z_][A-Za-z0-9_]*\)[a-z]",  # %(x)s
    r"@[A-Za-z_][A-Za-z0-9_]*@",  # @x@
)
# Every alternative behind the first group matches at least one character, and the last ones match anything, so that the skipped part never backtracks.
_TOKEN = re.compile(
    r"(?:[ \t\n\v\f\r]+|\#[^\n\0]*)*(?:"
    r"(?P<id>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<str>\"[^\"\\\n\0]*(?:\\[^\n\0][^\"\\\n\0]*)*\"|'[^'\\\n\0]*(?:\\[^\n\0][^'\\\n\0]*)*')"
    r"|(?P<digits>\.?[0-9](?:[eE][+-]|[A-Za-z0-9_.])*)"
    r"|(?P<marker>^(?:<{7}|={7}|>{7}|\|{7})(?:[ \t][^\n]*|\r?)$)"
    r"|(?P<dashes>(?<![^\s,;{}\[\]<>\"'])--+(?=[^0-9.\-]|\Z)[^\n]*)"  # a comment of SQL or Lua, and no number with two signs
    rf"|(?P<template>{'|'.join(_TEMPLATES)})"
    r"|(?P<symbol>[{}\[\]:,;<>\-=+])"
    r"|(?P<nul_string>\"[^\"\\\n]*(?:\\[^\n][^\"\\\n]*)*\"|'[^'\\\n]*(?:\\[^\n][^'\\\n]*)*')"
    r"|(?P<open>[\"'][^\n\0]*)"
    r"|(?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)"
    r"|(?P<curly>[\u201c\u201d\u201e\u201f\u00ab\u2033\u2018\u2019][^\n\0\"'\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u2018\u2019]*"
    r"[\"'\u201c\u201d\u201e\u201f\u00bb\u2033\u2018\u2019])"
    r"|(?P<other>[^\0])|(?P<nul>\0+)|(?P<end>\Z))",
    re.MULTILINE,
)
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
_FLOAT = re.compile(r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fF]?")


def tokenize(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of a text, or of the part from `start` to `end`, without blanks and comments; the last one is of kind END.

    A text with more than MAX_ODD tokens that protobuf does not know is cut off there.
    """
    tokens: list[Token] = []
    append = tokens.append
    new: Any = tuple.__new__  # a third of the time of Token(...)
    odd = 0
    for match in _TOKEN.finditer(text, start, len(text) if end is None else end):
        kind = match.lastgroup
        assert kind is not None
        first, last = match.span(kind)
        if kind == "symbol":
            kind = text[first]
        elif kind == "digits":
            word = match.group(kind)
            kind = INT if _INTEGER.fullmatch(word) else FLOAT if _FLOAT.fullmatch(word) else BAD_NUMBER
        elif kind == "nul":
            kind = OTHER
        elif kind == "dashes":
            kind = COMMENT
        append(new(Token, (kind, first, last)))
        if kind == END:
            break
        if kind in FOREIGN:
            odd += 1
            if odd > MAX_ODD:
                append(Token(END, last, last))
                break
    return tokens
