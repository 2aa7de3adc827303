"""Small graphs for the tests of rewriting, each with one thing that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import networks
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
Dims = Sequence[int | str | None]
node = helper.make_node


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def scalar(name: str, value: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value), name)


def floats(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32), name)


def zeros(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, dtype=np.float32), name)


@dataclass(frozen=True)
class Graph:
    """`x → y`, and what is between."""

    x: Dims
    nodes: Sequence[onnx.NodeProto]
    y: Dims
    stored: Sequence[onnx.TensorProto] = ()
    opset: int = 17

    def save(self, path: Path) -> Path:
        return networks.save(path, list(self.nodes), [("x", FLOAT, list(self.x))], [("y", FLOAT, list(self.y))], list(self.stored), opset=self.opset)


def subgraph(nodes: Sequence[onnx.NodeProto], outputs: Sequence[tuple[str, int, Dims]], inputs: Sequence[tuple[str, int, Dims]] = ()) -> onnx.GraphProto:
    """The graph of a branch or a loop's body."""
    ins, outs = ([helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in side] for side in (inputs, outputs))
    return helper.make_graph(list(nodes), "inner", ins, outs)


def loop(state: onnx.TensorProto) -> Graph:
    """Three turns of `state = reshape(state + x)`, with the batch written into the Reshape inside."""
    body = subgraph(
        [node("Identity", ["go"], ["on"]), node("Add", ["state", "x"], ["sum"]), node("Reshape", ["sum", "shape"], ["next"], name="inner")],
        [("on", TensorProto.BOOL, []), ("next", FLOAT, [1, 4])],
        [("turn", TensorProto.INT64, []), ("go", TensorProto.BOOL, []), ("state", FLOAT, [1, 4])],
    )
    stored = [scalar("turns", 3), scalar("yes", True), state, ints("shape", 1, 4)]
    return Graph([1, 4], [node("Loop", ["turns", "yes", state.name], ["y"], body=body, name="loop")], [1, 4], stored)


def branches(other: onnx.NodeProto, *stored: onnx.TensorProto) -> Graph:
    """An If whose first branch has a pinned Reshape, and whose second is `other`, which computes `e`."""
    then = subgraph([node("Reshape", ["x", "shape"], ["t"], name="inner")], [("t", FLOAT, [1, 4])])
    alternative = subgraph([other], [("e", FLOAT, [1, 4])])
    choice = node("If", ["yes"], ["y"], then_branch=then, else_branch=alternative, name="choice")
    return Graph([1, 2, 2], [choice], [1, 4], [scalar("yes", True), ints("shape", 1, 4), *stored])
