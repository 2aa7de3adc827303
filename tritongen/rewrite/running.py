"""Running a model on inputs whose rows differ: making the inputs, and comparing the answers.

Pure but for the sessions it is handed. A comparison is by norm: a difference counts against the largest magnitude of the answer, since sums of different order
differ in their last digits wherever terms cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tritongen.errors import ModelFileError
from tritongen.proof import RuntimeErrors, reason_of, run
from tritongen.rewrite.document import problem
from tritongen.rewrite.facts import Array
from tritongen.samples import SampleError, as_array, random_values
from tritongen.signature import Signature, TensorSpec

if TYPE_CHECKING:
    import onnxruntime

DISTINCT_ROWS = 5
"""Rows with different content; a larger batch repeats them in turn."""

_TRIED_LENGTHS = (32, 16, 1, 64, 128, 512)
_EXAMPLE_BATCH = 2
_NOISE = 0.05
COARSE: Mapping[str, float] = {"float16": 4e-3, "bfloat16": 3.2e-2}
"""What a type can resolve at all, times four, as a part of the largest value: no two orders of summation agree better."""


@dataclass(frozen=True)
class Rows:
    """One run's worth of items that differ: for each input an array whose axis 0 counts them."""

    arrays: Mapping[str, Array]

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(next(iter(self.arrays.values())))

    @property
    def nbytes(self) -> int:
        """Bytes of all items together."""
        return sum(array.nbytes for array in self.arrays.values())

    def batch(self, size: int, start: int = 0) -> dict[str, Array]:
        """`size` items from the one at `start` on, repeated in turn where there are fewer."""
        return {name: array[np.arange(start, start + size) % len(array)] for name, array in self.arrays.items()}

    def item(self) -> dict[str, Array]:
        """The first item as it is, where an item is all of an input."""
        return {name: array[0, ...] for name, array in self.arrays.items()}

    def single(self, row: int) -> dict[str, Array]:
        """A batch of one item."""
        return {name: array[row : row + 1] for name, array in self.arrays.items()}


def candidate_rows(
    path: Path,
    signature: Signature,
    count: int,
    shapes: Mapping[str, Sequence[int]],
    samples: Mapping[str, object],
    seed: int,
    *,
    batched: bool = True,
) -> Iterator[Rows]:
    """Rows to try, the likeliest first: one, unless dimensions are variable and nothing says how large they are.

    `shapes`: sizes of an item's dimensions by input, without the batch, -1 for any. `samples`: values by input, one item or several along a first axis. An item
    is what lies behind axis 0 of an input, or all of it where not `batched`. Raises ModelFileError (TG151) for shapes or samples that fit no input.
    """
    _check_names(path, signature, (*shapes, *samples))
    given = {tensor.name: _given(path, tensor, samples[tensor.name], int(batched)) for tensor in signature.inputs if tensor.name in samples}
    items = {tensor.name: _item_shape(path, tensor, shapes.get(tensor.name), int(batched)) for tensor in signature.inputs}
    lengths = _TRIED_LENGTHS if any(None in shape for name, shape in items.items() if name not in given) else _TRIED_LENGTHS[:1]
    for length in lengths:
        rng = np.random.default_rng(seed)
        arrays = {}
        for tensor in signature.inputs:
            size = tuple(length if dim is None else dim for dim in items[tensor.name])
            arrays[tensor.name] = _varied(given[tensor.name], tensor, count, rng) if tensor.name in given else random_values(tensor.dtype, (count, *size), rng)
        yield Rows(arrays)


def item_bytes(signature: Signature, shapes: Mapping[str, Sequence[int]]) -> int:
    """Bytes of one item of all inputs together, without the batch; a dimension of which nothing is known counts as 1, and so does an element of text."""
    total = 0
    for tensor in signature.inputs:
        stated = [dim if isinstance(dim, int) else 1 for dim in (tensor.shape or ())[1:]]
        total += math.prod(max(size, 1) for size in shapes.get(tensor.name, stated)) * (tensor.dtype.itemsize or 1)
    return total


def _check_names(path: Path, signature: Signature, names: Sequence[str]) -> None:
    inputs = [tensor.name for tensor in signature.inputs]
    hint = f"its inputs are {', '.join(map(repr, inputs))}"
    unknown = [problem("TG151", path, f"the model has no input '{name}'", hint) for name in dict.fromkeys(names) if name not in inputs]
    if unknown:
        raise ModelFileError(unknown)


def _item_shape(path: Path, tensor: TensorSpec, given: Sequence[int] | None, first: int) -> tuple[int | None, ...]:
    """Sizes of an item, which begins at axis `first`; None for what is not known. A batch of two is example enough where the batch is part of the item."""
    stated = [dim if isinstance(dim, int) else None for dim in (tensor.shape or ())[first:]]
    if not first and stated and stated[0] is None and given is None:
        stated[0] = _EXAMPLE_BATCH
    if given is None:
        return tuple(stated)
    sizes = [None if size == -1 else size for size in given]
    if tensor.shape is not None and (
        len(sizes) != len(stated) or any(None not in (size, dim) and size != dim for size, dim in zip(sizes, stated, strict=True))
    ):
        message = f"the item shape {list(given)} does not fit input {tensor.describe()}"
        raise ModelFileError([problem("TG151", path, message, "give the dimensions of one item, without the batch" if first else "give all dimensions")])
    return tuple(size if size is not None else dim for size, dim in zip(sizes, stated, strict=True)) if tensor.shape is not None else tuple(sizes)


def _given(path: Path, tensor: TensorSpec, value: object, first: int) -> Array:
    """A person's value as an array of items."""
    item = tensor.dims[first:] if tensor.shape else ()
    try:
        array = as_array(value, tensor.dtype, None)
        if array.ndim <= len(item):
            return as_array(value, tensor.dtype, item)[np.newaxis]
        return as_array(value, tensor.dtype, (-1, *item))
    except SampleError as error:
        hint = "give one item without the batch dimension, or several along a first axis"
        raise ModelFileError([problem("TG151", path, f"the sample for input '{tensor.name}' does not fit: {error}", hint)]) from error


def _varied(given: Array, tensor: TensorSpec, count: int, rng: np.random.Generator) -> Array:
    """`count` items out of those given: in turn; a single one of floats is varied a little, so that rows differ and stay valid."""
    rows: Array = given[np.arange(count) % len(given)]
    if len(given) > 1 or not tensor.dtype.is_float:
        return rows
    noise = 1 + _NOISE * rng.standard_normal(rows.shape)
    noise[0] = 1
    return np.asarray(rows.astype(np.float64) * noise, dtype=tensor.dtype.numpy)


def deviation(want: Array, got: Array, magnitude: float) -> float:
    """How far `got` is from `want`: the largest difference as a part of the largest magnitude of `want`; 0 for equal ones, inf where they cannot be compared.

    `magnitude`: the largest value of the answer as a whole; it keeps rows of almost nothing from being held to the last bit. NaN equals NaN. Integers, truth
    values and text are equal or infinitely far.
    """
    if want.shape != got.shape or want.dtype != got.dtype:
        return float("inf")
    if want.dtype.kind not in "fV":
        return 0.0 if np.array_equal(want, got) else float("inf")
    first, second = want.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(first)
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True) or not np.isfinite(second[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(largest(want), 1e-3 * magnitude)
    difference = float(np.abs(first[finite] - second[finite]).max())
    return difference / (scale or difference) if difference else 0.0  # beside zeros, any difference is all of it


def largest(array: Array) -> float:
    """The largest finite magnitude in a numeric array; 0 for others."""
    if array.dtype.kind not in "fV" or not array.size:
        return 0.0
    values = np.abs(array.astype(np.float64))
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def allowed(tolerance: float, array: Array) -> float:
    """The tolerance for an answer of this type: 16-bit floats cannot agree to more digits than they have."""
    return max(tolerance, COARSE.get(array.dtype.name, 0.0))


def first_that_runs(session: onnxruntime.InferenceSession, candidates: Iterator[Rows], *, batched: bool = True) -> tuple[Rows | None, str]:
    """The first rows with which a batch of one runs (or their first item, where not `batched`), or None and ONNX Runtime's reason for the last."""
    reason = ""
    for rows in candidates:
        try:
            run(session, rows.single(0) if batched else rows.item())
        except RuntimeErrors() as error:
            reason = reason_of(error)
        else:
            return rows, ""
    return None, reason
