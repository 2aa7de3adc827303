"""What can be told of a graph's shapes once all that is constant is computed.

ONNX's shape inference alone loses a size on its way through a Cast or a Slice of a shape, and in an If. ONNX Runtime computes what depends on constants alone
before it infers (exporters leave whole chains of such nodes: paddings, target shapes), takes a shape that is known for a constant, and puts the branch of an If
whose condition is constant in its place. So does this, until nothing changes any more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_MOST_ROUNDS = 50
_MOST_ELEMENTS = 1024
_NOT_FOLDED = frozenset({"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"})
"""Operators whose result is not the same twice."""

_MAY_GROW = frozenset({"Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample", "HannWindow", "HammingWindow", "BlackmanWindow"})
"""Operators that can make arrays of any size out of a few numbers; not computed, as a file could ask for more than fits into memory."""

Sizes = tuple[int | None, ...]


def settled(model: onnx.ModelProto, *, data_prop: bool = False) -> onnx.ModelProto:
    """The model with its shapes inferred, after everything in its outermost graph that is constant was computed, in place.

    `data_prop`: whether ONNX's inference also follows the contents of small tensors. Raises onnx.shape_inference.InferenceError where inference fails.
    """
    import onnx

    fold_constants(model.graph)
    for _ in range(_MOST_ROUNDS):
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=data_prop)
        before = len(model.graph.node)
        fixed = _fix_shapes(model.graph, _known_sizes(inferred.graph))
        fold_constants(model.graph)
        if not _place_branches(model.graph) and not fixed and len(model.graph.node) == before:
            break
    return inferred


def _known_sizes(graph: onnx.GraphProto) -> dict[str, Sizes]:
    return {value.name: sizes_of(value) for value in (*graph.input, *graph.value_info, *graph.output) if value.type.tensor_type.HasField("shape")}


def sizes_of(value: onnx.ValueInfoProto) -> Sizes:
    """The sizes of a declared tensor, None for each that is not a number."""
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim)


def _fix_shapes(graph: onnx.GraphProto, known: dict[str, Sizes]) -> bool:
    """Replace, in place, the Shape nodes whose answer is known by that answer. Whether there were any."""
    from onnx import numpy_helper

    outputs = {value.name for value in graph.output}
    fixed = False
    for node in list(graph.node):
        sizes = known.get(node.input[0]) if node.op_type == "Shape" and len(node.input) == 1 and not node.attribute else None
        if sizes is not None and None not in sizes and node.output[0] not in outputs:
            graph.initializer.append(numpy_helper.from_array(np.array(sizes, dtype=np.int64), node.output[0]))
            graph.node.remove(node)
            fixed = True
    return fixed


def _place_branches(graph: onnx.GraphProto) -> bool:
    """Put the branch that is taken in the place of each If whose condition is constant, in place. Whether there were any."""
    from onnx import numpy_helper

    stored = {tensor.name: tensor for tensor in graph.initializer}
    nodes = list(graph.node)
    placed = False
    for index, node in enumerate(nodes):
        condition = stored.get(node.input[0]) if node.op_type == "If" and node.domain in ("", "ai.onnx") and node.input else None
        if condition is None or not _is_small(condition) or condition.data_type != condition.BOOL or math.prod(condition.dims) != 1:
            continue
        wanted = "then_branch" if numpy_helper.to_array(condition).item() else "else_branch"
        branch = next((attribute.g for attribute in node.attribute if attribute.name == wanted), None)
        if branch is not None and len(branch.output) == len(node.output):
            _place(graph, node, branch, index)
            placed = True
    return placed


def _place(graph: onnx.GraphProto, node: onnx.NodeProto, branch: onnx.GraphProto, number: int) -> None:
    """Put a branch in the place of its If. Its tensors get names of their own: branches of several Ifs may use the same ones."""
    import onnx

    prefix = f"{node.output[0]}/{number}/"
    own = {name for inner in branch.node for name in inner.output if name} | {tensor.name for tensor in branch.initializer}
    names = {name: prefix + name for name in own}
    moved = onnx.GraphProto()
    moved.CopyFrom(branch)
    _rename(moved, names)
    passed = [onnx.helper.make_node("Identity", [names.get(inside.name, inside.name)], [outside]) for inside, outside in _outputs(branch, node)]
    position = list(graph.node).index(node)
    later = list(graph.node)[position + 1 :]
    del graph.node[position:]
    graph.node.extend([*moved.node, *passed, *later])
    graph.initializer.extend(moved.initializer)


def _outputs(branch: onnx.GraphProto, node: onnx.NodeProto) -> Iterator[tuple[onnx.ValueInfoProto, str]]:
    return ((inside, outside) for inside, outside in zip(branch.output, node.output, strict=True) if outside)


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Give tensors other names, in the graph and in those inside it."""
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for value in graph.output:
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _rename(inner, names)


def fold_constants(graph: onnx.GraphProto) -> None:
    """Replace, in place, nodes whose inputs are all small constants by what they compute. Nodes that cannot be computed stay."""
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    known: dict[str, Any] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if _is_small(tensor)}
    for node in list(graph.node):
        if node.domain not in ("", "ai.onnx") or node.op_type in _NOT_FOLDED | _MAY_GROW or any(name and name not in known for name in node.input):
            continue
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            continue
        if node.op_type == "ConstantOfShape" and math.prod(known[node.input[0]].tolist()) > _MOST_ELEMENTS:
            continue
        try:
            values = ReferenceEvaluator(node).run(None, {name: known[name] for name in node.input if name})
        except Exception:  # noqa: BLE001, S112 - the evaluator raises whatever numpy does; a node that it cannot compute is only not folded
            continue
        if all(isinstance(value, np.ndarray | np.generic) and value.size <= _MOST_ELEMENTS for value in values):
            arrays = {name: np.asarray(value) for name, value in zip(node.output, values, strict=False) if name}
            known |= arrays
            graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
            graph.node.remove(node)


def _is_small(tensor: Any) -> bool:
    return (
        not tensor.external_data
        and math.prod(tensor.dims) <= _MOST_ELEMENTS
        and (len(tensor.raw_data) > 0 or math.prod(tensor.dims) == 0 or _has_fields(tensor))
    )


def _has_fields(tensor: Any) -> bool:
    return bool(tensor.float_data or tensor.int32_data or tensor.int64_data or tensor.double_data or tensor.uint64_data or tensor.string_data)
