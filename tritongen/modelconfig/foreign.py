"""Files that stand where a config.pbtxt should and are something else altogether: told by one finding instead of a hundred.

Asked only about files that are no protobuf text, so that nothing here can refuse a good config.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAGIC = {
    b"\x7fELF": "a Linux library or program",
    b"PK\x03\x04": "a zip archive (or a PyTorch model)",
    b"\x1f\x8b": "a gzip archive",
    b"\x89PNG": "a PNG image",
    b"%PDF": "a PDF document",
    b"ftrt": "a TensorRT plan",
    b"ptrt": "a TensorRT plan",
    b"vtrt": "a plan of TensorRT-RTX",
}
_YAML_ITEM = re.compile(r"^[ \t]*- +[\w\"']+[ \t]*:|^---[ \t]*\r?$|^[ \t]*- +[\w\"'.]+[ \t]*\r?$", re.MULTILINE)
_YAML_BLOCK = re.compile(r"^([ \t]*)[A-Za-z_]\w*:[ \t]*\r?\n\1[ \t]*(?:- |[ \t]+[A-Za-z_]\w*:)", re.MULTILINE)
_TOML = re.compile(r"^\[\[?[\w.]+\]\]?[ \t]*\r?$", re.MULTILINE)
_LOOKED_AT = 65_536
_ODD_BYTES = 8


class Foreign(NamedTuple):
    """What a file is instead of a config, the offset at which that shows, and what to do."""

    message: str
    start: int
    hint: str


def binary(data: bytes) -> Foreign | None:
    """What kind of binary file this is, if it is one."""
    for magic, what in _MAGIC.items():
        if data.startswith(magic):
            return Foreign(f"the file is {what}, not a config", 0, "check that the right file was copied to config.pbtxt")
    head = data[:_LOOKED_AT]
    odd = sum(head.count(bytes([code])) for code in range(32) if code not in (9, 10, 11, 12, 13))
    if odd >= _ODD_BYTES and odd * 20 > len(head) and not data.startswith((*_UTF_16, *_UTF_32)):
        return Foreign(
            "the file is binary data, not text", 0, "check that the right file was copied to config.pbtxt; a config in protobuf's binary form is not read"
        )
    return None


def encoding(data: bytes) -> tuple[str, str]:
    """The codec and the name of a file's encoding where a byte-order mark names another than UTF-8; else two empty strings."""
    if data.startswith(_UTF_32):
        return "utf-32", "UTF-32"
    if data.startswith(_UTF_16):
        return "utf-16", "UTF-16"
    return "", ""


def other_text(text: str) -> Foreign | None:
    """What kind of text this is, if it is clearly of another kind."""
    head = text[:_LOOKED_AT]
    stripped = head.lstrip("\ufeff \t\r\n")
    start = len(head) - len(stripped)
    if stripped.startswith("version https://git-lfs.github.com/spec/"):
        return Foreign("the file is a Git LFS pointer, not the config itself", start, "run: git lfs pull")
    if re.match(r"<(!doctype\s|html[\s>]|\?xml|head[\s>]|body[\s>])", stripped, re.IGNORECASE):
        return Foreign("the file is a web page or XML, not a config", start, "download the file itself, not the page that shows it")
    if re.match(r"[{\[]\s*(\"[^\"\n]*\"\s*:|[{}\]]|\Z)", stripped):
        hint = 'config.pbtxt is protobuf text: name: "resnet", without quotes around names and braces around the file; JSON goes to the load API only'
        return Foreign("the file is JSON, and protobuf text is expected", start, hint)
    if (match := re.match(r"(import|from|def|class)\s+\w+|#!", stripped)) is not None and "{" not in stripped[: match.end()]:
        return Foreign("the file is a program, not a config", start, "check that the right file was copied to config.pbtxt")
    if re.match(r"(syntax\s*=|package\s+[\w.]+;|message\s+\w+\s*\{)", stripped):
        return Foreign("the file is a protobuf schema (.proto), not a config", start, 'write the values: name: "resnet"')
    return _outline(head)


def _outline(text: str) -> Foreign | None:
    if "{" in text.replace("{{", "").replace("${", ""):
        return None
    match = _YAML_ITEM.search(text) or _YAML_BLOCK.search(text)
    if match is not None:
        start = match.end() - len(match.group().lstrip())
        hint = "config.pbtxt is protobuf text: nested values are in braces, input [ { name: ... } ], and text is in quotes"
        return Foreign("the file is YAML, and protobuf text is expected", start, hint)
    if (match := _TOML.search(text)) is not None and "=" in text:
        return Foreign(
            "the file is TOML or INI, and protobuf text is expected", match.start(), "config.pbtxt is protobuf text: name: value, nested values in braces"
        )
    return None
