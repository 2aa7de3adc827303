"""Repairs, operator by operator, of what pins a batch: target shapes, sizes, slices of the batch axis.

Each repair looks at a node whose input carries the batch and changes the node so that its output does too. Where no change can be right, the node is recorded
as a pin. The rules of each operator are those of the ONNX operator reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from tritongen.rewrite.facts import Array
from tritongen.rewrite.reshape import repair_reshape
from tritongen.rewrite.walk import Walk, attribute, integers, normal, set_attribute

_TO_THE_END = np.iinfo(np.int64).max
_ATTRIBUTE_SLICE_UNTIL = 10  # Slice took attributes before operator set 10, Squeeze before 13
_ATTRIBUTE_AXES_UNTIL = 13


def repair(walk: Walk, node: onnx.NodeProto) -> None:
    """Make a node keep the batch of its first input, or record it as a pin. Nodes of other operators stay as they are."""
    if node.domain not in ("", "ai.onnx") or not node.input:
        return
    for position in _PARAMETERS.get(node.op_type, ()):
        if position < len(node.input) and walk.axes(node.input[position]):
            walk.pin(node, node.input[position], "it is one setting for all rows, and each row of a batch would have its own; make it a constant of the model")
            return
    if node.op_type in _REPAIRS:
        _REPAIRS[node.op_type](walk, node)


def _flatten(walk: Walk, node: onnx.NodeProto) -> None:
    found, shape = walk.axis(node.input[0]), walk.fact(node.input[0]).old.shape
    if found is None or shape is None:
        return
    axis = normal(attribute(node, "axis", 1), len(shape))
    if axis <= found[0] and all(size == 1 for size in shape[axis : found[0] + 1]):
        set_attribute(node, "axis", found[0] + 1)
        walk.note(node, f"flattens from axis {found[0] + 1} on instead of {axis}, which leaves the batch on its own axis")


def _squeeze(walk: Walk, node: onnx.NodeProto) -> None:
    axes, shape = walk.axes(node.input[0]), walk.fact(node.input[0]).old.shape
    if not axes or shape is None:
        return
    squeezed = _axes_of(walk, node, len(shape))
    if squeezed is None and not (len(node.input) > 1 and node.input[1]):
        squeezed = [axis for axis, size in enumerate(shape) if size == 1]
        kept = [axis for axis in squeezed if axis not in axes]
        if kept == squeezed:
            _write_axes(walk, node, kept)
            walk.note(node, f"removes axes {kept} and no others, since a batch of one would lose its axis too")
    for axis in set(squeezed or ()) & set(axes):
        walk.pin(node, node.input[0], f"it removes axis {axis}, which is the batch")


def _axes_of(walk: Walk, node: onnx.NodeProto, rank: int) -> list[int] | None:
    if len(node.input) > 1 and node.input[1]:
        value = walk.vector(node.input[1])
        axes = None if value is None else value.ravel().tolist()
    else:
        axes = integers(node, "axes")
    return None if axes is None else [normal(axis, rank) for axis in axes]


def _write_axes(walk: Walk, node: onnx.NodeProto, axes: Sequence[int]) -> None:
    if walk.opset < _ATTRIBUTE_AXES_UNTIL:
        set_attribute(node, "axes", axes)
    else:
        name = walk.constant(np.array(axes, dtype=np.int64), f"{node.output[0]}_axes")
        del node.input[1:]
        node.input.append(name)


def _expand(walk: Walk, node: onnx.NodeProto) -> None:
    found, shape, target = walk.axis(node.input[0]), walk.fact(node.input[0]).old.shape, walk.vector(node.input[1])
    if found is None or shape is None or target is None:
        return
    position = found[0] + target.size - len(shape)
    if position >= 0 and target[position] == shape[found[0]] != 1:
        changed = target.copy()
        changed[position] = 1  # Expand broadcasts both ways: 1 leaves what the input has
        node.input[1] = walk.constant(changed, node.input[1])
        walk.note(node, f"no longer asks for {target[position]} rows")


def _slice(walk: Walk, node: onnx.NodeProto) -> None:
    axes, shape = walk.axes(node.input[0]), walk.fact(node.input[0]).old.shape
    if not axes or shape is None:
        return
    old = walk.opset < _ATTRIBUTE_SLICE_UNTIL
    starts, ends, where, steps = (_part(walk, node, index, name, old) for index, name in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps")))
    if starts is None or ends is None:
        return
    where = list(range(len(starts))) if where is None else [normal(axis, len(shape)) for axis in where]
    for position in [position for position, axis in enumerate(where) if axis in axes]:
        size = shape[where[position]]
        assert isinstance(size, int)
        step = 1 if steps is None else steps[position]
        rows = range(size)[starts[position] : ends[position] : step]
        if rows != range(size):
            walk.pin(node, node.input[0], f"it takes rows {starts[position]} to {ends[position]} out of the batch")
        elif starts[position] != 0 or ends[position] < np.iinfo(np.int32).max:
            starts[position], ends[position] = 0, _TO_THE_END
            _write_slice(walk, node, starts, ends, old=old)
            walk.note(node, "takes the whole batch instead of its first rows")


def _part(walk: Walk, node: onnx.NodeProto, index: int, name: str, old: bool) -> list[int] | None:
    if old:
        return integers(node, name)
    value = walk.vector(node.input[index]) if index < len(node.input) and node.input[index] else None
    return None if value is None else [int(each) for each in value.ravel()]


def _write_slice(walk: Walk, node: onnx.NodeProto, starts: Sequence[int], ends: Sequence[int], *, old: bool) -> None:
    for index, name, values in ((1, "starts", starts), (2, "ends", ends)):
        if old:
            set_attribute(node, name, values)
        else:
            kind = np.int64 if walk.fact(node.input[index]).elem_type == onnx.TensorProto.INT64 else np.int32
            node.input[index] = walk.constant(np.minimum(np.array(values, dtype=np.int64), np.iinfo(kind).max).astype(kind), node.input[index])


def _gather(walk: Walk, node: onnx.NodeProto) -> None:
    axes, shape = walk.axes(node.input[0]), walk.fact(node.input[0]).old.shape
    indices = walk.vector(node.input[1])
    if not axes or shape is None or indices is None:
        return
    axis = normal(attribute(node, "axis", 0), len(shape))
    if axis not in axes:
        return
    if indices.ndim == 1 and indices.size == shape[axis] and np.array_equal(indices % indices.size, np.arange(indices.size)):
        _become_identity(node)
        walk.note(node, "passes the whole batch on; it gathered every row in order")
    else:
        walk.pin(node, node.input[1], f"it picks {'row' if indices.size == 1 else 'rows'} {', '.join(map(str, indices.ravel()[:4]))} of the batch")


def _split(walk: Walk, node: onnx.NodeProto) -> None:
    axes, shape = walk.axes(node.input[0]), walk.fact(node.input[0]).old.shape
    if not axes or shape is None or normal(attribute(node, "axis", 0), len(shape)) not in axes:
        return
    if len(node.output) == 1:
        _become_identity(node)
        walk.note(node, "passes the whole batch on; it split it into one part")
    else:
        tensor = node.input[1] if len(node.input) > 1 and node.input[1] else node.input[0]
        walk.pin(node, tensor, f"it splits the batch into {len(node.output)} outputs")


def _become_identity(node: onnx.NodeProto) -> None:
    node.op_type = "Identity"
    del node.input[1:]
    del node.attribute[:]


def _resize(walk: Walk, node: onnx.NodeProto) -> None:
    found, shape = walk.axis(node.input[0]), walk.fact(node.input[0]).old.shape
    if found is None or shape is None or len(node.input) < 4 or not node.input[3]:
        return
    axis, per_item = found
    where = [normal(each, len(shape)) for each in integers(node, "axes") or range(len(shape))]
    sizes = walk.fact(node.input[3])
    if axis not in where or _at(sizes.new.value, where.index(axis)) == walk.sizes[1] * per_item:
        return
    if _at(sizes.old.value, where.index(axis)) not in (None, shape[axis]):
        walk.pin(node, node.input[3], "it resizes the batch axis")
        return
    node.input[3] = walk.with_rows(node.input[3], where.index(axis), per_item, len(where))
    walk.note(node, "keeps the batch as it is; its sizes held a number for it")


def _at(vector: Array | None, position: int) -> int | None:
    return None if vector is None else int(vector[position])


def _tile(walk: Walk, node: onnx.NodeProto) -> None:
    axes, repeats = walk.axes(node.input[0]), walk.vector(node.input[1])
    for axis in axes:
        if repeats is not None and axis < repeats.size and repeats[axis] != 1:
            walk.pin(node, node.input[1], f"it repeats the batch {repeats[axis]} times, so that an item no longer has its own rows")


def _reduce(walk: Walk, node: onnx.NodeProto) -> None:
    """A reduction over the batch mixes its rows: no batch of the result can be right."""
    axes, shape = walk.axes(node.input[0]), walk.fact(node.input[0]).old.shape
    if not axes or shape is None:
        return
    reduced = _axes_of(walk, node, len(shape))
    if reduced is None and len(node.input) > 1 and node.input[1]:
        return
    if reduced is None and attribute(node, "noop_with_empty_axes", 0):
        return
    over = set(reduced or range(len(shape))) & set(axes)
    if over:
        walk.pin(node, node.input[0], f"it reduces over axis {min(over)}, which is the batch, so that its answer mixes the rows")


def _along(walk: Walk, node: onnx.NodeProto) -> None:
    """Operators that relate the elements along one axis to each other."""
    shape = walk.fact(node.input[0]).old.shape
    if shape is None or not shape:
        return
    flattening = walk.opset < 13 and node.op_type in ("Softmax", "LogSoftmax", "Hardmax")
    axis = normal(attribute(node, "axis", _DEFAULT_AXIS.get(node.op_type, -1) if not flattening else 1), len(shape))
    span = set(range(axis, len(shape))) if flattening else {axis}
    over = span & set(walk.axes(node.input[0]))
    if over:
        walk.pin(node, node.input[0], f"it works along axis {min(over)}, which is the batch, so that its answer mixes the rows")


def _cumsum(walk: Walk, node: onnx.NodeProto) -> None:
    axes, shape, where = walk.axes(node.input[0]), walk.fact(node.input[0]).old.shape, walk.vector(node.input[1])
    if shape is not None and where is not None and normal(int(where.ravel()[0]), len(shape)) in axes:
        walk.pin(node, node.input[0], "it sums along the batch, so that its answer mixes the rows")


def _batch_normalization(walk: Walk, node: onnx.NodeProto) -> None:
    if walk.axes(node.input[0]) and attribute(node, "training_mode", 0):
        walk.pin(node, node.input[0], "it is in training mode: it normalises by the mean and variance of the whole batch; export the model in evaluation mode")


_PARAMETERS: dict[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "Expand": (1,),
    "OneHot": (1, 2),
    "Pad": (1, 2, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
}
"""Operators → the inputs that say how the node works, once for everything that it works on."""

_DEFAULT_AXIS = {"ArgMax": 0, "ArgMin": 0}
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

_REPAIRS: dict[str, Callable[[Walk, onnx.NodeProto], None]] = {
    "Reshape": repair_reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Expand": _expand,
    "Slice": _slice,
    "Gather": _gather,
    "Split": _split,
    "Resize": _resize,
    "Tile": _tile,
    "CumSum": _cumsum,
    "BatchNormalization": _batch_normalization,
    **{f"Reduce{name}": _reduce for name in _REDUCTIONS},
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "TopK", "ArgMax", "ArgMin"), _along),
}
