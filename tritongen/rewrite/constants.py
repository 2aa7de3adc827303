"""What the sizes of a graph's tensors are, once those of its inputs are all numbers.

ONNX's shape inference alone loses a size on its way through a Cast or a Slice of a shape; here shapes that are known become constants, constants are computed,
and the inference goes on from there.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from tritongen.rewrite.document import skeleton
from tritongen.signature.inference import fold_constants

_MOST_ROUNDS = 50
Sizes = tuple[int | None, ...]


def fixed_outputs(model: onnx.ModelProto, size: int) -> dict[str, Sizes]:
    """The shape of each output by name, with None for what is not known, where every free dimension of the inputs has `size`; empty where inference fails."""
    light = skeleton(model)
    for value in light.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.dim_value = size
    del light.graph.value_info[:]
    for value in light.graph.output:
        value.type.tensor_type.ClearField("shape")
    known: dict[str, Sizes] = {}
    for _ in range(_MOST_ROUNDS):
        try:
            inferred = onnx.shape_inference.infer_shapes(light, data_prop=True)
        except onnx.shape_inference.InferenceError:
            return {}
        known = {value.name: _sizes(value) for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output)}
        count = len(light.graph.node)
        _fix_shapes(light.graph, known)
        fold_constants(light.graph)
        if len(light.graph.node) == count:
            break
    return {value.name: known[value.name] for value in light.graph.output if value.name in known}


def _sizes(value: onnx.ValueInfoProto) -> Sizes:
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim)


def _fix_shapes(graph: onnx.GraphProto, known: dict[str, Sizes]) -> None:
    """Replace, in place, the Shape nodes whose answer is known by that answer."""
    for node in list(graph.node):
        sizes = known.get(node.input[0]) if node.op_type == "Shape" and len(node.input) == 1 and not node.attribute else None
        if sizes and None not in sizes and node.output[0] not in {value.name for value in graph.output}:
            graph.initializer.append(numpy_helper.from_array(np.array(sizes, dtype=np.int64), node.output[0]))
            graph.node.remove(node)
