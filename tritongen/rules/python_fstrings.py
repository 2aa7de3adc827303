"""f-strings that only Python 3.12 and newer read; `ast.parse` does not tell them from older ones, whatever version it is asked for."""

from __future__ import annotations

import io
import token
import tokenize
from collections.abc import Iterator

_STARTS = "FSTRING_START"
_ENDS = "FSTRING_END"
_REASONS = {"COMMENT": "a comment inside an f-string", "NL": "a line end inside an f-string of one line", "\\": "a backslash inside an f-string's braces"}


def newer_fstring(source: bytes) -> SyntaxError | None:
    """The first f-string that Python 3.11 refuses, of a file that ours reads; None where there is none, or ours is no newer.

    Up to 3.11 an f-string was a string like any other until its end was found: what is between its braces can hold neither its quotes, nor a backslash, nor
    a comment (PEP 701).
    """
    try:
        return _first(tokenize.tokenize(io.BytesIO(source).readline))
    except (SyntaxError, tokenize.TokenError, UnicodeDecodeError):  # it takes fewer encodings, and fewer odd bytes, than the parser does
        return None


def _first(parts: Iterator[tokenize.TokenInfo]) -> SyntaxError | None:
    quotes: list[str] = []
    for part in parts:
        kind = token.tok_name[part.type]
        reason = _refused(kind, part.string, quotes) if quotes else ""
        if reason:
            return SyntaxError(f"{reason} needs Python 3.12", ("model.py", part.start[0], part.start[1] + 1, part.line))
        if kind == _STARTS:
            quotes.append(part.string.lstrip("fFrRbB"))
        elif kind == _ENDS:
            quotes.pop()
    return None


def _refused(kind: str, text: str, quotes: list[str]) -> str:
    """Why a token inside f-strings with these quotes is refused; empty where it is not."""
    if kind == "NL" and len(quotes[-1]) == 1:
        return _REASONS["NL"]
    if kind == "COMMENT":
        return _REASONS["COMMENT"]
    # The text of the f-string itself is no part of its braces; it ends with its own quotes.
    around = quotes[:-1] if kind in ("FSTRING_MIDDLE", _ENDS) else quotes
    if not around or kind not in ("STRING", _STARTS, "FSTRING_MIDDLE", _ENDS):
        return ""
    if any(quote in text for quote in around):
        return "an f-string's own quotes inside its braces"
    return _REASONS["\\"] if "\\" in text else ""
