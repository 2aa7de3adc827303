"""Fill in the shapes that an exporter left out, with ONNX's own shape inference.

Used only for a model with an input or output that states no shape at all: it has to load the graph, which reading a signature never does.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tritongen.signature.tensors import Dim, Signature, TensorSpec


def infer_missing_shapes(path: Path, signature: Signature) -> Signature:
    """The signature with every shape that ONNX's shape inference can tell; what it cannot tell stays None."""
    if all(tensor.shape is not None for tensor in signature.outputs):
        return signature
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    inferred = onnx.shape_inference.infer_shapes(model)
    known = {value.name: _shape(value) for value in inferred.graph.output}
    return dataclasses.replace(signature, outputs=tuple(_completed(tensor, known.get(tensor.name)) for tensor in signature.outputs))


def _completed(tensor: TensorSpec, shape: tuple[Dim, ...] | None) -> TensorSpec:
    return tensor if tensor.shape is not None or shape is None else dataclasses.replace(tensor, shape=shape)


def _shape(value: object) -> tuple[Dim, ...] | None:
    kind = value.type.tensor_type  # type: ignore[attr-defined]
    if not kind.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0 else dim.dim_param or None for dim in kind.shape.dim)
