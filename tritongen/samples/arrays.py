"""Input arrays for a model: from its signature, the sizes that are known for its variable dimensions, and values that a person gave.

Pure: the same arguments (and seed) give the same arrays on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tritongen.diagnostics import shown
from tritongen.dtypes import Dtype

Array = np.ndarray[Any, Any]


_PIECE = 1 << 20
_DIGITS = {"FP16": 11, "BF16": 8, "FP32": 24, "FP64": 53}
"""Binary digits of each floating-point format: a whole number that needs more is rounded (IEEE 754; bfloat16 has FP32's exponent)."""
SAMPLES_PARAMETER = "tritongen.samples"
"""Key in a config's `parameters` under which the spec's small sample values travel to whoever asks the server for its config, as JSON by input name."""


class SampleError(ValueError):
    """A value that was given for an input does not fit it; the message says what was expected and what was given."""


def as_array(value: object, dtype: Dtype, shape: Sequence[int] | None) -> Array:
    """`value` (a number, text, nested lists or an array) as an array of `dtype`: exactly, but that fractions become the nearest that a float can hold.

    `shape`: what the model expects, -1 for any size; None when nothing is known of it. A single value fits every shape with one element.
    Raises SampleError where the value has another shape, or cannot be held by the dtype (1.5 in an integer, 300 in a UINT8, 2**24 + 1 in
    an FP32, text in a number).
    """
    try:
        given = np.asarray(value, dtype=object) if dtype.itemsize is None else np.asarray(value)
        if not hasattr(value, "dtype") and (given.dtype.kind in "US" or (given.dtype.kind == "f" and dtype.is_integer)):
            # numpy makes text of [1, "a"], and rounded floats of [1, 2**64 - 1].
            given = np.asarray(value, dtype=object)
    except ValueError as error:
        raise SampleError("the nested lists have rows of different lengths") from error
    if dtype.is_float and given.dtype.kind == "f" and not hasattr(value, "dtype"):
        _refuse_rounded(_whole_numbers(value, given, dtype), dtype)
    array = _strings(given) if dtype.itemsize is None else _numbers(given, dtype)
    if shape is None:
        return array
    if array.ndim == 0 and all(size in (1, -1) for size in shape):
        array = array.reshape((1,) * len(shape))
    if len(array.shape) != len(shape) or any(want not in (-1, got) for want, got in zip(shape, array.shape, strict=True)):
        raise SampleError(f"expected the shape {shown_shape(shape)}, got {shown_shape(array.shape)}")
    return array


def _strings(given: Array) -> Array:
    try:
        flat = [item.encode() if isinstance(item, str) else item for item in given.ravel().tolist()]
    except UnicodeEncodeError as error:
        raise SampleError(f"the text {shown(error.object)} is not valid Unicode") from error
    wrong = [item for item in flat if not isinstance(item, bytes)]
    if wrong:
        raise SampleError(f"expected text, got {_named(wrong[0])}")
    array = np.empty(given.shape, dtype=object)
    array.reshape(-1)[:] = flat
    return array


def _numbers(given: Array, dtype: Dtype) -> Array:
    if given.dtype.kind == "V" and given.dtype != dtype.numpy and given.dtype == np.dtype("V2") and dtype.wire == "BF16":
        # A .npy file has no name for bfloat16 and gives it back as two raw bytes.
        given = given.view(dtype.numpy)
    if given.dtype.kind == "O":
        given = _python_numbers(given, dtype)
    if given.dtype.kind not in "biuf" and given.dtype.name != "bfloat16":
        raise SampleError(f"expected numbers for {dtype}, got {_what(given)}")
    if given.dtype.kind == "b" and dtype.is_integer:
        raise SampleError(f"expected numbers for {dtype}, got true or false")
    if dtype.is_float and given.dtype.kind in "iu":
        limit = 2 ** _DIGITS[dtype.wire]
        _refuse_rounded(given[(given > limit) | (given < -limit)].tolist(), dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        array = given.astype(dtype.numpy)
    if dtype.is_float:
        changed = np.isinf(array) & np.isfinite(given)
    else:
        back = array.astype(np.float64) if given.dtype.kind not in "biu" else array
        changed = np.asarray(back != given)
    if changed.any():
        raise SampleError(f"the value does not fit {dtype}: {', '.join(str(item) for item in given[changed].ravel()[:3].tolist())}")
    return array


def _whole_numbers(value: object, given: Array, dtype: Dtype) -> list[int]:
    """The whole numbers in nested lists, some of which numpy may have made floats already; none where all numbers are so small that the dtype has them all."""
    if not (np.abs(given) >= 2 ** _DIGITS[dtype.wire]).any():
        return []
    return [item for item in np.asarray(value, dtype=object).ravel().tolist() if isinstance(item, int)]


def _refuse_rounded(whole: Sequence[int], dtype: Dtype) -> None:
    """Raise SampleError for whole numbers that would come out as others: those with more binary digits, trailing zeros apart, than the dtype has."""
    wrong = [item for item in whole if item and abs(item) // (item & -item) >= 2 ** _DIGITS[dtype.wire]]
    if wrong:
        raise SampleError(f"the value does not fit {dtype}: {', '.join(f'{item!s:.40}' for item in wrong[:3])}; whole numbers are not rounded")


def _what(given: Array) -> str:
    """What stands where numbers should."""
    if given.dtype.kind not in "OSU":
        return f"an array of {given.dtype}"
    first = next(item for item in given.ravel().tolist() if not isinstance(item, int | float))
    return f"the text {shown(first)}" if isinstance(first, str | bytes) else _named(first)


def _named(item: object) -> str:
    """A value with its type; JSON's name for None, which mostly comes from there."""
    return "null" if item is None else f"{type(item).__name__} {shown(item)}"


def _python_numbers(given: Array, dtype: Dtype) -> Array:
    """Python's numbers as an array of the dtype's kind, for those that numpy has no common dtype for. Anything else comes back as it is."""
    items = given.ravel().tolist()
    if not all(isinstance(item, int | float) for item in items):
        return given
    if not dtype.is_float:
        limits = (0, 1) if dtype.wire == "BOOL" else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
        wrong = [item for item in items if not limits[0] <= item <= limits[1] or item != int(item)]
        if wrong:
            raise SampleError(f"the value does not fit {dtype}: {', '.join(f'{item!s:.40}' for item in wrong[:3])}")
        return given.astype(dtype.numpy)
    _refuse_rounded([item for item in items if isinstance(item, int)], dtype)
    try:
        return given.astype(np.float64)
    except OverflowError as error:
        raise SampleError(f"the value does not fit {dtype}: an integer of more than 308 digits") from error


def zeros(dtype: Dtype, shape: Sequence[int]) -> Array:
    """What Triton's `zero_data` sends: zeros, or empty strings."""
    if dtype.itemsize is None:
        array = np.empty(tuple(shape), dtype=object)
        array.reshape(-1)[:] = b""
        return array
    return np.zeros(tuple(shape), dtype=dtype.numpy)


def random_values(dtype: Dtype, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Random values that most models accept: floats from a standard normal, integers and booleans 0 or 1 (valid as an index, a token id and a mask alike),
    short words.
    """
    size = tuple(shape)
    if dtype.itemsize is None:
        array = np.empty(size, dtype=object)
        array.reshape(-1)[:] = [f"word{number}".encode() for number in rng.integers(0, 1000, size=array.size)]
        return array
    array = np.empty(size, dtype=dtype.numpy)
    flat = array.reshape(-1)
    # In pieces, which take the same numbers from the generator: at once they would need eight bytes more for each element.
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        piece[:] = rng.standard_normal(piece.size) if dtype.is_float else rng.integers(0, 2, size=piece.size)
    return array


@dataclass(frozen=True)
class Feed:
    """The inputs of one request, described and not yet made: a model may ask for more than fits into memory.

    Attributes:
        values: items that were given, by input name.
        zeros: dtype and shape of items of zeros, by input name.
        rows: how often every item is repeated along a new first axis; None for a model without a batch axis, whose items are whole.
        strung: inputs whose items are strung together into one dimension instead.
        whole: arrays that are given as they are, by input name.
    """

    values: Mapping[str, Array]
    zeros: Mapping[str, tuple[Dtype, tuple[int, ...]]]
    rows: int | None = None
    strung: frozenset[str] = frozenset()
    whole: Mapping[str, Array] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes; a text counts as a pointer."""
        given = sum(array.nbytes for array in self.values.values())
        made = sum(math.prod(shape) * (dtype.itemsize or 8) for dtype, shape in self.zeros.values())
        return (given + made) * (self.rows or 1) + sum(array.nbytes for array in self.whole.values())

    def arrays(self) -> dict[str, Array]:
        """The arrays, made now."""
        items = {**self.values, **{name: zeros(dtype, shape) for name, (dtype, shape) in self.zeros.items()}}
        if self.rows is not None:
            items = {name: np.tile(item.reshape(-1), self.rows) if name in self.strung else rows(item, self.rows) for name, item in items.items()}
        return {**items, **self.whole}


def rows(array: Array, count: int) -> Array:
    """One item repeated `count` times along a new first axis, as Triton makes a batch out of a warmup sample."""
    return np.repeat(array[np.newaxis], count, axis=0)


def raw_bytes(array: Array, dtype: Dtype) -> bytes:
    """The array as it travels: little-endian, row-major; a string is its length in 4 bytes, then its bytes (Triton's BYTES)."""
    if dtype.itemsize is None:
        return b"".join(len(item).to_bytes(4, "little") + item for item in array.ravel().tolist())
    return np.ascontiguousarray(array).astype(dtype.numpy.newbyteorder("<"), copy=False).tobytes()


def shown_shape(shape: Sequence[int]) -> str:
    """A shape for messages: `[any, 3]`."""
    return "[" + ", ".join("any" if size == -1 else str(size) for size in shape) + "]"
