"""Protobuf text (`config.pbtxt`) to `ModelConfig` and back."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format

from tritongen.diagnostics import Location
from tritongen.modelconfig.pb import ModelConfig
from tritongen.modelconfig.reading import read_config

_FIRST_FIELDS = ("name", "platform", "backend", "max_batch_size", "input", "output", "batch_input", "batch_output")
"""People read a config from its interface downwards; the other fields follow in the order of their numbers."""


def print_pbtxt(config: Any) -> str:
    """The config as protobuf text, one field after another, ending in a newline.

    `max_batch_size` is always written: protobuf's printer drops a 0, and a reader (or Triton's auto-complete) could not tell "none" from "not said".
    The text depends on the message alone: map entries come sorted by key.
    """
    fields = {field.name: field for field in ModelConfig.DESCRIPTOR.fields}
    order = [*_FIRST_FIELDS, *(name for name in fields if name not in _FIRST_FIELDS)]
    return "".join(_print_field(config, name) for name in order)


def _print_field(config: Any, name: str) -> str:
    if name == "max_batch_size":
        return f"max_batch_size: {config.max_batch_size}\n"
    part = ModelConfig()
    part.MergeFrom(config)
    for field, _ in config.ListFields():
        if field.name != name:
            part.ClearField(field.name)
    return str(text_format.MessageToString(part, as_utf8=True, use_short_repeated_primitives=True))


def parse_pbtxt(text: str) -> Any:
    """Parse protobuf text into a `ModelConfig`, as Triton's own parser does (see `reading`).

    Raises `text_format.ParseError` (its message starts with line:column) where it does not parse.
    """
    read = read_config(text.encode(errors="surrogateescape"), "")
    if not read.ok:
        first = read.diagnostics[0]
        place = first.location or Location("")
        raise text_format.ParseError(f"{place.line}:{place.column}: {first.message}")
    return read.config
