"""Arrays as the bytes that both protocols carry: little-endian, row-major; a string is four bytes of length and its own bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from tritongen import dtypes
from tritongen.diagnostics import shown
from tritongen.samples import Array

_LENGTH = struct.Struct("<I")


def encode(array: Array) -> bytes:
    """The array's elements; strings are given as bytes."""
    if array.dtype != object:
        return array.tobytes()
    return b"".join(part for item in array.ravel().tolist() for part in (_LENGTH.pack(len(item)), item))


def decode(data: bytes | memoryview, datatype: str, shape: Sequence[int]) -> Array:
    """The array that the bytes hold. Numbers are a read-only view of `data`; strings are `bytes` objects.

    Raises ValueError where the bytes are not those of such an array, for an unknown datatype, and for sizes that are none.
    """
    if datatype not in dtypes.WIRE_NAMES:
        raise ValueError(f"the datatype {shown(datatype)} is not known here")
    sizes = tuple(shape)
    for size in sizes:
        if type(size) is not int or size < 0:
            raise ValueError(f"{shown(list(shape))} is not the shape of an array")
    dtype = dtypes.from_wire(datatype)
    if dtype.itemsize is not None:
        return np.frombuffer(data, dtype.numpy).reshape(sizes) if data else np.empty(sizes, dtype.numpy)
    items, place = [], 0
    view = memoryview(data)
    while place < len(view):
        if place + 4 > len(view):
            raise ValueError("a string's length is cut off")
        (length,) = _LENGTH.unpack_from(view, place)
        place += 4 + length
        if place > len(view):
            raise ValueError("a string is cut off")
        items.append(bytes(view[place - length : place]))
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(sizes)
