"""The walk through a graph that `rebatch` makes: what it knows, what it has changed, what it could not change.

Holds the state and the means (a fresh name, a constant, the batch size at run time); which operator needs which repair is in `pins.py` and `operands.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tritongen.rewrite.document import describe, graphs
from tritongen.rewrite.facts import UNKNOWN, Array, Fact, Inference, State, combine, of_constant


@dataclass(frozen=True)
class Pin:
    """A node that fixes the batch and cannot be changed: where it is, which input does it, and why."""

    node: onnx.NodeProto
    tensor: str
    reason: str
    inside: tuple[str, ...] = ()

    def __str__(self) -> str:
        through = f" (input {list(self.node.input).index(self.tensor)}, '{self.tensor}')" if self.tensor in self.node.input else ""
        return f"{describe(self.node, self.inside)} fixes the batch size{through}: {self.reason}"


@dataclass
class Walk:
    """State of one walk.

    Attributes:
        model: the model being rewritten.
        batch: the input whose axis 0 tells the batch size at run time.
        sizes: the exported batch size and the probing one.
        facts: what is known of each tensor by name. ONNX lets no inner graph reuse an outer name.
        stored: initializers by name.
        constants: tensors of Constant nodes by output name.
        producers: the node that computes a tensor.
        out: nodes of the graph being written, in order.
        inside: the nodes around the graph being walked, outermost first.
        prelude: new nodes for the start of the outermost graph.
        made: names of the tensors that the rewrite added.
        symbolic: whether inputs have other variable dimensions; their sizes in `facts` are examples then, which must not be written into the graph.
    """

    model: onnx.ModelProto
    batch: str
    sizes: tuple[int, int]
    facts: dict[str, Fact] = field(default_factory=dict)
    stored: dict[str, onnx.TensorProto] = field(default_factory=dict)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    producers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    out: list[onnx.NodeProto] = field(default_factory=list)
    inside: tuple[str, ...] = ()
    symbolic: bool = False
    notes: list[str] = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    inference: Inference = field(init=False)
    prelude: list[onnx.NodeProto] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)
    _rows: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.inference = Inference(self.model)
        for graph in graphs(self.model.graph):
            self._names.update(value.name for value in (*graph.input, *graph.output, *graph.value_info))
            self._names.update(tensor.name for tensor in graph.initializer)
            self._names.update(name for node in graph.node for name in (*node.input, *node.output, node.name))

    @property
    def opset(self) -> int:
        """Version of the ONNX operator set."""
        return next((entry.version for entry in self.model.opset_import if entry.domain in ("", "ai.onnx")), 1)

    def fact(self, name: str) -> Fact:
        """What is known of a tensor."""
        return self.facts.get(name, UNKNOWN)

    def axes(self, name: str) -> dict[int, int]:
        """The batch axes of a tensor that depends on the inputs' content: axis → rows per item."""
        fact = self.fact(name)
        return fact.axes(self.sizes) if fact.varies else {}

    def axis(self, name: str) -> tuple[int, int] | None:
        """The batch axis of a tensor and its rows per item, or None where there is none, or more than one."""
        axes = self.axes(name)
        return next(iter(axes.items())) if len(axes) == 1 else None

    def vector(self, name: str) -> Array | None:
        """The value of a small constant that is the same at every batch size."""
        fact = self.fact(name)
        old, new = fact.old.value, fact.new.value
        return old if old is not None and new is not None and np.array_equal(old, new) else None

    def fresh(self, stem: str) -> str:
        """A name that no tensor and no node has."""
        name, number = f"{stem}_rebatched", 1
        while name in self._names:
            number += 1
            name = f"{stem}_rebatched{number}"
        self._names.add(name)
        self.made.add(name)
        return name

    def emit(self, operator: str, inputs: Sequence[str], stem: str, *, prelude: bool = False, **attributes: Any) -> str:
        """Add a node and give the name of its output. `prelude`: at the start of the outermost graph, where all graphs see it."""
        output = self.fresh(stem)
        node = helper.make_node(operator, list(inputs), [output], name=output, **attributes)
        (self.prelude if prelude else self.out).append(node)
        self.learn(node)
        return output

    def constant(self, array: Array, stem: str, *, prelude: bool = False) -> str:
        """Add a Constant node, which files of every IR version may have, and give its output's name."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(array))
        name = self.emit("Constant", [], stem, prelude=prelude, value=tensor)
        self.constants[name] = tensor
        return name

    def rows(self, per_item: int) -> str:
        """Name of a vector of one element: the batch size at run time, times `per_item`."""
        if per_item not in self._rows:
            if 1 not in self._rows:
                shape = self.emit("Shape", [self.batch], "batch_shape", prelude=True)
                first = self.constant(np.zeros(1, dtype=np.int64), "batch_axis", prelude=True)
                self._rows[1] = self.emit("Gather", [shape, first], "batch_size", prelude=True, axis=0)
            if per_item != 1:
                factor = self.constant(np.array([per_item], dtype=np.int64), "rows_per_item", prelude=True)
                self._rows[per_item] = self.emit("Mul", [self._rows[1], factor], "batch_rows", prelude=True)
        return self._rows[per_item]

    def with_rows(self, vector: str, position: int, per_item: int, length: int) -> str:
        """Name of the vector `vector` of `length` elements with the one at `position` replaced by the rows at run time."""
        value = self.vector(vector)
        parts = []
        for span in (range(position), range(position + 1, length)):
            if not span:
                parts.append("")
            elif value is not None:
                parts.append(self.constant(value.astype(np.int64)[list(span)], vector))
            else:
                parts.append(self.emit("Gather", [vector, self.constant(np.array(span, dtype=np.int64), vector)], vector, axis=0))
        whole = [name for name in (parts[0], self.rows(per_item), parts[1]) if name]
        return self.emit("Concat", whole, vector, axis=0)

    def pin(self, node: onnx.NodeProto, tensor: str, reason: str) -> None:
        """Record that a node fixes the batch."""
        self.pins.append(Pin(node, tensor, reason, self.inside))

    def note(self, node: onnx.NodeProto, what: str) -> None:
        """Record a change, as a sentence that begins with the node."""
        self.notes.append(f"{describe(node, self.inside)} {what}"[0].upper() + f"{describe(node, self.inside)} {what}"[1:])

    def learn(self, node: onnx.NodeProto) -> None:
        """Infer the facts of a new node of ours."""
        old, new = (self.inference.infer(node, self.facts, new=which) for which in (False, True))
        self.facts.update(combine(node, self.facts, old, new, self.sizes))
        self.producers.update(dict.fromkeys(node.output, node))

    def store(self, graph: onnx.GraphProto, folder: Path) -> None:
        """Learn the stored tensors of a graph. `folder`: where external data lies."""
        for tensor in graph.initializer:
            self.stored[tensor.name] = tensor
            self.facts[tensor.name] = of_constant(tensor, folder)
        for sparse in graph.sparse_initializer:
            state = State(tuple(sparse.dims))
            self.facts[sparse.values.name] = Fact(sparse.values.data_type, state, state)


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer attribute of a node."""
    return next((each.i for each in node.attribute if each.name == name), default)


def integers(node: onnx.NodeProto, name: str) -> list[int] | None:
    """A list attribute of a node, or None where it is absent."""
    return next((list(each.ints) for each in node.attribute if each.name == name), None)


def set_attribute(node: onnx.NodeProto, name: str, value: int | Sequence[int]) -> None:
    """Replace an attribute of a node."""
    kept = [each for each in node.attribute if each.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def normal(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    return axis + rank if axis < 0 else axis


def known(shape: Sequence[int | str | None] | None) -> tuple[int, ...] | None:
    """The shape, where all of it is a number."""
    if shape is None:
        return None
    sizes = tuple(size for size in shape if isinstance(size, int))
    return sizes if len(sizes) == len(shape) else None
