"""A model of FP16 as a CPU can run it: in FP32, with every result rounded to FP16 where a device with FP16 kernels rounds it.

ONNX Runtime's CPU provider has few FP16 kernels. It casts to FP32 for each node, and leaves the casts between two nodes out, so that what overflows on a GPU
comes out right on the CPU. It keeps casts that stand in the file: those of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tritongen.rewrite.document import graphs
from tritongen.rewrite.elementtypes import infer_types

_MOVES = frozenset({
    "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Split", "Concat", "Gather", "GatherElements", "GatherND", "Identity", "Relu",
    "MaxPool", "Expand", "Tile", "Where", "Neg", "Abs", "DepthToSpace", "SpaceToDepth", "If", "Loop", "Scan", "GlobalMaxPool",
    "ReduceMax", "ReduceMin", "Max", "Min",
})  # fmt: skip
"""Operators that give back numbers which they were given, or which their own graphs have rounded."""

ROUNDED = "/rounded"
"""End of the name of the FP16 tensor that a node's result becomes on its way."""


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with FP32 in the place of FP16, inputs and outputs too, and every result rounded. It must have its weights loaded.

    Raises onnx.shape_inference.InferenceError where the graph contradicts itself.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for graph, known in zip(graphs(wide.graph), infer_types(model), strict=True):
        halves = {name for name, value in known.items() if value.type.tensor_type.elem_type == TensorProto.FLOAT16}
        for tensor in graph.initializer:
            _widen(tensor)
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        del graph.value_info[:]
        nodes = [made for node in graph.node for made in _rounding(node, halves)]
        del graph.node[:]
        graph.node.extend(nodes)
    return wide


def _widen(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT16:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))


def _rounding(node: onnx.NodeProto, halves: set[str]) -> Iterator[onnx.NodeProto]:
    """The node in FP32, and the casts behind each of its FP16 results."""
    made = [name for name in node.output if name in halves] if node.op_type not in _MOVES else []
    casts = node.op_type == "Cast"
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _widen(attribute.t)
        if attribute.name == "dtype" and attribute.i == TensorProto.FLOAT16:
            attribute.i = TensorProto.FLOAT
    names: Mapping[str, str] = {name: f"{name}{ROUNDED if casts else '/exact'}" for name in made}
    node.output[:] = [names.get(name, name) for name in node.output]
    yield node
    for name in made:
        if not casts:
            yield helper.make_node("Cast", [names[name]], [name + ROUNDED], to=TensorProto.FLOAT16)
        yield helper.make_node("Cast", [name + ROUNDED], [name], to=TensorProto.FLOAT)
