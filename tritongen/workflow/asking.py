"""One request to a running Triton, with inputs that are given or made up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tritongen import dtypes
from tritongen.client import Client, ModelMeta
from tritongen.samples import Array
from tritongen.workflow.inputs import Origin, make_inputs, prepare_inputs

__all__ = ["Answer", "ask", "dtype_name", "make_inputs", "statistics"]

_PIECE = 1 << 20


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
    result = client.infer(model, prepared.arrays)
    return Answer(meta, prepared.arrays, prepared.origins, result, result.timings.total)


def statistics(array: Array) -> str:
    """Smallest, mean and largest value of numbers, with a count of what is not finite; the first element of text."""
    if array.size == 0:
        return "no elements"
    if array.dtype == object:
        return f"first {array.ravel()[0]!r:.40}"
    least, most, total, count = math.inf, -math.inf, 0.0, 0
    flat = array.reshape(-1)
    # In pieces: a request may hold 2 GiB, and all of it as float64 would take four times that and more.
    for start in range(0, flat.size, _PIECE):
        values = flat[start : start + _PIECE].astype(np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            least, most, total, count = min(least, finite.min()), max(most, finite.max()), total + finite.sum(), count + finite.size
    text = f"min {least:.4g}  mean {total / count:.4g}  max {most:.4g}" if count else "no finite value"
    missing = flat.size - count
    return f"{text}  not finite {missing}" if missing else text


def dtype_name(array: Array) -> str:
    """Triton's name of an array's dtype."""
    return next((dtype.wire for dtype in dtypes.DTYPES if dtype.itemsize is not None and dtype.numpy == array.dtype), "BYTES")
