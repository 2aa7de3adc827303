"""Merge a plain mapping, written in `ModelConfig`'s own field names, into a `ModelConfig`.

Messages and maps merge key by key; a list of messages that carry a `name` (input, output) merges by that name; any other list replaces what was there.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

Path = tuple[str | int, ...]

_MERGED_BY_NAME = ("input", "output")
_INT_RANGES = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}

_MOST = {FieldDescriptor.TYPE_FLOAT: (2 - 2**-23) * 2.0**127, FieldDescriptor.TYPE_DOUBLE: sys.float_info.max}
"""The largest number of each kind: protobuf makes infinity of a larger one, and Python cannot convert a huge integer at all."""


@dataclass(frozen=True)
class OverlayProblem:
    """One thing in an overlay that cannot be merged: where (`path` of keys and indices), what is wrong, how to mend it, what Triton would do with it."""

    path: Path
    message: str
    hint: str = ""
    consequence: str = "Triton refuses a config that it cannot parse"


def merge_overlay(config: Any, overlay: Mapping[str, Any]) -> list[OverlayProblem]:
    """Merge `overlay` into `config` in place and return all that could not be merged (an empty list when everything was).

    With problems, `config` is partly merged and must not be used.
    """
    problems: list[OverlayProblem] = []
    _merge_message(config, overlay, (), problems)
    return problems


def _merge_message(message: Any, values: object, path: Path, problems: list[OverlayProblem]) -> None:
    if not isinstance(values, Mapping):
        fields = ", ".join(field.name for field in message.DESCRIPTOR.fields)
        problems.append(OverlayProblem(path, f"expected a mapping with the fields of {message.DESCRIPTOR.name} ({fields}), got {_show(values)}"))
        return
    chosen: dict[str, str] = {}
    for key, value in values.items():
        field = message.DESCRIPTOR.fields_by_name.get(key)
        if field is None:
            problems.append(_unknown(message, key, (*path, key)))
            continue
        oneof = field.containing_oneof.name if field.containing_oneof else ""
        if oneof and oneof in chosen:
            problems.append(OverlayProblem((*path, key), f"'{key}' and '{chosen[oneof]}' exclude each other ({oneof})", "keep one of the two"))
            continue
        if oneof:
            chosen[oneof] = key
        _merge_field(message, field, value, (*path, key), problems)


def _merge_field(message: Any, field: Any, value: object, path: Path, problems: list[OverlayProblem]) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _merge_map(message, field, value, path, problems)
    elif field.is_repeated:
        _merge_list(message, field, value, path, problems)
    elif field.message_type is not None:
        sub = getattr(message, field.name)
        sub.SetInParent()
        _merge_message(sub, value, path, problems)
    else:
        converted = _scalar(field, value, path, problems)
        if converted is not None:
            setattr(message, field.name, converted)


def _merge_map(message: Any, field: Any, value: object, path: Path, problems: list[OverlayProblem]) -> None:
    if not isinstance(value, Mapping):
        problems.append(OverlayProblem(path, f"expected a mapping, got {_show(value)}"))
        return
    key_field, value_field = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    target = getattr(message, field.name)
    for key, item in value.items():
        if key_field.cpp_type != FieldDescriptor.CPPTYPE_STRING and isinstance(key, str) and key.lstrip("-").isdigit():
            converted_key = _scalar(key_field, int(key), (*path, key), problems)
        else:
            converted_key = _scalar(key_field, key, (*path, key), problems)
        if converted_key is None:
            continue
        if value_field.message_type is not None:
            _merge_message(target[converted_key], item, (*path, key), problems)
        else:
            converted = _scalar(value_field, item, (*path, key), problems)
            if converted is not None:
                target[converted_key] = converted


def _merge_list(message: Any, field: Any, value: object, path: Path, problems: list[OverlayProblem]) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        problems.append(OverlayProblem(path, f"expected a list, got {_show(value)}"))
        return
    target = getattr(message, field.name)
    if field.message_type is None:
        converted = [_scalar(field, item, (*path, index), problems) for index, item in enumerate(value)]
        del target[:]
        target.extend(item for item in converted if item is not None)
        return
    by_name = {item.name: item for item in target} if field.name in _MERGED_BY_NAME else {}
    if not by_name:
        del target[:]
    for index, item in enumerate(value):
        name = item.get("name") if isinstance(item, Mapping) else None
        if by_name and not (isinstance(name, str) and name in by_name):
            problems.append(_unnamed(field.name, name, item, (*path, index), list(by_name)))
            continue
        _merge_message(by_name[name] if by_name else target.add(), item, (*path, index), problems)


def _unnamed(kind: str, name: object, item: object, path: Path, known: Sequence[str]) -> OverlayProblem:
    """The problem of an entry that is about no tensor of the model."""
    listed = ", ".join(f"'{each}'" for each in known)
    if not isinstance(item, Mapping):
        return OverlayProblem(path, f"expected a mapping with the name of an {kind}, got {_show(item)}", f"write {{name: {known[0]}, ...}}")
    if name is None:
        message = f"the entry does not say which {kind} it is about"
        return OverlayProblem(path, message, f"add its name: the model has {listed}", f"Triton refuses an {kind} without a name")
    if not isinstance(name, str):
        return OverlayProblem(path, f"the name of an {kind} is a text, got {_show(name)}", f"the model has {listed}")
    consequence = f"Triton refuses to load a model whose config has an {kind} that the model lacks"
    return OverlayProblem(path, f"there is no {kind} named {_show(name)} in the model", f"the model has {listed}", consequence)


def _scalar(field: Any, value: object, path: Path, problems: list[OverlayProblem]) -> Any:
    """`value` as the field's type, or None with a problem noted."""
    if field.enum_type is not None:
        names = [item.name for item in field.enum_type.values]
        if value in names:
            return field.enum_type.values_by_name[value].number
        close = difflib.get_close_matches(str(value), names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}"
        problems.append(OverlayProblem(path, f"{_show(value)} is not a value of {field.enum_type.name}", hint))
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        if isinstance(value, bool):
            return value
        problems.append(OverlayProblem(path, f"expected true or false, got {_show(value)}"))
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if isinstance(value, str):
            return value
        problems.append(OverlayProblem(path, f"expected text, got {_show(value)}", f"quote it: '{value}'" if isinstance(value, int | float) else ""))
    elif field.type in _INT_RANGES:
        low, high = _INT_RANGES[field.type]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        problems.append(OverlayProblem(path, f"expected a whole number from {low} to {high}, got {_show(value)}"))
    elif isinstance(value, int | float) and not isinstance(value, bool) and -(most := _MOST[field.type]) <= value <= most:
        return float(value)
    else:
        problems.append(OverlayProblem(path, f"expected a number, got {_show(value)}"))
    return None


def _unknown(message: Any, key: object, path: Path) -> OverlayProblem:
    names = [field.name for field in message.DESCRIPTOR.fields]
    close = difflib.get_close_matches(str(key), names, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"its fields are {', '.join(names)}"
    return OverlayProblem(path, f"{message.DESCRIPTOR.name} has no field {_show(key)}", hint)


def _show(value: object) -> str:
    """A value in YAML's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
