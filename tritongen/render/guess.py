"""Guess sizes and values that a model accepts, from its signature alone; the most likely first.

Nothing is known of a model's name here, only of its tensors: an image has its channels beside two free axes, a batch axis is often called batch, a sample
rate is often 16000.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from tritongen.signature import Dim, Signature, TensorSpec, symbol_of

IMAGE_SIZES = ((224, 224), (48, 320), (32, 320), (48, 192), (320, 320), (640, 640), (64, 64), (32, 32), (28, 28), (112, 112), (256, 256), (512, 512))
"""Heights and widths of common vision networks, as (height, width)."""

LENGTHS = (128, 1, 512, 256, 16, 64, 32, 8, 1024, 2, 4, 576, 16000)
"""Lengths of sequences: tokens, samples, frames."""

_BATCH = re.compile(r"batch|^(n|b|bs)$", re.IGNORECASE)
_RATE = re.compile(r"(^|[_/.])(sr|sample_?rate|sampling_?rate)$", re.IGNORECASE)
_CHANNELS = (1, 3, 4)

_Item = TypeVar("_Item")
Axis = tuple[str, ...]
"""What is free together: one name wherever it occurs, or one axis of one input."""


@dataclass(frozen=True)
class Guess:
    """Sizes of every input, whole (with the batch axis where it is not a batch model), and values for scalars that zeros are no good for."""

    shapes: dict[str, tuple[int, ...]]
    samples: dict[str, int]


def guesses(signature: Signature, *, batched: bool) -> Iterator[Guess]:
    """Guesses in order of likelihood. `batched`: the first axis of every input is the batch and not part of the shapes."""
    choices: dict[tuple[Axis, ...], tuple[tuple[int, ...], ...]] = {}
    taken: set[Axis] = set()
    for tensor in signature.inputs:
        for axes, values in _choices(tensor, batched=batched):
            if not taken.intersection(axes):
                taken.update(axes)
                choices[axes] = values
    rates = [
        tensor.name for tensor in signature.inputs if tensor.dtype.is_integer and _RATE.search(tensor.name) and all(dim == 1 for dim in tensor.shape or ())
    ]
    value_choices: tuple[int, ...] = (16000, 0) if rates else (0,)
    # A value that a name states is worth more than any size: all sizes are tried with it before another one is.
    for value, picked in itertools.chain.from_iterable(((value, picked) for picked in _by_likelihood(list(choices.values()))) for value in value_choices):
        sizes = {axis: size for axes, values in zip(choices, picked, strict=True) for axis, size in zip(axes, values, strict=True)}
        shapes = {tensor.name: tuple(_size(tensor, index, dim, sizes) for index, dim in _free_axes(tensor, batched=batched)) for tensor in signature.inputs}
        yield Guess(shapes, {name: value for name in rates if value})


def _by_likelihood(lists: list[tuple[_Item, ...]]) -> Iterator[tuple[_Item, ...]]:
    """The product of the lists, combinations of early items first."""
    for total in range(sum(len(items) - 1 for items in lists) + 1):
        yield from _with_total(lists, total)


def _with_total(lists: list[tuple[_Item, ...]], total: int) -> Iterator[tuple[_Item, ...]]:
    if not lists:
        if total == 0:
            yield ()
        return
    for index in range(min(total, len(lists[0]) - 1) + 1):
        for rest in _with_total(lists[1:], total - index):
            yield (lists[0][index], *rest)


def _free_axes(tensor: TensorSpec, *, batched: bool) -> Iterator[tuple[int, Dim]]:
    return itertools.islice(enumerate(tensor.shape or ()), 1 if batched else 0, None)


def _choices(tensor: TensorSpec, *, batched: bool) -> Iterator[tuple[tuple[Axis, ...], tuple[tuple[int, ...], ...]]]:
    free = [(index, dim) for index, dim in _free_axes(tensor, batched=batched) if not isinstance(dim, int)]
    spatial = _spatial_axes(tensor)
    if spatial and all(any(index == axis for index, _ in free) for axis in spatial):
        yield tuple(_axis(tensor, index, (tensor.shape or ())[index]) for index in spatial), IMAGE_SIZES
        free = [(index, dim) for index, dim in free if index not in spatial]
    for index, dim in free:
        lengths: tuple[int, ...] = LENGTHS
        if isinstance(dim, str) and _BATCH.search(dim):
            lengths = (1,)
        elif not batched and index == 0:
            # A first axis that is no batch axis most often still counts items.
            lengths = tuple(sorted(LENGTHS, key=lambda length: length != 1))
        elif spatial is not None and index in spatial:
            lengths = tuple(dict.fromkeys(size[spatial.index(index)] for size in IMAGE_SIZES))
        yield (_axis(tensor, index, dim),), tuple((length,) for length in lengths)


def _spatial_axes(tensor: TensorSpec) -> tuple[int, int] | None:
    shape = tensor.shape or ()
    if len(shape) == 4 and shape[1] in _CHANNELS:
        return (2, 3)
    if len(shape) == 4 and shape[3] in _CHANNELS:
        return (1, 2)
    return None


def _axis(tensor: TensorSpec, index: int, dim: Dim) -> Axis:
    if symbol := symbol_of(dim):
        return (symbol,)
    return (tensor.name, str(index))


def _size(tensor: TensorSpec, index: int, dim: Dim, sizes: dict[Axis, int]) -> int:
    return dim if isinstance(dim, int) else sizes[_axis(tensor, index, dim)]
