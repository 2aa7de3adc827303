"""A signature's tensors as `input` and `output` of a config, and the concrete sizes that warmup and profiles need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritongen import dtypes
from tritongen.batching import Batching
from tritongen.known_issues import find_issue
from tritongen.releases import Release
from tritongen.render.backends import Backend
from tritongen.render.findings import Findings, Key
from tritongen.signature import Signature, TensorSpec, symbol_of
from tritongen.sources.flow import yaml_scalar
from tritongen.spec.shapes import ShapeRange

_WITHOUT_INT64 = find_issue("tensorrt-without-int64")


@dataclass(frozen=True)
class Sizes:
    """Concrete sizes of one input, without the batch dimension: what is served at least, usually and at most. Equal for an input without variable
    dimensions.
    """

    minimum: tuple[int, ...]
    usual: tuple[int, ...]
    maximum: tuple[int, ...]


def item_dims(tensor: TensorSpec, batching: Batching) -> tuple[int, ...]:
    """The tensor's dims as a config states them: without the batch dimension where there is one, -1 for a variable size.

    A scalar, and a tensor that is nothing but the batch dimension, has no dims left; Triton wants at least one, so these are `(1,)`.
    """
    return _inner_dims(tensor, batching) or (1,)


def _inner_dims(tensor: TensorSpec, batching: Batching) -> tuple[int, ...]:
    if tensor.shape is None:
        return ()
    return tensor.dims[1:] if batching.max_batch_size else tensor.dims


def shapes_hint(tensors: Iterable[TensorSpec], *, batched: bool, ranges: bool = False) -> str:
    """What to write in `shapes` for these tensors, all at once, with dots for what only their owner knows."""
    parts = []
    for tensor in tensors:
        dims = ", ".join("..." if dim == -1 else str(dim) for dim in ((tensor.dims[1:] if batched else tensor.dims) if tensor.shape else ()))
        shape = f"{{min: [{dims}], opt: [{dims}], max: [{dims}]}}" if ranges else f"[{dims or '...'}]"
        parts.append(f"{yaml_scalar(tensor.name)}: {shape}")
    return f"shapes: {{{', '.join(parts)}}}{', without the batch dimension' if batched else ''}"


def add_tensors(config: Any, signature: Signature, batching: Batching, backend: Backend, release: Release | None, findings: Findings) -> tuple[str, ...]:
    """Write `input` and `output` from the signature; a dtype that the backend has not, or a dimension of size 0, is an error.

    The sentences are for the header of the config.
    """
    narrowed = []
    for kind, target, tensors in (("input", config.input, signature.inputs), ("output", config.output, signature.outputs)):
        for tensor in tensors:
            _check(kind, tensor, backend, findings)
            added = target.add(name=tensor.name, data_type=tensor.dtype.config_value)
            if _is_narrowed(tensor, backend, release):
                added.data_type = dtypes.from_wire("INT32").config_value
                narrowed.append(f"{kind} '{tensor.name}'")
            added.dims.extend(item_dims(tensor, batching))
            if batching.max_batch_size and not _inner_dims(tensor, batching):
                # The model's own shape is [batch]: the reshape takes the dim away again that Triton wants to see.
                added.reshape.SetInParent()
    if not narrowed or release is None:
        return ()
    names = ", ".join(narrowed)
    findings.warning(
        "TG119",
        ("backend",),
        f"{names} {'is' if len(narrowed) == 1 else 'are'} INT64 in the model file and INT32 in its plan: release {release.name} has TensorRT"
        f" {release.tensorrt_text}, which has no 64-bit integers at a plan's border",
        consequence="clients that send INT64 are refused, and those that send larger numbers than INT32 holds cannot be served",
        hint="send and expect INT32 there, use release 24.05 or newer, or backend: onnxruntime",
    )
    return (f"INT32 in the plan and INT64 in the model file: {names} (TensorRT {release.tensorrt_text} has no 64-bit integers at a plan's border).",)


def _is_narrowed(tensor: TensorSpec, backend: Backend, release: Release | None) -> bool:
    """Whether a plan of the release has 32-bit integers where the file has 64-bit ones."""
    return backend.name == "tensorrt" and tensor.dtype.wire == "INT64" and release is not None and _WITHOUT_INT64.holds_in(release)


def inferred_remarks(stated: Signature, inferred: Signature) -> Iterator[str]:
    """A sentence for every output of which inference knows more than the file states."""
    known = {tensor.name: tensor for tensor in inferred.outputs}
    for tensor in stated.outputs:
        if tensor.name in known and known[tensor.name].shape != tensor.shape:
            inferred_text, stated_text = known[tensor.name].describe(), tensor.describe()
            yield f"Output {inferred_text} is as ONNX Runtime infers it, and Triton compares with that; the model file states {stated_text}."


def _check(kind: str, tensor: TensorSpec, backend: Backend, findings: Findings) -> None:
    if tensor.dtype.wire not in backend.dtypes:
        hint = "use backend: onnxruntime, with accelerator: tensorrt for the part that TensorRT can run"
        findings.error("TG101", ("backend",), f"{kind} '{tensor.name}' is {tensor.dtype}, which a TensorRT plan cannot have at its border", hint=hint)
    if tensor.shape is None:
        message = f"{kind} '{tensor.name}' has no shape in the model file, and none can be inferred"
        consequence = "ONNX Runtime reports it to Triton as a scalar, so that it is served as one element"
        findings.advice("TG118", ("source",), message, consequence=consequence, hint="export the model with a shape for it")
    if tensor.shape is not None and 0 in tensor.shape:
        consequence = "Triton refuses a dimension of 0 in a config"
        findings.error(
            "TG102",
            ("source",),
            f"{kind} '{tensor.name}' has a dimension of size 0: {tensor.describe()}",
            consequence=consequence,
            hint="export the model with a real or a variable size",
        )


def concrete_sizes(
    signature: Signature,
    batching: Batching,
    shapes: Mapping[str, ShapeRange],
    samples: Mapping[str, tuple[int, ...]],
    findings: Findings,
    key_of: Callable[[str], Key] = lambda name: ("shapes", name),
) -> dict[str, Sizes]:
    """Sizes of every input for which all variable dimensions are known, from `shapes` or from the shape of a given sample. Says what does not fit.

    A sample of another size than the usual one is warmed up and proved as it is; it must lie within `shapes`, which say what is served.

    `key_of` gives the key of the spec with an input's sizes.
    """
    sizes = {}
    names = {tensor.name: tensor for tensor in signature.inputs}
    for name in shapes.keys() - names.keys():
        known = ", ".join(f"'{known}'" for known in names)
        findings.error("TG103", key_of(name), f"the model has no input '{name}'", hint=f"its inputs are {known}")
    for name, tensor in names.items():
        dims = _inner_dims(tensor, batching)
        given = shapes.get(name)
        if given is not None:
            if fits(tensor, given, batching, key_of(name), findings) and _is_served(name, samples.get(name, given.opt), given, key_of(name), findings):
                sizes[name] = Sizes(given.min, given.opt, given.max)
        elif -1 not in dims:
            sizes[name] = Sizes(dims, dims, dims)
        elif name in samples and len(samples[name]) == len(dims):
            sizes[name] = Sizes(samples[name], samples[name], samples[name])
    return sizes


def _is_served(name: str, sample: tuple[int, ...], given: ShapeRange, key: Key, findings: Findings) -> bool:
    """Whether the model is to be served for the size of a sample; says where not. `key`: of the sizes that the spec gives."""
    if len(sample) == len(given.opt) and all(low <= size <= high for low, size, high in zip(given.min, sample, given.max, strict=True)):
        return True
    wanted = str(list(given.opt)) if given.fixed else f"{list(given.min)} to {list(given.max)}"
    findings.error(
        "TG116",
        ("samples", name),
        f"the sample of '{name}' has the size {list(sample)}, and the model is to be served for {wanted} ({findings.locate(key)})",
        consequence="what is proved and warmed up would be no request that the spec declares",
        hint="give a sample of such a size, or widen the sizes",
    )
    return False


def check_symbols(
    signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings, key_of: Callable[[str], Key] = lambda name: ("shapes", name)
) -> None:
    """Say where dimensions of one name get different sizes: TensorRT takes them to be equal, and refuses a profile in which they cannot be.

    `key_of` gives the key of the spec with an input's sizes.
    """
    first_axis = 1 if batching.max_batch_size else 0
    batch = {symbol_of(tensor.shape[0]) for tensor in signature.inputs if tensor.shape} if first_axis else set()
    seen: dict[str, tuple[str, int, tuple[int, int, int]]] = {}
    for tensor in signature.inputs:
        known = sizes.get(tensor.name)
        if known is None or tensor.shape is None:
            continue
        columns = zip(known.minimum, known.usual, known.maximum, strict=True)
        for axis, (dim, given) in enumerate(zip(tensor.shape[first_axis:], columns, strict=True), 1):
            symbol = symbol_of(dim)
            if not symbol or symbol in batch:
                continue
            other, where, wanted = seen.setdefault(symbol, (tensor.name, axis, given))
            if wanted != given:
                place = f"dimension {where} of '{other}' ({findings.locate(key_of(other))})"
                findings.error(
                    "TG104",
                    key_of(tensor.name),
                    f"dimension {axis} of '{tensor.name}' is the model's '{symbol}', as is {place}, and they are given"
                    f" {_range(given)} and {_range(wanted)} (min, opt, max)",
                    consequence="TensorRT takes dimensions of one name to be equal, and builds nothing for a profile in which they are not",
                    hint=f"give both the same sizes, such as {_range(wanted)}, or rename one of the two in the ONNX file",
                )


def _range(sizes: tuple[int, int, int]) -> str:
    return ", ".join(map(str, sizes))


def fits(tensor: TensorSpec, given: ShapeRange, batching: Batching, key: Key, findings: Findings) -> bool:
    """Whether sizes, which the spec gives at `key`, are possible for an input; says what is wrong with them."""
    dims = _inner_dims(tensor, batching)
    if len(given.opt) != len(dims):
        besides = " besides the batch" if batching.max_batch_size else ""
        message = f"'{tensor.name}' has {len(dims)} dimensions{besides}, and {len(given.opt)} are given; the model has {tensor.describe()}"
        hint = "write the sizes without the batch dimension" if besides else "write all of them: this model does not batch"
        if tensor.shape is None:
            hint = "export the model with a shape for this input: Triton can serve it as one element only"
        findings.error("TG104", key, message, hint=hint)
        return False
    possible = True
    for index, dim in enumerate(dims):
        low, high = given.min[index], given.max[index]
        if dim != -1 and (low, high) != (dim, dim):
            message = f"dimension {index + 1} of '{tensor.name}' is fixed at {dim} in the model, and {low if low == high else f'{low} to {high}'} is given"
            findings.error("TG104", key, message, consequence="Triton refuses requests of another size", hint=f"write {dim} there")
            possible = False
    return possible
