"""Arrays as the bytes that both protocols carry: little-endian, row-major; a string is four bytes of length and its own bytes."""

from __future__ import annotations

import math
import struct
from functools import lru_cache

import numpy as np

from tritongen import dtypes
from tritongen.diagnostics import shown
from tritongen.dtypes import Dtype
from tritongen.samples import Array, as_array

_LENGTH = struct.Struct("<I")


def encode_strings(array: Array) -> bytes:
    """The elements of an array of strings, which are given as bytes. Numbers are `array.tobytes()`."""
    return b"".join(part for item in array.ravel().tolist() for part in (_LENGTH.pack(len(item)), item))


def decode(data: bytes | memoryview, datatype: str, shape: tuple[int, ...]) -> Array:
    """The array that the bytes hold. Numbers are a read-only view of `data`; strings are `bytes` objects.

    Raises ValueError where the bytes are not those of such an array, for an unknown datatype, and for sizes that are none.
    """
    dtype, count = _kind(datatype, shape)
    if dtype.itemsize is None:
        array = np.empty(len(items := _strings(memoryview(data))), dtype=object)
        array[:] = items
        return array.reshape(shape)
    if len(data) != count * dtype.itemsize:
        raise ValueError(f"{len(data)} bytes are not those of {dtype} in the shape {shown(list(shape))}")
    return np.ndarray(shape, dtype.numpy, data)


def from_json(values: object, datatype: str, shape: tuple[int, ...]) -> Array:
    """The array that the numbers, texts, truth values or nested lists of a JSON document hold; lists may be flat, as Triton writes them.

    Raises ValueError as `decode` does, and for values that the datatype cannot hold.
    """
    dtype, count = _kind(datatype, shape)
    array = as_array(values, dtype, None)
    if array.size != count:
        raise ValueError(f"{array.size} values are not those of the shape {shown(list(shape))}")
    return array.reshape(shape)


def sizes_of(shape: object) -> tuple[int, ...]:
    """The shape that a JSON document states, as whole numbers. Raises ValueError for another."""
    if not isinstance(shape, list) or any(type(size) is not int for size in shape):
        raise ValueError(f"{shown(shape)} is not the shape of an array")
    return tuple(shape)


@lru_cache(maxsize=1024)
def _kind(datatype: str, shape: tuple[int, ...]) -> tuple[Dtype, int]:
    """The dtype, and how many elements there are. Raises ValueError for what no array has."""
    if datatype not in dtypes.WIRE_NAMES:
        raise ValueError(f"the datatype {shown(datatype)} is not known here")
    if not all(0 <= size < 2**63 for size in shape):
        raise ValueError(f"{shown(list(shape))} is not the shape of an array")
    return dtypes.from_wire(datatype), math.prod(shape)


def _strings(view: memoryview) -> list[bytes]:
    items, place = [], 0
    while place < len(view):
        if place + 4 > len(view):
            raise ValueError("a string's length is cut off")
        (length,) = _LENGTH.unpack_from(view, place)
        place += 4 + length
        if place > len(view):
            raise ValueError("a string is cut off")
        items.append(bytes(view[place - length : place]))
    return items
