"""Which key of the spec a field of the config comes from.

So that a finding about the config is shown where the spec causes it, and so that a field which both a key and `config:` set is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tritongen.render import onnxruntime, plans, scheduling
from tritongen.render.findings import Findings, Key
from tritongen.render.keys import is_given, is_stated, key_text, value_of
from tritongen.spec import ModelSpec

_ANY = "*"
"""Stands for an index in a list."""

_ACCELERATORS: Key = ("optimization", "execution_accelerators")
_TENSORRT: Key = (*_ACCELERATORS, "gpu_execution_accelerator", _ANY, "parameters")

_EXCLUSIVE: Mapping[Key, Key] = {
    ("parameters", "intra_op_thread_count"): ("cpu_threads",),
    **dict(onnxruntime.spec_keys()),
    **dict(plans.spec_keys()),
    **dict(scheduling.spec_keys()),
    ("batch_input",): ("ragged", "batch_inputs"),
    ("batch_output",): ("ragged", "batch_outputs"),
    ("response_cache",): ("response_cache",),
    ("model_warmup",): ("warmup",),
    ("instance_group",): ("instances",),
    (*_TENSORRT, "precision_mode"): ("precision",),
}
"""Fields that do not go together with an overlay of the same field → the key that sets them."""

_ACCELERATED: Mapping[str, Key] = {
    "tensorrt": (*_ACCELERATORS, "gpu_execution_accelerator", _ANY),
    "openvino": (*_ACCELERATORS, "cpu_execution_accelerator", _ANY),
}
"""Likewise for each value of `accelerator` that writes one: an overlay replaces the whole list. With `cuda`, the overlay may state what it is given."""

_ORIGINS: Mapping[Key, Key] = {
    ("dynamic_batching",): ("batching",),
    ("max_batch_size",): ("batching",),
    ("version_policy",): ("versions",),
    ("output", _ANY, "label_filename"): ("labels",),
    ("input", _ANY, "allow_ragged_batch"): ("ragged", "inputs"),
    ("input", _ANY, "optional"): ("optional_inputs",),
    _ACCELERATORS: ("accelerator",),
    **{(*_TENSORRT, f"trt_profile_{which}_shapes"): ("shapes",) for which in ("min", "opt", "max")},
    **_EXCLUSIVE,
}
"""Fields of the config → the key of the spec. The overlay may change part of what the keys beside _EXCLUSIVE made."""


def origin(field: Key, model: ModelSpec) -> Key:
    """The key of the spec that a field of the config comes from: the overlay where that has it, else the key that sets it, else the model as a whole.

    An entry of `instance_group` is the entry of `instances` with the same number.
    """
    if laid := _overlaid(field, model):
        return laid
    for length in range(len(field), 0, -1):
        for path, key in _ORIGINS.items():
            if len(path) == length and _matches(path, field[:length]) and is_given(model, key):
                return ("instances", field[1]) if key == ("instances",) and len(field) > 1 else key
    return ()


def check_overlay(model: ModelSpec, findings: Findings) -> None:
    """Say where keys of the spec and the overlay set the same field. A key that comes from `defaults` gives way to the model's own overlay."""
    rivals: dict[Key, list[Key]] = {}
    for field, key in _exclusive(model):
        laid = _overlaid(field, model)
        if laid and _sets(model, key) and not findings.is_inherited(key[:1]):
            known = rivals.setdefault(laid, [])
            known += [key] if key not in known else []
    for laid, keys in rivals.items():
        places = " and ".join(f"{key_text(key)} at {findings.locate(key)}" for key in keys)
        findings.error(
            "TG180",
            laid,
            f"{places} {'sets' if len(keys) == 1 else 'set'} this field, too",
            consequence="one of the two would be lost" if len(keys) == 1 else "one or the other would be lost",
            hint=f"remove it here, or remove {' and '.join(key_text(key) for key in keys)}",
        )


def _sets(model: ModelSpec, key: Key) -> bool:
    """Whether the key is written and decides something, be it what holds without it; `auto` and `none` leave the field to others."""
    return is_stated(model, key) and value_of(model, key) not in (None, "none", ())


def _exclusive(model: ModelSpec) -> Iterator[tuple[Key, Key]]:
    if model.accelerator in _ACCELERATED:
        yield _ACCELERATED[model.accelerator], ("accelerator",)
    yield from _EXCLUSIVE.items()


def _overlaid(field: Key, model: ModelSpec) -> Key:
    """The part of `config:` that sets this field, or the list that holds it; empty where there is none."""
    at: object = model.config
    for depth, part in enumerate(field):
        if not isinstance(at, Mapping):
            return ("config", *(field[:depth] if _ANY in field else field))
        if part not in at:
            return ()
        at = at[part]
    return ("config", *field) if field else ()


def _matches(path: Key, field: Key) -> bool:
    return all(want in (_ANY, part) for want, part in zip(path, field, strict=True))
