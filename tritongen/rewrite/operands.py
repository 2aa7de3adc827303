"""Operands that must have as many rows as the batch, and are stored with a fixed number: initial states, class tokens, grids.

Such an operand is repeated for the batch at run time, which is right where it has one row, or the same row many times.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tritongen.rewrite.facts import Array
from tritongen.rewrite.walk import Walk, attribute, normal

# Operators whose operands agree on every axis but the one they work along.
_ALIGNED = ("GatherElements", "ScatterElements", "GridSample", "Concat")
_RECURRENT = ("LSTM", "GRU", "RNN")
_SEQUENCE_LENGTHS, _INITIAL_STATES = 4, (5, 6)


def align(walk: Walk, node: onnx.NodeProto, folder: Path) -> None:
    """Give the operands of a node the batch where the operator demands that they have it. `folder`: where external data lies."""
    if node.domain not in ("", "ai.onnx"):
        return
    if node.op_type in _RECURRENT:
        _recurrent(walk, node, folder)
    elif node.op_type in _ALIGNED:
        _aligned(walk, node, folder)
    else:
        _broadcast(walk, node, folder)


def _recurrent(walk: Walk, node: onnx.NodeProto, folder: Path) -> None:
    batch_first = attribute(node, "layout", 0)
    found = walk.axes(node.input[0])
    if (0 if batch_first else 1) not in found:
        if found:
            walk.pin(node, node.input[0], f"the batch is on axis {min(found)} of its sequence, where it expects {'batch' if batch_first else 'time'}")
        return
    per_item = found[0 if batch_first else 1]
    for index in (_SEQUENCE_LENGTHS, *_INITIAL_STATES):
        axis = 0 if index == _SEQUENCE_LENGTHS or batch_first else 1
        if index < len(node.input) and node.input[index] and axis not in walk.axes(node.input[index]):
            give_rows(walk, node, index, axis, per_item, folder)


def _aligned(walk: Walk, node: onnx.NodeProto, folder: Path) -> None:
    carriers = [walk.axis(name) for name in node.input]
    found = next((each for each in carriers if each is not None), None)
    shape = next((walk.fact(name).old.shape for name, each in zip(node.input, carriers, strict=True) if each is not None), None)
    if found is None or shape is None:
        return
    if node.op_type != "GridSample" and normal(attribute(node, "axis", 0), len(shape)) == found[0]:
        walk.pin(node, node.input[0], f"it works along axis {found[0]}, which is the batch")
        return
    for index, name in enumerate(node.input):
        if not walk.axes(name):
            other = walk.fact(name).old.shape
            if other is not None and len(other) == len(shape) and other[found[0]] == walk.sizes[0] * found[1]:
                give_rows(walk, node, index, found[0], found[1], folder)


def _broadcast(walk: Walk, node: onnx.NodeProto, folder: Path) -> None:
    """Operands aligned from the right, as numpy does: one whose rows are as many as the exported batch (more than one) stands in the way of any other."""
    if walk.sizes[0] == 1 or node.op_type not in _BROADCASTING:
        return
    carried = [(name, walk.axis(name)) for name in node.input]
    found = next(((len(walk.fact(name).old.shape or ()) - each[0], each[1]) for name, each in carried if each is not None), None)
    if found is None:
        return
    for index, (name, each) in enumerate(carried):
        shape = walk.fact(name).old.shape
        if each is None and not walk.axes(name) and shape is not None and len(shape) >= found[0] and shape[-found[0]] == walk.sizes[0] * found[1]:
            give_rows(walk, node, index, len(shape) - found[0], found[1], folder, broadcast=True)


_BROADCASTING = frozenset({
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "MatMul", "Max",
    "Mean", "Min", "Mod", "Mul", "Not", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
})  # fmt: skip


def give_rows(walk: Walk, node: onnx.NodeProto, index: int, axis: int, per_item: int, folder: Path, *, broadcast: bool = False) -> None:
    """Repeat input `index` of a node along `axis` for the batch at run time, or record the node as a pin. Where the node can `broadcast`, one row is enough."""
    name = node.input[index]
    shape = walk.fact(name).old.shape
    if shape is None:
        return
    if shape[axis] == 1 and walk.sizes[0] * per_item == 1:
        row = name
    elif shape[axis] == walk.sizes[0] * per_item and _same_rows(walk, name, axis, folder):
        row = walk.emit("Gather", [name, walk.constant(np.zeros(1, dtype=np.int64), name)], name, axis=axis)
    else:
        walk.pin(node, name, f"it has {shape[axis]} rows on axis {axis}, and they are not known to be the same, so that they cannot serve another batch")
        return
    if broadcast:
        node.input[index] = row
        walk.note(node, f"takes one row of '{name}' for all rows of the batch; its {shape[axis]} rows are the same")
        return
    ones = walk.constant(np.ones(len(shape), dtype=np.int64), name)
    node.input[index] = walk.emit("Expand", [row, walk.with_rows(ones, axis, per_item, len(shape))], name)
    walk.note(node, f"has '{name}' repeated on axis {axis} for each row of the batch")


def _same_rows(walk: Walk, name: str, axis: int, folder: Path) -> bool:
    """Whether all slices of a constant tensor along `axis` are equal, by its values or by how it is made."""
    tensor = walk.stored.get(name) or walk.constants.get(name)
    if tensor is not None:
        values = numpy_helper.to_array(tensor, base_dir=str(folder))
        return all(np.array_equal(first, second, equal_nan=values.dtype.kind == "f") for first, second in pairwise(_slices(values, axis)))
    maker = walk.producers.get(name)
    if maker is None or walk.fact(name).varies:
        return False
    if maker.op_type == "ConstantOfShape":
        return True
    shape, made = walk.fact(maker.input[0]).old.shape if maker.input else None, walk.fact(name).old.shape
    if maker.op_type == "Expand" and shape is not None and made is not None:
        position = axis - (len(made) - len(shape))
        return position < 0 or shape[position] == 1
    return False


def _slices(values: Array, axis: int) -> Iterator[Array]:
    yield from np.moveaxis(values, axis, 0)
