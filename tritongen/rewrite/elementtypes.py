"""The element type of every tensor of a graph, as far as it follows from the graph: ONNX's inference, and a guess for operators that ONNX does not know."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from tritongen.rewrite.document import graphs, skeleton

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)


def infer_types(model: onnx.ModelProto) -> list[dict[str, onnx.ValueInfoProto]]:
    """For the graph and each graph inside it, in the order of `graphs`, every tensor that is declared there or computed by a node, by name.

    Weights are not looked at. What an operator of another domain computes is taken to be floats of the kind that it gets. Raises
    onnx.shape_inference.InferenceError where the graph contradicts itself.
    """
    inferred = onnx.shape_inference.infer_shapes(skeleton(model))
    outer: dict[str, onnx.ValueInfoProto] = {}
    found = []
    for graph in graphs(inferred.graph):
        known = dict(_declared(graph))
        for node in graph.node:
            kinds = [kind for name in node.input if (kind := _elem_type(known.get(name) or outer.get(name))) in FLOATS]
            for name in filter(None, node.output):
                if kinds and not _elem_type(known.get(name)):
                    known[name] = onnx.helper.make_tensor_value_info(name, kinds[0], None)
        outer |= known
        found.append(known)
    return found


def _declared(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.ValueInfoProto]]:
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.WhichOneof("value"):
            yield value.name, value
    for tensor in graph.initializer:
        yield tensor.name, onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))


def _elem_type(value: onnx.ValueInfoProto | None) -> int:
    return value.type.tensor_type.elem_type if value is not None else 0
