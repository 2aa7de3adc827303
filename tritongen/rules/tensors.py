"""Rules: inputs and outputs as the core checks them, before it asks a backend.

Tried on core 2.51.0: each refusal here is the server's. What only a model file can contradict is in `onnx_models`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tritongen.modelconfig import DataType
from tritongen.rules import batch_tensors, labels
from tritongen.rules.completed import max_batch_size, states_its_interface
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.rules.shapes import reshape_problem, written, wrong_entries

_CORE = "(`ValidateModelInput` and `ValidateModelOutput`, core/src/model_config_utils.cc)"
_FORMAT_RANK = 3


def _tensors(context: ModelContext) -> Iterator[tuple[str, Key, Any]]:
    """Every declared input and output: how to call it, where it is, and itself."""
    for kind in ("input", "output"):
        for index, tensor in enumerate(getattr(context.config, kind)):
            yield (f"{kind} '{tensor.name}'" if tensor.name else f"{kind} number {index + 1}"), (kind, index), tensor


def _may_be_filled_in(context: ModelContext) -> bool:
    """Whether a backend may still add the data type and the dims: only where it knows the tensor by its name from the model file."""
    return (context.is_plan or context.is_onnx) and not states_its_interface(context)


def _names(context: ModelContext) -> Iterator[Finding]:
    for label, key, tensor in _tensors(context):
        if not tensor.name:
            signature = context.signature
            candidates = [spec.name for spec in (getattr(signature, f"{key[0]}s") if signature else ())]
            hint = (
                f"write the tensor's name in the model, one of {', '.join(candidates)}"
                if candidates
                else 'write `name: "..."` with the tensor\'s name in the model'
            )
            yield Finding(f"{label} has no name", key, hint)


def _types(context: ModelContext) -> Iterator[Finding]:
    for label, key, tensor in _tensors(context):
        if tensor.data_type == 0 and not _may_be_filled_in(context):
            yield Finding(
                f"{label} has no data_type",
                key,
                f"write `data_type: {_known_type(context, key, tensor.name) or 'TYPE_FP32'}`, or whichever type the tensor has",
            )
        elif tensor.data_type not in DataType.values():
            message = f"{label} has the data_type {tensor.data_type}, which stands for no type; Triton loads the model and no request's type matches"
            yield Finding(message, (*key, "data_type"), "write a type by its name, such as `data_type: TYPE_FP32`", consequence=Consequence.FAILS)


def _known_type(context: ModelContext, key: Key, name: str) -> str:
    specs = getattr(context.signature, f"{key[0]}s") if context.signature else ()
    return next((str(spec.dtype.config) for spec in specs if spec.name == name), "")


def _dims(context: ModelContext) -> Iterator[Finding]:
    for label, key, tensor in _tensors(context):
        if not tensor.dims:
            if not _may_be_filled_in(context):
                yield Finding(
                    f"{label} has no dims",
                    (*key, "dims"),
                    "write `dims: [...]` without the batch dimension; a scalar, and a tensor that has only the batch dimension, is written `dims: [1]`",
                )
            continue
        for index, dim in enumerate(tensor.dims):
            if dim < 1 and dim != -1:
                message = f"{label} has the dimension {dim} in dims {written(tensor.dims)}; expected 1 or more, or -1 for a variable size"
                yield Finding(message, (*key, "dims", index), "write the size, or -1 where it varies")


def _reshapes(context: ModelContext) -> Iterator[Finding]:
    # Where nothing says whether the model batches, an empty reshape may be right.
    size = max_batch_size(context)
    for label, key, tensor in _tensors(context):
        if not tensor.HasField("reshape") or not tensor.dims or wrong_entries(tensor.dims):
            continue
        shape, place = list(tensor.reshape.shape), (*key, "reshape", "shape")
        if wrong := wrong_entries(shape):
            yield Finding(
                f"{label} has {wrong[0]} in its reshape {written(shape)}; expected 1 or more, or -1", place, "write the size, or -1 where dims have -1 too"
            )
        elif problem := reshape_problem(list(tensor.dims), shape, batches=size is None or size > 0):
            hint = (
                "leave the reshape out; dims alone give the shape"
                if not shape or "in front" in problem
                else f"write a reshape with the elements of dims {written(tensor.dims)}, or leave it out"
            )
            yield Finding(f"{label} cannot be reshaped from {written(tensor.dims)} to {written(shape)}: {problem}", place, hint)


def _formats(context: ModelContext) -> Iterator[Finding]:
    for index, tensor in enumerate(context.config.input):
        if tensor.format and tensor.dims and len(tensor.dims) != _FORMAT_RANK:
            name = "FORMAT_NHWC" if tensor.format == 1 else "FORMAT_NCHW"
            message = (
                f"input '{tensor.name}' is {name} and has {len(tensor.dims)} dims {written(tensor.dims)}; a format needs exactly 3, without the batch dimension"
            )
            with_batch = len(tensor.dims) == _FORMAT_RANK + 1 and tensor.dims[0] in (-1, 1) and context.config.max_batch_size > 0
            fix = f"write `dims: {written(tensor.dims[1:])}`: max_batch_size already implies the batch dimension" if with_batch else "leave `format` out"
            yield Finding(message, ("input", index, "format"), f"{fix}; Triton converts no layout, whatever the format says")


def _plan_flags(context: ModelContext) -> Iterator[Finding]:
    resolved = context.resolved
    if not resolved.platform and not resolved.backend:
        return
    for label, key, tensor in _tensors(context):
        for flag in ("is_shape_tensor", "is_non_linear_format_io"):
            if not getattr(tensor, flag):
                continue
            if resolved.platform != "tensorrt_plan":
                yield Finding(
                    f"{label} sets {flag}, which only TensorRT plans know; this model's backend is '{resolved.backend}'", (*key, flag), f"remove `{flag}: true`"
                )
            elif flag == "is_non_linear_format_io" and tensor.dims and len(tensor.dims) != _FORMAT_RANK:
                yield Finding(
                    f"{label} sets {flag} and has {len(tensor.dims)} dims; such a tensor has exactly 3",
                    (*key, flag),
                    "write 3 dims, without the batch dimension",
                )


def _duplicates(context: ModelContext) -> Iterator[Finding]:
    for kind in ("input", "output"):
        counts = Counter(tensor.name for tensor in getattr(context.config, kind))
        seen: set[str] = set()
        for index, tensor in enumerate(getattr(context.config, kind)):
            if tensor.name in seen and tensor.name:
                yield _duplicate(context, kind, index, tensor.name, counts[tensor.name])
            seen.add(tensor.name)


def _duplicate(context: ModelContext, kind: str, index: int, name: str, count: int) -> Finding:
    if kind == "output":
        labelled = sum(bool(tensor.label_filename) for tensor in context.config.output if tensor.name == name) > 1
        return Finding(
            f"output '{name}' is declared {count} times" + (", more than once with a label file" if labelled else "; a response carries it once"),
            (kind, index, "name"),
            "remove all but one",
            consequence=Consequence.REFUSED if labelled else Consequence.IGNORED,
        )
    refused = context.is_onnx or context.is_plan
    outcome = "the backend counts one more input than the model has" if refused else f"every request is told that one of {count} inputs is missing"
    # A warmup is a request that is sent while loading.
    consequence = Consequence.REFUSED if refused or context.config.model_warmup else Consequence.FAILS
    return Finding(
        f"input '{name}' is declared {count} times; {outcome}",
        (kind, index, "name"),
        "remove all but one, or write the other input's name",
        consequence=consequence,
    )


def _ragged(context: ModelContext) -> Iterator[Finding]:
    size = max_batch_size(context)
    if size is None or size > 1:
        return
    for index, tensor in enumerate(context.config.input):
        if tensor.allow_ragged_batch:
            message = f"input '{tensor.name}' allows ragged batches, and max_batch_size is {size}: requests are never combined"
            yield Finding(message, ("input", index, "allow_ragged_batch"), "set max_batch_size above 1, or remove `allow_ragged_batch`")


RULES: tuple[Rule, ...] = (
    Rule(
        "TG250",
        "unnamed-tensor",
        Consequence.REFUSED,
        "Every input and output has a name.",
        f"Triton matches a request's tensors by name, and refuses a config with an unnamed one {_CORE}.",
        "input [ { data_type: TYPE_FP32 dims: [4] } ]",
        'input [ { name: "x" data_type: TYPE_FP32 dims: [4] } ]',
        check=_names,
    ),
    Rule(
        "TG251",
        "missing-data-type",
        Consequence.REFUSED,
        "Every input and output has a data type that Triton knows.",
        f"Without a data_type the model is refused {_CORE}. A number that stands for no type is loaded, and every request is answered with 'expects "
        "<invalid>' (tried on 24.10).",
        'input [ { name: "x" dims: [4] } ]',
        'input [ { name: "x" data_type: TYPE_FP32 dims: [4] } ]',
        check=_types,
    ),
    Rule(
        "TG252",
        "invalid-dims",
        Consequence.REFUSED,
        "Every input and output has dims, each 1 or more, or -1 for a variable size.",
        f"Triton refuses dims that are missing, 0, or below -1 {_CORE}. There are no scalars: write `dims: [1]`.",
        'input [ { name: "x" data_type: TYPE_FP32 dims: [0] } ]',
        'input [ { name: "x" data_type: TYPE_FP32 dims: [-1] } ]',
        check=_dims,
    ),
    Rule(
        "TG253",
        "invalid-reshape",
        Consequence.REFUSED,
        "A reshape holds as many elements as dims, between any two variable dimensions too, and is not empty in a model without batching.",
        "`ValidateIOShape` (core/src/model_config_utils.cc) compares the products of the fixed sizes before, between and behind the -1 of both. `reshape { "
        "shape: [] }` is for batching "
        "models whose tensor has only the batch dimension.",
        'input [ { name: "x" data_type: TYPE_FP32 dims: [4] reshape { shape: [-1, 4] } } ]',
        'input [ { name: "x" data_type: TYPE_FP32 dims: [4] reshape { shape: [2, 2] } } ]',
        check=_reshapes,
    ),
    Rule(
        "TG254",
        "format-without-three-dims",
        Consequence.REFUSED,
        "An input with FORMAT_NCHW or FORMAT_NHWC has exactly three dims.",
        f"The format is only a check of the rank, without the batch dimension {_CORE}; Triton converts no layout.",
        'input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [1, 3, 8, 8] } ]',
        'input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [3, 8, 8] } ]',
        check=_formats,
    ),
    Rule(
        "TG255",
        "plan-flag-elsewhere",
        Consequence.REFUSED,
        "Shape tensors and non-linear formats are for TensorRT plans only.",
        "The core refuses both flags on any other platform, and a non-linear format without exactly three dims (`ValidateModelInput`, "
        "`ValidateNonLinearFormatIO`, "
        "core/src/model_config_utils.cc).",
        'platform: "onnxruntime_onnx"\ninput [ { name: "n" data_type: TYPE_INT32 dims: [2] is_shape_tensor: true } ]',
        'platform: "onnxruntime_onnx"\ninput [ { name: "n" data_type: TYPE_INT32 dims: [2] } ]',
        check=_plan_flags,
    ),
    Rule(
        "TG257",
        "duplicate-tensor",
        Consequence.FAILS,
        "No two inputs have one name, and no two outputs.",
        "The core checks no names. The onnxruntime backend refuses a doubled input ('configuration expects 2 inputs, model provides 1'); other backends "
        "load it and every request fails "
        "('expected 2 inputs but got 1'). A doubled output is given once; with two label files it is refused ('multiple label "
        "files', core/src/label_provider.cc; tried on 24.10).",
        'input [ { name: "x" data_type: TYPE_FP32 dims: [4] }, { name: "x" data_type: TYPE_FP32 dims: [4] } ]',
        'input [ { name: "x" data_type: TYPE_FP32 dims: [4] }, { name: "w" data_type: TYPE_FP32 dims: [4] } ]',
        check=_duplicates,
    ),
    Rule(
        "TG259",
        "ragged-without-batching",
        Consequence.IGNORED,
        "`allow_ragged_batch` needs a max_batch_size above 1.",
        "It lifts the demand that requests of one batch have equal shapes (core/src/scheduler_utils.cc); where no batch of several requests is formed there "
        "is nothing to lift.",
        'max_batch_size: 1\ninput [ { name: "x" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true } ]',
        'max_batch_size: 8\ninput [ { name: "x" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true } ]',
        check=_ragged,
    ),
    *batch_tensors.RULES,
    *labels.RULES,
)
