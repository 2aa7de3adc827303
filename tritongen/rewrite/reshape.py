"""The repair of Reshape, the operator that most often pins a batch: where in its target the batch belongs, and how to say so.

With a batch of one, a size of 1 in the target may or may not be the batch; the rule here is that each row must be reshaped on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from tritongen.rewrite.document import describe
from tritongen.rewrite.facts import Array
from tritongen.rewrite.walk import Walk, attribute, integers, known, set_attribute

_INPUT_TARGET_SINCE = 5  # before it the target was an attribute


@dataclass(frozen=True)
class _Place:
    """Where the batch goes: the target's axis, and whether the rows must be moved there after being reshaped (a plain reshape would interleave them)."""

    axis: int
    moved: bool = False


def repair_reshape(walk: Walk, node: onnx.NodeProto) -> None:
    """Make a Reshape keep the rows of its input apart, or record it as a pin."""
    found, shape = walk.axis(node.input[0]), known(walk.fact(node.input[0]).old.shape)
    target = _target(walk, node)
    if target is None:
        return
    if found is None or shape is None:
        _unknown_input(walk, node, target)
        return
    copies = not attribute(node, "allowzero", 0)
    resolved = _resolved(target, shape, copies=copies)
    if resolved is None:
        return
    place = _place(shape, found[0], resolved, walk.sizes[0])
    if place is None:
        walk.pin(node, _cause(node), f"no axis of its target {target.tolist()} can hold the batch of an input of shape {list(shape)}")
    elif place.moved:
        _move(walk, node, target, resolved, found[0], place.axis)
    elif not _follows(walk, node, target, place.axis, found[0], copies=copies):
        _write(walk, node, target, resolved, place.axis, found[0], shape, copies=copies)


def _cause(node: onnx.NodeProto) -> str:
    return node.input[1] if len(node.input) > 1 else node.input[0]


def _target(walk: Walk, node: onnx.NodeProto) -> Array | None:
    """The target at the exported size. Raises ValueError where it is no vector: `followed` makes a finding of that."""
    if walk.opset < _INPUT_TARGET_SINCE:
        stated = integers(node, "shape")
        return None if stated is None else np.array(stated, dtype=np.int64)
    target = walk.fact(node.input[1]).old.value if len(node.input) > 1 else None
    if target is not None and target.ndim != 1:
        raise ValueError(f"{describe(node)} has a target of {target.ndim} dimensions and not a vector")
    return target


def _unknown_input(walk: Walk, node: onnx.NodeProto, target: Array) -> None:
    """An input of unknown shape: a target that begins with the exported batch size is taken to mean the batch; the proof has the last word."""
    fact = walk.fact(node.input[0])
    if fact.varies and fact.old.shape is None and target.size > 1 and target[0] == walk.sizes[0] and walk.vector(_cause(node)) is not None:
        _write(walk, node, target, None, 0, 0, (), copies=not attribute(node, "allowzero", 0))


def _resolved(target: Array, shape: tuple[int, ...], *, copies: bool) -> tuple[int, ...] | None:
    """The output's shape at the exported size; None where the target does not fit the input."""
    sizes = [shape[axis] if size == 0 and copies and axis < len(shape) else int(size) for axis, size in enumerate(target)]
    rest = math.prod(size for size in sizes if size != -1)
    if -1 in sizes:
        if rest == 0 or math.prod(shape) % rest:
            return None
        sizes[sizes.index(-1)] = math.prod(shape) // rest
    return tuple(sizes) if math.prod(sizes) == math.prod(shape) else None


def _place(shape: Sequence[int], axis: int, out: Sequence[int], size: int) -> _Place | None:
    """The axis of `out` for a batch of `size` that lies on `axis` of `shape`, alone or outermost among what was folded into it.

    In order: an axis of just that size with as many elements before it; with a batch of one, the only 1 of the target, to which the rows are moved; an axis
    that holds the batch together with its neighbours.
    """
    before, after = math.prod(shape[:axis]), math.prod(shape[axis:]) // size
    spans = [(math.prod(out[:each]), math.prod(out[each + 1 :])) for each in range(len(out))]
    for each, (outer, _) in enumerate(spans):
        if outer == before and out[each] == size:
            return _Place(each)
    ones = [each for each, length in enumerate(out) if length == 1]
    if shape[axis] == size == 1 and len(ones) == 1:
        return _Place(ones[0], moved=True)
    for each, (outer, inner) in enumerate(spans):
        if outer and inner and before % outer == 0 and after % inner == 0:
            return _Place(each)
    return None


def _follows(walk: Walk, node: onnx.NodeProto, target: Array, axis: int, source: int, *, copies: bool) -> bool:
    """Whether the target already takes the batch from its input."""
    if target[axis] == -1 or (target[axis] == 0 and copies and axis == source):
        return True
    value = walk.fact(node.input[1]).new.value if len(node.input) > 1 else None
    return value is not None and int(target[axis]) != int(value[axis]) and int(value[axis]) * walk.sizes[0] == int(target[axis]) * walk.sizes[1]


def _write(
    walk: Walk, node: onnx.NodeProto, target: Array, resolved: Sequence[int] | None, axis: int, source: int, shape: Sequence[int], *, copies: bool
) -> None:
    """Put the batch at `axis` of the target: copied (0) where it stays on its axis, else as the size to be inferred (-1), else computed at run time."""
    changed = target.copy()
    constant = walk.opset < _INPUT_TARGET_SINCE or walk.vector(node.input[1]) is not None
    if constant and copies and axis == source and (resolved is None or resolved[axis] == shape[source]):
        changed[axis] = 0
    elif constant and -1 not in changed.tolist():
        changed[axis] = -1
    elif walk.opset < _INPUT_TARGET_SINCE or resolved is None:
        walk.pin(node, _cause(node), f"its target {target.tolist()} holds the batch size at axis {axis}")
        return
    else:
        node.input[1] = walk.with_rows(node.input[1], axis, resolved[axis] // walk.sizes[0], len(target))
        walk.note(node, f"computes axis {axis} of its target at run time; it was {target[axis]}")
        return
    _replace_target(walk, node, changed)
    walk.note(node, f"has the target {changed.tolist()} instead of {target.tolist()}")


def _replace_target(walk: Walk, node: onnx.NodeProto, target: Array) -> None:
    if walk.opset < _INPUT_TARGET_SINCE:
        set_attribute(node, "shape", target.tolist())
    else:
        node.input[1] = walk.constant(target.astype(np.int64), node.input[1])


def _move(walk: Walk, node: onnx.NodeProto, target: Array, resolved: Sequence[int], source: int, axis: int) -> None:
    """Reshape each row on its own, rows first, then move the rows to `axis`."""
    rest = [int(size) for each, size in enumerate(target) if each != axis]
    if 0 in rest and not walk.symbolic:
        rest = [size for each, size in enumerate(resolved) if each != axis]
    if walk.opset < _INPUT_TARGET_SINCE or 0 in rest or walk.vector(node.input[1]) is None:
        walk.pin(node, _cause(node), f"it moves the batch to axis {axis}, and its target {target.tolist()} is not constant")
        return
    rank = len(walk.fact(node.input[0]).old.shape or ())
    rows = node.input[0]
    if source:
        rows = walk.emit("Transpose", [rows], rows, perm=[source, *(each for each in range(rank) if each != source)])
    rows_first = walk.constant(np.array([-1, *rest], dtype=np.int64), node.input[1])
    if -1 in rest:
        rows_first = walk.with_rows(rows_first, 0, 1, len(target))
    shaped = walk.emit("Reshape", [rows, rows_first], node.output[0])
    order = list(range(1, len(resolved)))
    order.insert(axis, 0)
    walk.note(node, f"moves the batch to axis {axis} with a Transpose; with one row a reshape did the same")
    node.op_type = "Transpose"
    del node.input[:]
    node.input.append(shaped)
    del node.attribute[:]
    set_attribute(node, "perm", order)
