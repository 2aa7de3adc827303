"""Warmup samples: the batch sizes that were decided, the sizes that are known, the values that were given, zeros for the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from tritongen.batching import Batching
from tritongen.dtypes import from_config
from tritongen.render.findings import Findings
from tritongen.render.sequences import filled_tensors
from tritongen.render.tensors import Sizes, item_dims
from tritongen.samples import SAMPLES_PARAMETER, Array, Feed, raw_bytes
from tritongen.signature import Signature
from tritongen.spec import ModelSpec

OVERLAID = "model_warmup"
"""The field of the overlay that takes the place of what `warmup` derives: for random data, several runs, and samples that differ."""

_MOST_ELEMENTS = 16


def warmed_sizes(model: ModelSpec, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings) -> tuple[int, ...]:
    """The batch sizes to warm up; none where that is asked for, or where a variable dimension has no known size (with a finding)."""
    asked = model.warmup
    if OVERLAID in model.config:
        message = "the samples of config: model_warmup take the place of those that would be derived, and are not run here"
        consequence = "a warmup sample that fails while it executes can crash the whole server"
        findings.advice("TG140", ("config", OVERLAID), message, consequence=consequence, hint="try them on a server that may end")
        return ()
    has_states = bool(filled_tensors(model).states)
    if has_states and asked not in ("auto", ()):
        findings.idle(
            ("warmup",),
            "warmup has no effect: a model with states is not warmed up",
            consequence="a warmup belongs to no sequence, and so Triton has no state for it",
            hint="remove warmup, and send a first sequence before clients do",
        )
    if has_states or asked == ():
        _say_late_engine(model, findings)
        return ()
    wanted = batching.warmed if asked == "auto" else tuple(asked)
    if asked != "auto" and batching.max_batch_size == 0 and wanted != (1,):
        findings.error(
            "TG120",
            ("warmup",),
            "the model does not batch, so only the size 1 can be warmed up",
            consequence="Triton refuses other sizes while loading",
            hint="write warmup: [1]",
        )
    unknown = [tensor for tensor in signature.inputs if tensor.name not in sizes]
    if not unknown:
        return wanted
    if findings.has_errors:
        # With a wrong size or name among the errors, a size that is not known is no news.
        return ()
    message = f"no warmup: the size of {', '.join(tensor.describe() for tensor in unknown)} is not known"
    hint = (
        "give it in shapes:, such as "
        + "; ".join(f"{tensor.name}: {_example(tensor, batching)}" for tensor in unknown)
        + " (`tritongen init` finds sizes that run)"
    )
    if asked == "auto":
        findings.advice("TG121", ("warmup",), message, consequence="the first requests after a start are slow", hint=hint)
    else:
        findings.error("TG121", ("warmup",), message, hint=hint)
    return ()


def _say_late_engine(model: ModelSpec, findings: Findings) -> None:
    """Say who waits for TensorRT where nothing is warmed up."""
    if model.accelerator == "tensorrt":
        kept = model.onnxruntime.tensorrt.engine_cache
        findings.advice(
            "TG187",
            ("warmup",),
            "nothing is warmed up, so that TensorRT builds the model's engine when the first request comes",
            consequence=f"the first client {'of a server whose engine cache is empty' if kept else 'after every start'} waits for the build, often for minutes",
            hint="leave warmup out, so that the engine is there before the model is ready, or send a request before clients do",
        )


def _example(tensor: Any, batching: Batching) -> str:
    return "[" + ", ".join("..." if dim == -1 else str(dim) for dim in item_dims(tensor, batching)) + "]"


def add_warmup(
    config: Any, signature: Signature, batching: Batching, warmed: tuple[int, ...], sizes: Mapping[str, Sizes], values: Mapping[str, Array]
) -> dict[PurePosixPath, bytes]:
    """Write one `model_warmup` sample for each size and return the data files they need, by path in the model's folder.

    Controls of sequences are in them, though no input is: a warmup passes the sequence batcher by (message ModelWarmup of model_config.proto).
    Zeros where no value was given: Triton's own `random_data` is random *bytes*, NaN and out-of-range indices included.
    """
    files: dict[PurePosixPath, bytes] = {}
    # A plan may have narrower integers than the model file.
    types = {tensor.name: tensor.dtype for tensor in signature.inputs} | {declared.name: from_config(declared.data_type) for declared in config.input}
    if warmed:
        for index, (name, value) in enumerate(sorted(values.items())):
            # Tensor names may hold characters that file names may not.
            files[PurePosixPath("warmup", f"input{index}")] = raw_bytes(value, types[name])
    names = {name: f"input{index}" for index, name in enumerate(sorted(values))}
    for size in warmed:
        sample = config.model_warmup.add(name=f"batch {size}", batch_size=size)
        for tensor in signature.inputs:
            item = sample.inputs[tensor.name]
            item.data_type = types[tensor.name].config_value
            item.dims.extend((values[tensor.name].shape if tensor.name in values else sizes[tensor.name].usual) or (1,))
            if tensor.name in names:
                item.input_data_file = names[tensor.name]
            else:
                item.zero_data = True
    return files


def follow_inputs(config: Any, model: ModelSpec) -> None:
    """Give the samples that were derived the types of the inputs, which an overlay may have changed; whether those fit the model is said of the inputs."""
    if OVERLAID in model.config:
        return
    types = {tensor.name: tensor.data_type for tensor in config.input}
    for sample in config.model_warmup:
        for name, item in sample.inputs.items():
            item.data_type = types.get(name, item.data_type)


def add_samples(config: Any, values: Mapping[str, Array]) -> None:
    """Leave the given values in the config, so that whoever only has the server's address can make a valid request too.

    Backends ignore parameters that they do not know. Only small values: a config is no place for data.
    """
    small = {name: value.tolist() for name, value in sorted(values.items()) if value.size <= _MOST_ELEMENTS and value.dtype != object}
    if small:
        config.parameters[SAMPLES_PARAMETER].string_value = json.dumps(small)


def warmup_feeds(signature: Signature, batching: Batching, warmed: tuple[int, ...], sizes: Mapping[str, Sizes], values: Mapping[str, Array]) -> dict[int, Feed]:
    """The same samples for ONNX Runtime: batch size → inputs in the model's own shapes."""
    if not warmed:
        return {}
    made = {tensor.name: (tensor.dtype, sizes[tensor.name].usual) for tensor in signature.inputs if tensor.name not in values}
    return {size: Feed(values, made, size if batching.max_batch_size else None) for size in warmed}
