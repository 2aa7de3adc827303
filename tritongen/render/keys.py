"""Keys of a model's spec by their path, such as `("onnxruntime", "cuda", "use_tf32")`: whether one is given, what it says, and the spec without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tritongen.render.findings import Key
from tritongen.spec import ModelSpec


def value_of(model: ModelSpec, key: Key) -> Any:
    """What the key says, or its default; None for a name that a mapping of tensors does not have."""
    at: Any = model
    for part in key:
        at = at.get(part) if isinstance(at, Mapping) else getattr(at, _field(at, part))
        if at is None:
            return None
    return at


def is_given(model: ModelSpec, key: Key) -> bool:
    """Whether the key says something else than its default."""
    parent = value_of(model, key[:-1])
    if parent is None or isinstance(parent, Mapping):
        return parent is not None and key[-1] in parent
    return bool(value_of(model, key) != _default(parent, key[-1]))


def is_stated(model: ModelSpec, key: Key) -> bool:
    """Whether the key was written, be it with its default; a key that `without` took away was not."""
    parent = value_of(model, key[:-1])
    if parent is None or isinstance(parent, Mapping):
        return parent is not None and key[-1] in parent
    return _field(parent, key[-1]) in parent.model_fields_set and (len(key) == 1 or is_stated(model, key[:-1]))


def without(model: ModelSpec, key: Key) -> ModelSpec:
    """The model with this key at its default."""
    copy: ModelSpec = _without(model, key)
    return copy


def _without(at: Any, key: Key) -> Any:
    name = _field(at, key[0])
    value = _default(at, key[0]) if len(key) == 1 else _without(getattr(at, name), key[1:])
    copy = at.model_copy(update={name: value})
    if len(key) == 1:
        copy.model_fields_set.discard(name)
    return copy


def _default(parent: BaseModel, part: str | int) -> Any:
    return type(parent).model_fields[_field(parent, part)].get_default(call_default_factory=True)


def _field(parent: BaseModel, part: str | int) -> str:
    """The attribute for a key as people write it."""
    return next(name for name, field in type(parent).model_fields.items() if (field.alias or name) == part)


def key_text(key: Key) -> str:
    """A path as people write it: `onnxruntime.cuda.use_tf32`."""
    return ".".join(str(part) for part in key)
