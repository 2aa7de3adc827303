"""What NVIDIA's backends make of the requests of a ragged batch: the tensors of `batch_input`, and the shapes of outputs that `batch_output` splits.

Sources: backend/src/backend_input_collector.cc (`BatchInputShape`, `ProcessBatchInput`) and backend/src/backend_output_responder.cc (`ProcessBatchOutput`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

from .judge import shape_of

Shape = Sequence[int]
"""A shape as one request has it, batch dimension included."""


@dataclass(frozen=True)
class BatchTensor:
    """A tensor of a `batch_input`: its shape, and its elements row by row."""

    shape: tuple[int, ...]
    values: tuple[int, ...]


def batch_tensor(kind: str, shapes: Sequence[Shape]) -> BatchTensor:
    """The tensor that a `batch_input` of this kind is for an execution whose requests have the source input in these shapes.

    `kind` is a name of `BatchInput.Kind`. The counts are of elements, the batch dimension counted in. What `BATCH_MAX_ELEMENT_COUNT_AS_SHAPE` holds is left
    undefined by Triton; here it is zeros. Raises KeyError for a kind that there is not.
    """
    counts = [prod(shape) for shape in shapes]
    if kind == "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE":
        most = max(counts, default=0)
        return BatchTensor((most,), (0,) * most)
    if kind in ("BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN"):
        rows = [tuple(shape[1:]) for shape in shapes for _ in range(shape[0])]
        flat = tuple(size for row in rows for size in row)
        return BatchTensor((len(rows), len(shapes[0]) - 1) if kind == "BATCH_ITEM_SHAPE" else (len(flat),), flat)
    values: Mapping[str, Iterable[int]] = {
        "BATCH_ELEMENT_COUNT": counts,
        "BATCH_ACCUMULATED_ELEMENT_COUNT": accumulate(counts),
        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": accumulate(counts, initial=0),
    }
    made = tuple(values[kind])
    return BatchTensor((len(made),), made)


def scattered_shape(dims: Shape, source: Shape) -> tuple[int, ...]:
    """The shape of a request's part of an output that `batch_output` splits.

    `dims` are those of the output's config, with a -1 for the batch dimension where the model batches; each -1 becomes the size that `source`, the request's
    shape of the source input, has at the same place. Raises IndexError where it has none: Triton reads past the end there.
    """
    return tuple(source[index] if dim == -1 else dim for index, dim in enumerate(dims))


def scatters(config: Mapping[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """By output that `batch_output` splits: its source input, and its dims as `scattered_shape` takes them."""
    sources = {name: entry["source_input"][0] for entry in config.get("batch_output", []) for name in entry.get("target_name", [])}
    lead = (-1,) if config.get("max_batch_size", 0) > 0 else ()
    return {output["name"]: (sources[output["name"]], (*lead, *shape_of(output))) for output in config.get("output", []) if output["name"] in sources}
