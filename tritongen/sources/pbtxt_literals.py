"""Literals of protobuf text to values, as C++ protobuf reads them.

Source: `Tokenizer::ParseInteger`, `ParseFloat` and `ParseStringAppend` of `google/protobuf/io/tokenizer.cc`. Text is what the tokenizer found; a byte that was
no UTF-8 is in it as a lone surrogate (Python's `surrogateescape`).
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U(00[01][0-9a-fA-F]{5})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|([abfnrtv\\?'\"])|)")
_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, "'": 39, '"': 34}


def integer(text: str) -> int:
    """The value of an unsigned whole number in decimal, octal (`010`) or hexadecimal (`0x8`) digits."""
    if text[:2] in ("0x", "0X"):
        return int(text[2:], 16)
    if text[0] == "0":
        return int(text, 8)
    # Python refuses to convert thousands of decimal digits, and no field holds more than twenty.
    return int(text) if len(text) <= 400 else int(text[:400])


def floating(text: str) -> float:
    """The value of an unsigned decimal number, with or without point, exponent and the suffix `f`."""
    return float(text.rstrip("fF"))


def string_content(text: str, start: int = 0) -> tuple[bytes, list[int]]:
    """The bytes of a string literal without its quotes, and the offset of each backslash that begins no valid escape.

    `start` is added to these offsets. An invalid escape is kept as it is written.
    """
    if "\\" not in text:
        return text.encode(errors="surrogateescape"), []
    content = bytearray()
    invalid: list[int] = []
    position = 0
    high_end = -1  # where a \uD800..\uDBFF ended, which a \uDC00..\uDFFF right behind it completes
    for match in _ESCAPE.finditer(text):
        content += text[position : match.start()].encode(errors="surrogateescape")
        position = match.end()
        short, long, hexadecimal, octal, simple = match.groups()
        if short or long:
            code = int(short or long, 16)
            if 0xDC00 <= code <= 0xDFFF and high_end == match.start():
                high = ord(content[-3:].decode(errors="surrogatepass"))
                del content[-3:]
                code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)
            content += chr(code).encode(errors="surrogatepass") if code <= 0x10FFFF else f"\\U{code:08x}".encode()
            high_end = match.end() if 0xD800 <= code <= 0xDBFF else -1
        elif hexadecimal:
            content.append(int(hexadecimal, 16))
        elif octal:
            content.append(int(octal, 8) & 0xFF)
        elif simple:
            content.append(_SIMPLE[simple])
        else:
            invalid.append(start + match.start())
            content += b"\\"
    content += text[position:].encode(errors="surrogateescape")
    return bytes(content), invalid
