"""One request to a running Triton, with inputs that are given or made up."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tritongen import dtypes
from tritongen.client import Client, ModelMeta
from tritongen.samples import Array
from tritongen.workflow.inputs import Origin, make_inputs, prepare_inputs, sample_values

__all__ = ["Answer", "ask", "dtype_name", "make_inputs", "sample_values", "statistics"]


@dataclass(frozen=True)
class Answer:
    """What a model answered. `seconds` is the time of the one request, the connection already made; `origins` says where each input came from."""

    meta: ModelMeta
    inputs: Mapping[str, Array]
    origins: Mapping[str, Origin]
    outputs: Mapping[str, Array]
    seconds: float


def ask(client: Client, model: str, *, given: Mapping[str, object], shapes: Mapping[str, Sequence[int]], batch: int | None = None, seed: int = 0) -> Answer:
    """Make inputs, send them, and time the request; the arguments are those of `prepare_inputs`. Raises InputError and InferenceError."""
    meta = client.meta(model)
    prepared = prepare_inputs(meta, given=given, shapes=shapes, batch=batch, seed=seed)
    start = time.perf_counter()
    outputs = client.infer(model, prepared.arrays, meta=meta)
    return Answer(meta, prepared.arrays, prepared.origins, outputs, time.perf_counter() - start)


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
