"""Rules: explicit TensorRT profiles of the onnxruntime backend's `tensorrt` accelerator. Part of the family TG29x."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tritongen.modelconfig import ModelInstanceGroup
from tritongen.rules.context import ModelContext
from tritongen.rules.placement import on_gpu
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.signature import Signature

_KEYS = ("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes")
_SHAPE = re.compile(r"(?P<name>.+):(?P<dims>-?\d+(x-?\d+)*)")
_PLACE: Key = ("optimization", "execution_accelerators", "gpu_execution_accelerator")

Shapes = Mapping[str, list[tuple[int, ...]]]
"""Shapes by input; several for one input are several profiles."""


def _profiles(context: ModelContext) -> Iterator[Finding]:
    if not context.is_onnx or on_gpu(context) is False:
        return
    for index, accelerator in enumerate(context.config.optimization.execution_accelerators.gpu_execution_accelerator):
        given = [name for name in _KEYS if accelerator.parameters.get(name)]
        if accelerator.name != "tensorrt" or not given:
            continue
        key: Key = (*_PLACE, index, "parameters")
        lacking = [name for name in _KEYS if name not in given]
        if lacking:
            message = f"{' and '.join(given)} without {' and '.join(lacking)}: a profile needs all three"
            yield Finding(message, (*key, given[0]), f"add {' and '.join(lacking)}, for the same inputs")
            continue
        yield from _judge(context, accelerator, key)


def _judge(context: ModelContext, accelerator: Any, key: Key) -> Iterator[Finding]:
    """What is wrong with three texts that are all there."""
    parsed: list[Shapes] = []
    for name in _KEYS:
        shapes = _parse(accelerator.parameters[name])
        if isinstance(shapes, str):
            message = f"{name} has '{shapes}', where name:1x3x224x224 is expected, inputs apart by commas"
            yield Finding(message, (*key, name), "write one input:sizes for each input, sizes joined by x, without blanks")
        else:
            parsed.append(shapes)
    if len(parsed) != len(_KEYS):
        return
    low, best, high = parsed
    if not (_counts(low) == _counts(best) == _counts(high)):
        yield Finding("the three profile shapes do not name the same inputs equally often", (*key, _KEYS[0]), "give every input a min, an opt and a max shape")
        return
    for name in low:
        for smallest, usual, largest in zip(low[name], best[name], high[name], strict=True):
            yield from _ordered(name, smallest, usual, largest, key)
    if context.signature is not None:
        yield from _against_model(context.signature, low, high, key)


def _parse(text: str) -> Shapes | str:
    """Shapes by input, or the part that is none."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for part in text.split(","):
        match = _SHAPE.fullmatch(part)
        if match is None:
            return part
        found.setdefault(match["name"], []).append(tuple(int(size) for size in match["dims"].split("x")))
    return found


def _counts(shapes: Shapes) -> dict[str, int]:
    return {name: len(listed) for name, listed in shapes.items()}


def _ordered(name: str, smallest: tuple[int, ...], usual: tuple[int, ...], largest: tuple[int, ...], key: Key) -> Iterator[Finding]:
    if not (len(smallest) == len(usual) == len(largest)):
        yield Finding(
            f"the profile of input '{name}' has shapes of {len(smallest)}, {len(usual)} and {len(largest)} dimensions",
            (*key, _KEYS[0]),
            "give all three the model's rank",
        )
    elif not all(0 <= small <= middle <= large for small, middle, large in zip(smallest, usual, largest, strict=True)):
        texts = ", ".join("x".join(map(str, shape)) for shape in (smallest, usual, largest))
        yield Finding(f"the profile of input '{name}' is not in order: min, opt, max are {texts}", (*key, _KEYS[0]), "let every size be min <= opt <= max")


def _against_model(signature: Signature, low: Shapes, high: Shapes, key: Key) -> Iterator[Finding]:
    known = {tensor.name: tensor for tensor in (*signature.inputs, *signature.optional_inputs)}
    for name in low:
        if name not in known:
            listed = ", ".join(f"'{other}'" for other in known)
            yield Finding(f"the profile names input '{name}', and the model has {listed}", (*key, _KEYS[0]), "name inputs of the model")
            continue
        shape = known[name].shape
        for sizes in (*low[name], *high[name]):
            if shape is not None and (len(sizes) != len(shape) or any(isinstance(dim, int) and dim != size for dim, size in zip(shape, sizes, strict=True))):
                message = f"the profile of '{name}' has {'x'.join(map(str, sizes))}, and the model has {known[name].describe()}"
                yield Finding(message, (*key, _KEYS[0]), "write whole shapes, the batch dimension with them")
                break
    free = [tensor.name for tensor in signature.inputs if tensor.shape and any(not isinstance(dim, int) for dim in tensor.shape) and tensor.name not in low]
    if free and all(name in known for name in low):
        names = ", ".join(f"'{name}'" for name in free)
        yield Finding(f"the profile leaves out {names}, whose shapes are free too", (*key, _KEYS[0]), "give every input with free dimensions a range, or none")


def _batch(context: ModelContext) -> Iterator[Finding]:
    """A profile that ends below max_batch_size, or begins above 1."""
    size = context.config.max_batch_size
    if not context.is_onnx or size <= 0 or on_gpu(context) is False or _is_only_cpu(context):
        return
    for index, accelerator in enumerate(context.config.optimization.execution_accelerators.gpu_execution_accelerator):
        low, high = (_parse(accelerator.parameters.get(name, "")) for name in (_KEYS[0], _KEYS[2]))
        if accelerator.name != "tensorrt" or isinstance(low, str) or isinstance(high, str):
            continue
        if context.signature is None or any(True for _ in _profiles(context)):
            continue  # what is broken, ONNX Runtime drops altogether
        free = {tensor.name for tensor in context.signature.inputs if tensor.shape and not isinstance(tensor.shape[0], int)}
        for name in sorted(free & set(low)):
            first, last = min(shape[0] for shape in low[name]), max(shape[0] for shape in high[name])
            if first > 1 or last < size:
                message = f"the profile of '{name}' holds batches of {first} to {last}, and the server forms batches of 1 to {size}"
                key: Key = (*_PLACE, index, "parameters", _KEYS[2] if last < size else _KEYS[0])
                yield Finding(message, key, f"let its first size go from 1 to {size}")


def _is_only_cpu(context: ModelContext) -> bool:
    groups = context.config.instance_group
    return bool(groups) and all(group.kind == ModelInstanceGroup.KIND_CPU for group in groups)


def _example(low: str, best: str, high: str) -> str:
    parameters = " ".join(f'parameters {{ key: "{name}" value: "{text}" }}' for name, text in zip(_KEYS, (low, best, high), strict=True) if text)
    lines = ['platform: "onnxruntime_onnx"', "max_batch_size: 8", "instance_group [ { kind: KIND_GPU } ]"]
    return "\n".join([*lines, f'optimization {{ execution_accelerators {{ gpu_execution_accelerator [ {{ name: "tensorrt" {parameters} }} ] }} }}'])


RULES: tuple[Rule, ...] = (
    Rule(
        "TG295",
        "broken-engine-profile",
        Consequence.IGNORED,
        "An explicit TensorRT profile gives min, opt and max shapes, for all inputs with free dimensions, in ONNX Runtime's form.",
        "ONNX Runtime writes a warning to the log, drops the profile and builds engines for the shapes that it happens to see, minutes each "
        "(core/providers/tensorrt/tensorrt_execution_provider.cc, ParseProfileShapes and ValidateProfileShapes).",
        _example("x:1x64", "", "x:8x64"),
        _example("x:1x64", "x:8x64", "x:8x64"),
        _profiles,
    ),
    Rule(
        "TG296",
        "profile-misses-batches",
        Consequence.SLOW,
        "An explicit TensorRT profile covers every batch that the server can form.",
        "A shape outside the profile makes ONNX Runtime build another engine during a request (ONNX Runtime's documentation of the TensorRT "
        "execution provider).",
        _example("x:1x64", "x:4x64", "x:4x64"),
        _example("x:1x64", "x:4x64", "x:8x64"),
        _batch,
        needs=frozenset({"config", "signature"}),
    ),
)
