"""What the sizes of a graph's outputs are, once those of its inputs are all numbers."""

from __future__ import annotations

import onnx

from tritongen.rewrite.document import skeleton
from tritongen.signature.folding import Sizes, settled, sizes_of


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
    try:
        inferred = settled(light, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return {}
    return {value.name: sizes_of(value) for value in inferred.graph.output}
