"""Fill in the shapes that an exporter left out, with ONNX's own shape inference.

Used only where a signature leaves a question about outputs open: it has to load the graph, which reading a signature never does.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from tritongen.signature.folding import settled
from tritongen.signature.modelproto import TENSOR_VALUES
from tritongen.signature.tensors import Dim, Signature, TensorSpec
from tritongen.signature.wire import Source, WireError, varint

_SMALL_BYTES = 4096
_LENGTH = 2
_GRAPH = 7 << 3 | _LENGTH  # ModelProto.graph
_INITIALIZER = 5 << 3 | _LENGTH  # GraphProto.initializer
_TENSOR_HEAD = frozenset({1 << 3, 1 << 3 | _LENGTH, 2 << 3, 8 << 3 | _LENGTH})  # TensorProto.dims, also packed; data_type; name


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


def refine_outputs(path: Path, signature: Signature) -> Signature:
    """The signature with the outputs that ONNX Runtime reports once it has loaded the model: it fixes those free dimensions that shape inference can tell.

    Weights are not read: tensors above 4 KiB lose their values on the way to ONNX's shape inference, which needs only small ones. A model that ONNX itself
    cannot read, or cannot infer, keeps its signature. (ONNX Runtime also computes what depends on large constants.)
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        inferred = settled(onnx.load_model_from_string(without_weights(path)))
    except (OSError, WireError, DecodeError, onnx.shape_inference.InferenceError, ValueError):
        return signature
    known = {value.name: _shape(value) for value in inferred.graph.output}
    return dataclasses.replace(signature, outputs=tuple(_merged(tensor, known.get(tensor.name)) for tensor in signature.outputs))


def _merged(tensor: TensorSpec, shape: tuple[Dim, ...] | None) -> TensorSpec:
    """The tensor with its free dimensions fixed where the inferred shape has a number."""
    if shape is None or (tensor.shape is not None and len(shape) != len(tensor.shape)):
        return tensor
    if tensor.shape is None:
        return dataclasses.replace(tensor, shape=shape)
    return dataclasses.replace(tensor, shape=tuple(new if isinstance(new, int) else old for old, new in zip(tensor.shape, shape, strict=True)))


def without_weights(path: Path) -> bytes:
    """The bytes of a model file, with the initializers of its graph that are larger than `_SMALL_BYTES` reduced to name, type and dims."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        source = Source(file.fileno(), size)
        parts: list[bytes] = []
        for tag, value, end in source.fields([(0, size)]):
            if tag == _GRAPH:
                graph = b"".join(_graph_parts(source, value, end))
                parts.append(varint(tag) + varint(len(graph)) + graph)
            else:
                parts.append(_raw(source, tag, value, end))
        return b"".join(parts)


def _graph_parts(source: Source, start: int, stop: int) -> Iterator[bytes]:
    for tag, value, end in source.fields([(start, stop)]):
        if tag == _INITIALIZER and end - value > _SMALL_BYTES:
            tensor = b"".join(_raw(source, *inner) for inner in source.fields([(value, end)], TENSOR_VALUES) if inner[0] in _TENSOR_HEAD)
            yield varint(tag) + varint(len(tensor)) + tensor
        else:
            yield _raw(source, tag, value, end)


def _raw(source: Source, tag: int, value: int, end: int) -> bytes:
    """One field, written again. A varint's value is `value`; else the payload lies in the file from there to `end`."""
    if tag & 7 == 0:
        return varint(tag) + varint(value)
    payload = source.payload(value, end)
    return varint(tag) + (varint(len(payload)) if tag & 7 == _LENGTH else b"") + payload
