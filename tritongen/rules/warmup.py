"""Rules: warmup samples. What a sample lacks or has too much of is found here; the files it names are in `warmup_data`.

Sources: GenerateWarmupData and WarmUp in core/src/backend_model_instance.cc; every row was tried on 24.10.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from tritongen import dtypes
from tritongen.modelconfig import DataType
from tritongen.rules import warmup_data
from tritongen.rules.completed import Interface, Tensor, interface
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.rules.warmup_data import input_key, run_samples, title


def _served(context: ModelContext) -> tuple[Interface | None, dict[str, Tensor]]:
    """The interface that samples must fit, where it is known, and its inputs by name; shape tensors, whose samples are values, are not judged."""
    served = interface(context)
    if served is None:
        return None, {}
    shapes = {tensor.name for tensor in context.config.input if tensor.is_shape_tensor}
    return served, {tensor.name: tensor for tensor in served.inputs if tensor.name not in shapes}


def _skipped(context: ModelContext) -> Iterator[Finding]:
    for index, sample in enumerate(() if context.is_ensemble else context.config.model_warmup):
        if not sample.batch_size:
            yield Finding(
                f"{title(sample, index)} has no batch_size, so Triton leaves it out; the model is not warmed up with it",
                ("model_warmup", index),
                "write `batch_size: 1` (with max_batch_size 0 no other is allowed)",
            )


def _too_large(context: ModelContext) -> Iterator[Finding]:
    served = interface(context)
    if served is None or served.max_batch_size < 0:
        return
    most = max(1, served.max_batch_size)
    for index, sample in run_samples(context):
        if sample.batch_size > most:
            limit = f"max_batch_size is {served.max_batch_size}" if served.max_batch_size else "the model does not batch (max_batch_size is 0)"
            yield Finding(
                f"{title(sample, index)} has batch_size {sample.batch_size}, and {limit}; the warmup fails while it runs, which can crash the whole "
                f"server (24.10: 23 of 40 starts)",
                ("model_warmup", index, "batch_size"),
                f"write `batch_size: {most}`",
            )


def _variable(context: ModelContext) -> Iterator[Finding]:
    for index, sample in run_samples(context):
        for name, item in sorted(sample.inputs.items()):
            if -1 in item.dims:
                yield Finding(
                    f"{title(sample, index)} has dims {list(item.dims)} for '{name}'; a sample has a definite size",
                    input_key(index, name, "dims"),
                    f"write a number in place of each -1, such as `dims: {[16 if dim == -1 else dim for dim in item.dims]}`",
                )


def _shape(context: ModelContext) -> Iterator[Finding]:
    served, inputs = _served(context)
    for index, sample in run_samples(context):
        for name, item in sorted(sample.inputs.items()):
            tensor, dims = inputs.get(name), tuple(item.dims)
            if tensor is None or served is None or -1 in dims or not tensor.dims or _fits(dims, tensor.dims):
                continue
            wanted = tuple(1 if dim == -1 else dim for dim in tensor.dims)
            if served.batches and len(dims) == len(tensor.dims) + 1 and _fits(dims[1:], tensor.dims):
                why, wanted = "; the batch dimension is not written, batch_size says it", dims[1:]
            else:
                why = ""
            yield Finding(
                f"{title(sample, index)} has dims {list(dims)} for '{name}'; the input has {list(tensor.dims)}{why}",
                input_key(index, name, "dims"),
                f"write `dims: {list(wanted)}`",
            )


def _fits(dims: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(dims) == len(wanted) and all(dim == want or (want == -1 and dim >= 0) for dim, want in zip(dims, wanted, strict=True))


def _dtype(context: ModelContext) -> Iterator[Finding]:
    _, inputs = _served(context)
    for index, sample in run_samples(context):
        for name, item in sorted(sample.inputs.items()):
            tensor = inputs.get(name)
            if tensor is None or not tensor.dtype or item.data_type == tensor.dtype:
                continue
            found = f"data_type {DataType.Name(item.data_type)}" if item.data_type in DataType.values()[1:] else "no data_type"
            yield Finding(
                f"{title(sample, index)} has {found} for '{name}'; the input is {tensor.type_name}",
                input_key(index, name, "data_type") if item.data_type else input_key(index, name),
                f"write `data_type: {tensor.type_name}`",
            )


def _inputs(context: ModelContext) -> Iterator[tuple[int, Any, list[str], list[str]]]:
    """Each sample with its unknown names and the required inputs that it lacks."""
    served = interface(context)
    if served is None or not served.inputs:
        return
    sequences = context.config.sequence_batching
    known = {tensor.name for tensor in (*served.inputs, *sequences.control_input)} | {state.input_name for state in sequences.state}
    required = [tensor.name for tensor in served.inputs if not tensor.optional]
    if context.is_onnx or context.is_plan:
        required += [tensor.name for tensor in sequences.control_input if tensor.name not in required]
    for index, sample in run_samples(context):
        yield index, sample, sorted(name for name in sample.inputs if name not in known), [name for name in required if name not in sample.inputs]


def _unknown(context: ModelContext) -> Iterator[Finding]:
    for index, sample, unknown, missing in _inputs(context):
        if missing:
            effect = f"; the input{'s' if len(missing) > 1 else ''} {', '.join(missing)} must be given"
        elif context.is_onnx:
            effect = "; onnxruntime refuses it while the warmup runs, which can crash the whole server"
        else:
            effect = "; Triton hands it to the backend all the same, which may pass over it"
        for name in unknown:
            likely = difflib.get_close_matches(name, missing, 1, 0.0)
            yield Finding(
                f"{title(sample, index)} has a value for '{name}', which is no input{effect}",
                input_key(index, name),
                f'write `key: "{likely[0]}"`' if likely else "remove it",
                consequence=Consequence.REFUSED if missing or context.is_onnx else Consequence.IGNORED,
            )


def _lacking(context: ModelContext) -> Iterator[Finding]:
    served, inputs = _served(context)
    for index, sample, unknown, missing in _inputs(context):
        if unknown or not missing:
            continue
        assert served is not None
        controls = {tensor.name: tensor for tensor in context.config.sequence_batching.control_input}
        examples = " ".join(_example(inputs[name]) if name in inputs else _control_example(controls[name]) for name in missing if name in inputs | controls)
        yield Finding(
            f"{title(sample, index)} has no value for {', '.join(missing)}", ("model_warmup", index), f"add {examples}" if examples else "add every input"
        )


def _example(tensor: Tensor) -> str:
    dims = [1 if dim == -1 else dim for dim in tensor.dims]
    return _written(tensor.name, tensor.type_name, dims)


def _control_example(tensor: Any) -> str:
    """Of a control tensor: one value of the type of what it says."""
    types = {"int32_false_true": "TYPE_INT32", "fp32_false_true": "TYPE_FP32", "bool_false_true": "TYPE_BOOL"}
    given = next((name for control in tensor.control for field, name in types.items() if getattr(control, field)), "")
    return _written(tensor.name, given or next((DataType.Name(control.data_type) for control in tensor.control if control.data_type), "..."), [1])


def _written(name: str, data_type: str, dims: list[int]) -> str:
    return f'`inputs {{ key: "{name}" value {{ data_type: {data_type} dims: {dims} zero_data: true }} }}`'


def _values(context: ModelContext) -> Iterator[Finding]:
    for index, sample in run_samples(context):
        for name, item in sorted(sample.inputs.items()):
            kind = item.WhichOneof("input_data_type")
            if kind not in ("zero_data", "random_data"):
                continue
            dtype = dtypes.from_config(item.data_type) if item.data_type in DataType.values()[1:] else None
            key, where = input_key(index, name, kind), f"{title(sample, index)}, input '{name}'"
            if not getattr(item, kind):
                other = "zeros are sent" if kind == "zero_data" else "random bytes are sent"
                yield Finding(f"{where}: `{kind}: false` means the same as true; {other}", key, f"write `{kind}: true`", consequence=Consequence.IGNORED)
            elif kind == "random_data" and dtype is not None and dtype.wire == "BYTES":
                yield Finding(
                    f"{where}: random_data gives empty strings",
                    key,
                    "write `zero_data: true`, or name a file with `input_data_file`",
                    consequence=Consequence.IGNORED,
                )
            elif kind == "random_data" and dtype is not None and dtype.is_integer and dtype.itemsize != 1:
                yield Finding(
                    f"{where}: random_data is random bytes, so {dtype} values of any size; where they are indices or token ids the warmup fails, and "
                    f"may crash the server",
                    key,
                    "write `zero_data: true`, or name a file with `input_data_file`",
                )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG310",
        "warmup-without-batch-size",
        Consequence.IGNORED,
        "A warmup sample has a batch_size.",
        "An absent or zero batch_size makes Triton skip the sample with a line at --log-verbose=1 only, even where the rest of it is wrong "
        "(core/src/backend_model_instance.cc, "
        "GenerateWarmupData; tried on 24.10).",
        'model_warmup [ { name: "w" inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] zero_data: true } } } ]',
        'model_warmup [ { name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] zero_data: true } } } ]',
        check=_skipped,
    ),
    Rule(
        "TG311",
        "warmup-batch-too-large",
        Consequence.REFUSED,
        "A warmup sample's batch_size is at most max_batch_size, and 1 for a model that does not batch.",
        "The requests fail while they run: 'failed to run warmup sample ... max allowed is 8'. In the clean-up after it, core 2.51.0 (24.10) often "
        "crashes (SIGSEGV in "
        "TritonBackendThread::StopBackendThread), and every other model with it (tried: 23 of 40 starts).",
        'max_batch_size: 8\nmodel_warmup [ { name: "w" batch_size: 16 ... } ]',
        'max_batch_size: 8\nmodel_warmup [ { name: "w" batch_size: 8 ... } ]',
        check=_too_large,
    ),
    Rule(
        "TG312",
        "warmup-with-variable-dims",
        Consequence.REFUSED,
        "A warmup sample has no -1 in its dims.",
        "'warmup setting expects all variable-size dimensions are specified' (core/src/backend_model_instance.cc, GenerateWarmupData; tried on 24.10).",
        'inputs { key: "x" value { data_type: TYPE_FP32 dims: [-1] zero_data: true } }',
        'inputs { key: "x" value { data_type: TYPE_FP32 dims: [16] zero_data: true } }',
        check=_variable,
    ),
    Rule(
        "TG313",
        "warmup-of-another-shape",
        Consequence.REFUSED,
        "A warmup sample's dims fit the input's dims, without the batch dimension.",
        "'unexpected shape for input'. The batch dimension is made from batch_size; where the input has a reshape, dims count, and not the reshape "
        "(core/src/infer_request.cc; tried on 24.10).",
        'input [ { name: "x" dims: [64] ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { dims: [1, 64] ... } } } ]',
        'input [ { name: "x" dims: [64] ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { dims: [64] ... } } } ]',
        check=_shape,
    ),
    Rule(
        "TG314",
        "warmup-of-another-type",
        Consequence.REFUSED,
        "A warmup sample's data_type is the input's.",
        "'data-type is INT32, but model expects FP32' (core/src/infer_request.cc; tried on 24.10). It has to be written; nothing is taken from the input.",
        'input [ { name: "x" data_type: TYPE_FP32 ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { data_type: TYPE_INT32 ... } } } ]',
        'input [ { name: "x" data_type: TYPE_FP32 ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 ... } } } ]',
        check=_dtype,
    ),
    Rule(
        "TG315",
        "warmup-of-unknown-input",
        Consequence.REFUSED,
        "A warmup sample names inputs of the model.",
        "Where a required input is lacking, Triton refuses the model with a misleading 'expected 1 inputs but got 0'. One too many it hands to the "
        "backend, as it does not check the "
        "names of warmups: onnxruntime then fails to run ('Invalid input name'), a Python model never asks for it "
        "(core/src/backend_model_instance.cc; tried on 24.10).",
        'input [ { name: "x" ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "X" value { ... } } } ]',
        'input [ { name: "x" ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { ... } } } ]',
        check=_unknown,
    ),
    Rule(
        "TG316",
        "warmup-lacks-an-input",
        Consequence.REFUSED,
        "A warmup sample gives every input that is not optional.",
        "'missing required input(s)' (core/src/infer_request.cc; tried on 24.10). Control tensors of sequences are among them, since a warmup "
        "passes the sequence batcher by: without one, a model of the onnxruntime backend fails with 'Missing Input' and is not loaded, or the server ends "
        "(signal 11; both seen on 24.10).",
        'input [ { name: "x" ... }, { name: "z" ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { ... } } } ]',
        'input [ { name: "x" ... }, { name: "z" ... } ]\nmodel_warmup [ { batch_size: 1 inputs { key: "x" value { ... } } inputs { key: "z" value { '
        "... } } } ]",
        check=_lacking,
    ),
    *warmup_data.RULES,
    Rule(
        "TG319",
        "warmup-values",
        Consequence.FRAGILE,
        "A warmup sample's values are ones that the model can take.",
        "random_data is random bytes: integers of any size, NaN and infinity among floats, and empty strings. zero_data and random_data choose by "
        "being there, whatever their value "
        "(core/src/backend_model_instance.cc, GenerateWarmupData; tried on 24.10).",
        'inputs { key: "ids" value { data_type: TYPE_INT64 dims: [16] random_data: true } }',
        'inputs { key: "ids" value { data_type: TYPE_INT64 dims: [16] zero_data: true } }',
        check=_values,
    ),
)
