"""`ModelConfig`'s messages and fields as plain tables, made once from protobuf's descriptors, which are slow to ask."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

INT_RANGES = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
_FLOATS = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


class Kind(enum.Enum):
    """What a field's value is."""

    MESSAGE = "message"
    STRING = "string"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    ENUM = "enum"


@dataclass(frozen=True, slots=True)
class FieldTable:
    """One field.

    Attributes:
        name: its name in the text.
        kind: what its value is.
        repeated: True where it may be given many times; maps are.
        is_map: True for a map, whose `message` has the fields `key` and `value`.
        message: the type of its value, for messages and maps.
        oneof: the name of the group of which only one member may be given; empty for most.
        low: the least number that an integer field holds.
        high: the greatest one.
        enum_name: the name of an enum's type.
        enum_values: an enum's values, number by name.
        single: True for a number of single precision (`float` in the schema).
    """

    name: str
    kind: Kind
    repeated: bool
    is_map: bool
    message: MessageTable | None
    oneof: str
    low: int
    high: int
    enum_name: str
    enum_values: dict[str, int]
    single: bool


@dataclass(frozen=True, slots=True, eq=False)
class MessageTable:
    """One message: its short name, and its fields by name in the order of their numbers."""

    name: str
    fields: dict[str, FieldTable]


@cache
def message_table(descriptor: Any) -> MessageTable:
    """The table of a message's descriptor and, through its fields, of all messages in it. Triton's messages hold none of their own kind."""
    return MessageTable(descriptor.name, {field.name: _field_table(field) for field in descriptor.fields})


def _field_table(field: Any) -> FieldTable:
    message = field.message_type
    low, high = INT_RANGES.get(field.type, (0, 0))
    if message is not None:
        kind = Kind.MESSAGE
    elif field.type in INT_RANGES:
        kind = Kind.INT
    elif field.type in _FLOATS:
        kind = Kind.FLOAT
    else:
        kind = {FieldDescriptor.TYPE_BOOL: Kind.BOOL, FieldDescriptor.TYPE_ENUM: Kind.ENUM, FieldDescriptor.TYPE_STRING: Kind.STRING}[field.type]
    return FieldTable(
        name=field.name,
        kind=kind,
        repeated=field.is_repeated,
        is_map=message is not None and message.GetOptions().map_entry,
        message=message_table(message) if message is not None else None,
        oneof=field.containing_oneof.name if field.containing_oneof is not None else "",
        low=low,
        high=high,
        enum_name=field.enum_type.name if field.enum_type is not None else "",
        enum_values={value.name: value.number for value in field.enum_type.values} if field.enum_type is not None else {},
        single=field.type == FieldDescriptor.TYPE_FLOAT,
    )
