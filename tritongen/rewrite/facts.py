"""What is known of each tensor at two batch sizes: the one a graph was exported with, and another.

Both are followed through the graph side by side with ONNX's own shape inference, one node at a time. A dimension that grows with the batch carries it; one that
does not, though its inputs do, is where a graph pins it. Small integer values (shapes computed inside the graph) are followed too. Nothing is executed on data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tritongen.rewrite.document import has_few_elements, subgraphs

Array = np.ndarray[Any, Any]
Shape = tuple[int | str | None, ...]

_VALUE_ELEMENTS = 1024

# Operators that exporters compute shapes with; their results are small and cheap to evaluate.
_EVALUATED = frozenset({
    "Abs", "Add", "And", "Cast", "Ceil", "Concat", "Constant", "ConstantOfShape", "CumSum", "Div", "Equal", "Expand", "Flatten", "Floor", "Gather",
    "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or",
    "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "Split",
    "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where",
})  # fmt: skip
_SIZED_BY_VALUE = ("Reshape", "Slice", "Range")  # inference does not always tell their shapes
_SHAPE_OPERATORS = ("Shape", "Size")

# What onnx.reference raises for a node it cannot evaluate; it wraps some faults and lets numpy's through.
_EVALUATION_ERRORS = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class State:
    """A tensor at one batch size: its shape (None where unknown; symbols for what varies apart from the batch), and its value where it is small."""

    shape: Shape | None = None
    value: Array | None = None


@dataclass(frozen=True)
class Fact:
    """A tensor at the exported size and at the other one.

    Attributes:
        elem_type: ONNX `TensorProto.DataType`, 0 where unknown.
        old: at the exported batch size.
        new: at the probing batch size.
        varies: whether its content depends on the content of an input.
        lost: the node where the batch axis of what it is made from disappeared.
    """

    elem_type: int = 0
    old: State = State()
    new: State = State()
    varies: bool = False
    lost: onnx.NodeProto | None = None

    def axes(self, sizes: tuple[int, int]) -> dict[int, int]:
        """The axes that carry the batch, each with its rows per item, for the batch `sizes` (exported, probing)."""
        if self.old.shape is None or self.new.shape is None or len(self.old.shape) != len(self.new.shape):
            return {}
        found = {}
        for axis, (old, new) in enumerate(zip(self.old.shape, self.new.shape, strict=True)):
            if isinstance(old, int) and isinstance(new, int) and old != new and old % sizes[0] == 0 and old // sizes[0] * sizes[1] == new:
                found[axis] = old // sizes[0]
        return found


UNKNOWN = Fact()


def of_constant(tensor: onnx.TensorProto, folder: Path) -> Fact:
    """The fact of a stored tensor; its value where it is small. `folder`: where external data lies."""
    dims = tuple(tensor.dims)
    value = numpy_helper.to_array(tensor, str(folder)) if has_few_elements(tensor) and tensor.data_type != onnx.TensorProto.STRING else None
    state = State(dims, value)
    return Fact(tensor.data_type, state, state)


def of_type(value: onnx.ValueInfoProto) -> tuple[int, Shape | None]:
    """Element type and shape of a declared tensor."""
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return kind.elem_type, None
    return kind.elem_type, tuple(dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or None for dim in kind.shape.dim)


class Inference:
    """Applies ONNX's shape inference to single nodes of one model, with that model's operator sets and functions."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._frame = onnx.ModelProto(ir_version=max(model.ir_version, 4))
        self._frame.opset_import.extend(model.opset_import)
        self._frame.functions.extend(model.functions)

    def infer(self, node: onnx.NodeProto, facts: Mapping[str, Fact], *, new: bool) -> dict[str, tuple[int, State]]:
        """Element type and state of each output at one size. Raises onnx.shape_inference.InferenceError where the inputs do not fit the node."""
        model = self._around(node, facts, new=new)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        outputs = {value.name: of_type(value) for value in inferred.graph.output}
        values = self._values(node, model, outputs)
        return {name: (elem_type, State(shape if name not in values else values[name].shape, values.get(name))) for name, (elem_type, shape) in outputs.items()}

    def _around(self, node: onnx.NodeProto, facts: Mapping[str, Fact], *, new: bool) -> onnx.ModelProto:
        """A model of this one node."""
        model = onnx.ModelProto()
        model.CopyFrom(self._frame)
        graph = model.graph
        graph.name = "node"
        graph.node.append(node)
        for name in dict.fromkeys((*filter(None, node.input), *free_names(node))):
            fact = facts.get(name, UNKNOWN)
            state = fact.new if new else fact.old
            if state.value is not None:
                graph.initializer.append(numpy_helper.from_array(state.value, name))
            elif fact.elem_type:
                graph.input.append(onnx.helper.make_tensor_value_info(name, fact.elem_type, state.shape))
            else:
                graph.input.append(onnx.ValueInfoProto(name=name))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
        return model

    def _values(self, node: onnx.NodeProto, model: onnx.ModelProto, outputs: Mapping[str, tuple[int, Shape | None]]) -> dict[str, Array]:
        """The values of a node's outputs, where they follow from known values or shapes and are small."""
        if node.domain not in ("", "ai.onnx") or node.op_type not in _EVALUATED:
            return {}
        if node.op_type not in _SIZED_BY_VALUE and any(shape is None or not all(isinstance(size, int) for size in shape) for _, shape in outputs.values()):
            return {}
        if any(_elements(shape) > _VALUE_ELEMENTS for _, shape in outputs.values()):
            return {}
        if node.op_type in _SHAPE_OPERATORS:
            return _shape_value(node, model)
        if len(model.graph.input):
            return {}
        from onnx.reference import ReferenceEvaluator

        try:
            with np.errstate(all="ignore"):  # a division by zero is the graph's affair
                results = ReferenceEvaluator(model).run(None, {})
        except _EVALUATION_ERRORS:
            return {}  # its value stays unknown; the shape is known all the same
        named = zip((value.name for value in model.graph.output), results, strict=True)
        return {name: np.asarray(value) for name, value in named if np.asarray(value).size <= _VALUE_ELEMENTS and np.asarray(value).dtype != object}


def _elements(shape: Shape | None) -> int:
    count = 1
    for size in shape or ():
        count *= size if isinstance(size, int) else 1
    return count


def _shape_value(node: onnx.NodeProto, model: onnx.ModelProto) -> dict[str, Array]:
    """What Shape or Size gives, from the shape alone."""
    if len(model.graph.initializer):
        shape: Shape | None = tuple(model.graph.initializer[0].dims)
    else:
        shape = of_type(model.graph.input[0])[1]
    if shape is None:
        return {}
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    part = shape[attributes.get("start", 0) : attributes.get("end", len(shape))]
    if not all(isinstance(size, int) for size in part):
        return {}
    sizes = np.array(part, dtype=np.int64)
    return {node.output[0]: sizes if node.op_type == "Shape" else np.array(sizes.prod(), dtype=np.int64)}


def free_names(node: onnx.NodeProto) -> list[str]:
    """Names that the graphs inside a node take from outside."""
    names: list[str] = []
    for graph in subgraphs(node):
        inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        for inner in graph.node:
            names += [name for name in (*inner.input, *free_names(inner)) if name and name not in inside]
            inside.update(inner.output)
        names += [value.name for value in graph.output if value.name not in inside]
    return list(dict.fromkeys(names))


def combine(
    node: onnx.NodeProto, facts: Mapping[str, Fact], old: Mapping[str, tuple[int, State]], new: Mapping[str, tuple[int, State]], sizes: tuple[int, int]
) -> dict[str, Fact]:
    """The facts of a node's outputs from what was inferred at both sizes."""
    inputs = [facts.get(name, UNKNOWN) for name in (*node.input, *free_names(node)) if name]
    varies = node.op_type not in _SHAPE_OPERATORS and any(fact.varies for fact in inputs)
    carrying = any(fact.varies and fact.axes(sizes) for fact in inputs)
    before = next((fact.lost for fact in inputs if fact.lost is not None), None)
    found = {}
    for name, (elem_type, state) in old.items():
        fact = Fact(elem_type, state, new.get(name, (0, State()))[1], varies)
        if varies and not fact.axes(sizes):
            here = carrying and fact.old.shape is not None and fact.new.shape is not None
            fact = replace(fact, lost=node if here else before)
        found[name] = fact
    return found


def used_names(graph: onnx.GraphProto) -> set[str]:
    """Every name that a node of the graph reads, or that is one of its outputs; inner graphs included."""
    names = {value.name for value in graph.output}
    for node in graph.node:
        names.update(node.input)
        for inner in subgraphs(node):
            names |= used_names(inner)
    return names
