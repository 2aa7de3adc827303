"""One request to a running Triton, with inputs that are given or made up."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tritongen import dtypes
from tritongen.client import Client, ModelMeta, TensorMeta
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.samples import SAMPLES_PARAMETER, Array, SampleError, as_array, random_values


@dataclass(frozen=True)
class Answer:
    """What a model answered. `seconds` is the time of the one request, the connection already made."""

    meta: ModelMeta
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    seconds: float


def make_inputs(meta: ModelMeta, *, given: Mapping[str, object], shapes: Mapping[str, Sequence[int]], batch: int, seed: int = 0) -> dict[str, Array]:
    """Arrays for every input of a model.

    Args:
        meta: what the server says about the model.
        given: arrays or plain values by input name; a whole batch, or one item that is repeated. They win over the values that the model's spec gave.
        shapes: sizes without the batch dimension, by input name. Where an input with variable dimensions is not here, the sizes of the model's own warmup
        sample are used.
        batch: rows, for a model that batches.
        seed: for the values that are made up.

    Raises InputError with everything that does not fit, or cannot be made up.
    """
    problems = [
        Diagnostic("TG062", f"the model has no input '{name}'", hint=f"its inputs are {', '.join(tensor.name for tensor in meta.inputs)}")
        for name in {*given, *shapes} - {tensor.name for tensor in meta.inputs}
    ]
    if batch > 1 and not meta.max_batch_size:
        problems.append(Diagnostic("TG063", f"the model does not batch (max_batch_size: 0), and {batch} rows were asked for", hint="leave --batch out"))
    elif batch > meta.max_batch_size > 0:
        problems.append(
            Diagnostic(
                "TG063", f"the model takes {meta.max_batch_size} rows at most, and {batch} were asked for", hint=f"use --batch {meta.max_batch_size} or less"
            )
        )
    warm = warmup_shapes(meta)
    given = {**sample_values(meta), **given}
    rng = np.random.default_rng(seed)
    arrays = {}
    for tensor in meta.inputs:
        try:
            arrays[tensor.name] = _input(meta, tensor, given.get(tensor.name), shapes.get(tensor.name), warm.get(tensor.name), batch, rng)
        except SampleError as error:
            problems.append(Diagnostic("TG064", f"input '{tensor.name}' {tensor.dtype} {list(tensor.shape)}: {error}", model=meta.name))
    if problems:
        raise InputError(problems)
    return arrays


def _input(
    meta: ModelMeta, tensor: TensorMeta, given: object, shape: Sequence[int] | None, warm: Sequence[int] | None, batch: int, rng: np.random.Generator
) -> Array:
    batched = bool(meta.max_batch_size)
    item = tensor.shape[1:] if batched else tensor.shape
    if given is not None:
        if batched and np.ndim(given) == len(tensor.shape):  # type: ignore[arg-type]
            return as_array(given, tensor.dtype, tensor.shape)
        one = as_array(given, tensor.dtype, item)
        return np.repeat(one[np.newaxis], batch, axis=0) if batched else one
    if shape is not None and (len(shape) != len(item) or any(want not in (-1, size) for want, size in zip(item, shape, strict=True))):
        raise SampleError(f"--shape gives {list(shape)}, and one item has the shape {list(item)} (-1: any size)")
    sizes = tuple(shape or (warm if warm is not None and -1 in item else item))
    if -1 in sizes:
        raise SampleError(f"its size is not known; give it with --shape {tensor.name}={'x'.join('?' if size == -1 else str(size) for size in item)}")
    return random_values(tensor.dtype, (batch, *sizes) if batched else sizes, rng)


def warmup_shapes(meta: ModelMeta) -> dict[str, tuple[int, ...]]:
    """The sizes of one item that the model's config warms up, by input name; empty where it has no warmup."""
    samples = meta.config.get("model_warmup") or ()
    if not samples:
        return {}
    return {name: tuple(int(size) for size in value.get("dims", ())) for name, value in samples[0].get("inputs", {}).items()}


def sample_values(meta: ModelMeta) -> dict[str, object]:
    """The values that the model's spec gives for inputs that cannot be guessed; empty for a config that tritongen did not write."""
    text = meta.config.get("parameters", {}).get(SAMPLES_PARAMETER, {}).get("string_value", "{}")
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return values if isinstance(values, dict) else {}


def ask(client: Client, model: str, *, given: Mapping[str, object], shapes: Mapping[str, Sequence[int]], batch: int = 1, seed: int = 0) -> Answer:
    """Make inputs, send them, and time the request. Raises InputError and InferenceError."""
    meta = client.meta(model)
    inputs = make_inputs(meta, given=given, shapes=shapes, batch=batch, seed=seed)
    start = time.perf_counter()
    outputs = client.infer(model, inputs, meta=meta)
    return Answer(meta, inputs, outputs, time.perf_counter() - start)


def statistics(array: Array) -> str:
    """Smallest, mean and largest value of numbers, with a count of what is not finite; the first element of text."""
    if array.size == 0:
        return "no elements"
    if array.dtype == object:
        return f"first {array.ravel()[0]!r:.40}"
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    text = f"min {finite.min():.4g}  mean {finite.mean():.4g}  max {finite.max():.4g}" if finite.size else "no finite value"
    missing = values.size - finite.size
    return f"{text}  not finite {missing}" if missing else text


def dtype_name(array: Array) -> str:
    """Triton's name of an array's dtype."""
    return next((dtype.wire for dtype in dtypes.DTYPES if dtype.itemsize is not None and dtype.numpy == array.dtype), "BYTES")
