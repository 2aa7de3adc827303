"""The inputs of one request: given by a person, by the model's spec, or made up; all of one batch, and of sizes that belong together.

Everything is decided from shapes first. Arrays are made when the request is known to be one that the model takes.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tritongen.client import ModelMeta, TensorMeta
from tritongen.client.requests import array_bytes, check_size
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.samples import Array, SampleError, as_array, random_values

_WORD_BYTES = 11
"""The longest word that is made up, with the 4 bytes of its length."""


class Origin(enum.Enum):
    """Where an input came from, in the words that are printed."""

    GIVEN = "given"
    SPEC = "sample of the spec"
    RANDOM = "random"


@dataclass(frozen=True)
class Prepared:
    """Arrays by input name, and where each came from."""

    arrays: dict[str, Array]
    origins: dict[str, Origin]


@dataclass
class _Plan:
    """What is known of the inputs before any is made. Sizes are those of one item, by input name."""

    items: dict[str, Array] = field(default_factory=dict)
    batches: dict[str, Array] = field(default_factory=dict)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)


def make_inputs(
    meta: ModelMeta, *, given: Mapping[str, object], shapes: Mapping[str, Sequence[int]], batch: int | None = None, seed: int = 0
) -> dict[str, Array]:
    """The arrays of `prepare_inputs`."""
    return prepare_inputs(meta, given=given, shapes=shapes, batch=batch, seed=seed).arrays


def prepare_inputs(meta: ModelMeta, *, given: Mapping[str, object], shapes: Mapping[str, Sequence[int]], batch: int | None = None, seed: int = 0) -> Prepared:
    """Arrays for every input of a model.

    Args:
        meta: what the server says about the model.
        given: arrays or plain values by input name; a whole batch, or one item that is repeated. They win over the values that the model's spec gave.
        shapes: sizes without the batch dimension, by input name. Where an input with variable dimensions is not here, the sizes of the model's own warmup
            sample are used; a variable dimension that has the same size there as one of a given input, or of one in `shapes`, follows that one.
        batch: rows, for a model that batches; None for the rows that were given, or 1.
        seed: for the values that are made up.

    Raises InputError with everything that does not fit, cannot be made up, or is larger than a request may be; nothing large is allocated before.
    """
    plan = _Plan()
    names = {tensor.name for tensor in meta.inputs}
    for name in sorted({*given, *shapes} - names):
        hint = f"its inputs are {', '.join(tensor.name for tensor in meta.inputs)}"
        plan.problems.append(Diagnostic("TG062", f"the model has no input '{name}'", hint=hint))
    _read_given(meta, given, shapes, plan)
    count = _rows(meta, batch, plan)
    _size_others(meta, shapes, plan)
    if plan.problems:
        raise InputError(plan.problems)
    check_size(sum(_planned_bytes(meta, tensor, plan, count) for tensor in meta.inputs), meta.name)
    rng = np.random.default_rng(seed)
    return Prepared({tensor.name: _array(meta, tensor, plan, count, rng) for tensor in meta.inputs}, plan.origins)


def _problem(meta: ModelMeta, tensor: TensorMeta, error: object) -> Diagnostic:
    return Diagnostic("TG064", f"input '{tensor.name}' {tensor.dtype} {list(tensor.shape)}: {error}", model=meta.name)


def _read_given(meta: ModelMeta, given: Mapping[str, object], shapes: Mapping[str, Sequence[int]], plan: _Plan) -> None:
    """Turn what a person gave into arrays and sizes."""
    for tensor in meta.inputs:
        item, shape = meta.item_shape(tensor), shapes.get(tensor.name)
        try:
            if shape is not None:
                if not _fits(shape, item):
                    raise SampleError(f"--shape gives {list(shape)}, and one item has the shape {list(item)} (-1: any size)")
                plan.sizes[tensor.name] = tuple(shape)
            if tensor.name not in given:
                continue
            value = given[tensor.name]
            if isinstance(value, str) and tensor.dtype.itemsize is not None:
                raise SampleError(_no_numbers(value, tensor))
            wanted = item if shape is None else tuple(shape)
            if meta.has_rows(tensor) and _depth(value) == len(tensor.shape):
                array = as_array(value, tensor.dtype, (-1, *wanted))
                plan.batches[tensor.name], plan.sizes[tensor.name] = array, array.shape[1:]
            else:
                array = as_array(value, tensor.dtype, wanted)
                plan.items[tensor.name], plan.sizes[tensor.name] = array, array.shape
            plan.origins[tensor.name] = Origin.GIVEN
        except SampleError as error:
            plan.problems.append(_problem(meta, tensor, error))
            plan.sizes.pop(tensor.name, None)
            plan.origins[tensor.name] = Origin.GIVEN


def _no_numbers(text: str, tensor: TensorMeta) -> str:
    """What to write in place of text that was given for numbers."""
    parts = text.replace(",", " ").split()
    how = f"write a list as {tensor.name}=[{','.join(parts)}]" if len(parts) > 1 and all(_is_number(part) for part in parts) else "write a list as [1,2,3]"
    return f"expected numbers for {tensor.dtype}, got the text {text!r:.80}; {how}, and an array as the name of a .npy file (no other kind of file is read)"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _depth(value: object) -> int:
    """The number of dimensions of what was given; 0 for what is no regular array, which `as_array` then refuses."""
    try:
        return np.ndim(value)  # type: ignore[arg-type]
    except ValueError:
        return 0


def _fits(sizes: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(sizes) == len(wanted) and all(want in (-1, size) for want, size in zip(wanted, sizes, strict=True))


def _rows(meta: ModelMeta, batch: int | None, plan: _Plan) -> int:
    """The rows of the request. Adds a problem where the model does not take them, or where two inputs disagree."""
    limit = meta.max_batch_size
    if not limit:
        if (batch or 1) > 1:
            message = f"the model does not batch (max_batch_size: 0), and {batch} rows were asked for"
            plan.problems.append(Diagnostic("TG063", message, hint="leave --batch out"))
        return 1
    counts = {name: len(array) for name, array in plan.batches.items()}
    count = batch or next(iter(counts.values()), 1)
    if any(rows != count for rows in counts.values()):
        have = ", ".join(f"'{name}' has {rows}" for name, rows in counts.items())
        asked = f", and --batch {batch} was asked for" if batch else ""
        hint = "give every input the same number of rows; an input without the batch dimension is repeated" + ("; leave --batch out" if batch else "")
        message = f"the inputs have different numbers of rows: {have}{asked}"
        plan.problems.append(Diagnostic("TG063", message, consequence="Triton refuses the request", hint=hint, model=meta.name))
    if count > limit:
        hint = f"use --batch {limit} or less" if batch else f"give {limit} rows or less"
        plan.problems.append(Diagnostic("TG063", f"the model takes {limit} rows at most, and {count} were asked for", hint=hint))
    return count


def _size_others(meta: ModelMeta, shapes: Mapping[str, Sequence[int]], plan: _Plan) -> None:
    """Sizes of the inputs that were not given: from the spec's sample, the model's warmup, and what they have in common with those that were."""
    warm, known, samples = meta.warmup_shapes, dict(plan.sizes), meta.samples
    for tensor in meta.inputs:
        if tensor.name in plan.origins:
            continue
        item = meta.item_shape(tensor)
        plan.origins[tensor.name] = Origin.RANDOM
        sizes = plan.sizes.get(tensor.name) or _tied(meta, tensor, warm, known)
        if tensor.name in samples:
            try:
                array = as_array(samples[tensor.name], tensor.dtype, item)
            except SampleError as error:
                plan.problems.append(_problem(meta, tensor, f"the sample of the spec does not fit: {error}"))
                continue
            # A sample of another length than what it goes with was not meant for it.
            if not known or not sizes or _fits(array.shape, sizes):
                plan.items[tensor.name], plan.sizes[tensor.name], plan.origins[tensor.name] = array, array.shape, Origin.SPEC
                continue
        if -1 in sizes:
            example = "x".join("?" if size == -1 else str(size) for size in item)
            plan.problems.append(_problem(meta, tensor, f"its size is not known; give it with --shape {tensor.name}={example}"))
            continue
        plan.sizes[tensor.name] = sizes


def _tied(meta: ModelMeta, tensor: TensorMeta, warm: Mapping[str, Sequence[int]], known: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """The sizes of one item of an input that was not given; -1 where nothing is known."""
    item, own = meta.item_shape(tensor), warm.get(tensor.name, ())
    if not _fits(own, item):
        return item
    sizes = list(own)
    for axis, size in enumerate(item):
        if size != -1:
            continue
        same_axis: set[int] = set()
        elsewhere: set[int] = set()
        for other in meta.inputs:
            theirs, variable = warm.get(other.name, ()), meta.item_shape(other)
            if other.name not in known or not _fits(theirs, variable):
                continue
            for place, (want, now) in enumerate(zip(variable, known[other.name], strict=True)):
                if want == -1 and theirs[place] == own[axis]:
                    (same_axis if place == axis else elsewhere).add(now)
        # Two sizes that could be meant (an image of equal sides in the warmup) say nothing.
        candidates = same_axis or elsewhere
        if len(candidates) == 1:
            sizes[axis] = candidates.pop()
    return tuple(sizes)


def _planned_bytes(meta: ModelMeta, tensor: TensorMeta, plan: _Plan, count: int) -> int:
    rows = count if meta.has_rows(tensor) else 1
    if tensor.name in plan.batches:
        return array_bytes(plan.batches[tensor.name])
    if tensor.name in plan.items:
        return rows * array_bytes(plan.items[tensor.name])
    return rows * math.prod(plan.sizes[tensor.name]) * (tensor.dtype.itemsize or _WORD_BYTES)


def _array(meta: ModelMeta, tensor: TensorMeta, plan: _Plan, count: int, rng: np.random.Generator) -> Array:
    batched = meta.has_rows(tensor)
    if tensor.name in plan.batches:
        return plan.batches[tensor.name]
    if tensor.name in plan.items:
        item = plan.items[tensor.name]
        return np.repeat(item[np.newaxis], count, axis=0) if batched else item
    sizes = plan.sizes[tensor.name]
    return random_values(tensor.dtype, (count, *sizes) if batched else sizes, rng)
