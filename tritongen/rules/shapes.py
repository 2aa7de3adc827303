"""Arithmetic of dims and reshapes, as Triton's core does it when it loads a config (`ValidateIOShape` in core/src/model_config_utils.cc). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Dims = Sequence[int]


def wrong_entries(dims: Dims) -> list[int]:
    """Entries that are no dimension: neither 1 or more, nor -1."""
    return [dim for dim in dims if dim < 1 and dim != -1]


def segments(dims: Dims) -> list[int]:
    """Number of elements before, between and behind the variable dimensions: `[2, 4, -1, 6]` → `[8, 6]`."""
    found = [1]
    for dim in dims:
        if dim == -1:
            found.append(1)
        else:
            found[-1] *= dim
    return found


def reshape_problem(dims: Dims, shape: Dims, *, batches: bool) -> str:
    """Why `dims` cannot be reshaped to `shape`; empty where they can. Both hold only valid entries."""
    if not shape and not batches:
        return "an empty reshape makes a scalar, which a model without batching cannot have"
    if list(shape) == [-1, *dims]:
        return "the reshape adds a -1 in front: the batch dimension is never part of dims or reshape"
    if dims.count(-1) != shape.count(-1):
        return f"there are {dims.count(-1)} variable dimensions in dims and {shape.count(-1)} in the reshape"
    if -1 not in dims and prod(dims) != prod(shape):
        return f"dims hold {prod(dims)} elements and the reshape holds {prod(shape)}"
    for number, (left, right) in enumerate(zip(segments(dims), segments(shape), strict=True)):
        if left != right:
            where = (
                "before the first -1" if not number else "behind the last -1" if number == dims.count(-1) else f"between the -1 number {number} and the next"
            )
            return f"{where}, dims hold {left} elements and the reshape holds {right}"
    return ""


def agree(left: Dims, right: Dims) -> bool:
    """Whether two shapes can be those of one tensor: of one rank, and equal wherever neither is -1."""
    return len(left) == len(right) and all(a == b or -1 in (a, b) for a, b in zip(left, right, strict=True))


def written(dims: Dims) -> str:
    """`[3, 224, 224]`, as in config.pbtxt."""
    return f"[{', '.join(str(dim) for dim in dims)}]"
