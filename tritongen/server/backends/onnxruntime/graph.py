"""The model's side: what onnxruntime says about a graph's inputs and outputs, in Triton's terms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .errors import RefusedError
from .verdicts import ortload

_TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
    "tensor(string)": "TYPE_STRING",
    "tensor(bfloat16)": "TYPE_BF16",
}
"""onnxruntime's type names and `DataType` of Triton's model_config.proto. The stub cannot import tritongen's own table."""


def read(session: Any) -> ortload.Graph:
    """The interface of a loaded model. Raises RefusedError for what is no tensor."""
    return ortload.Graph(_tensors(session.get_inputs()), _tensors(session.get_outputs()), _tensors(session.get_overridable_initializers()))


def _tensors(metas: Iterable[Any]) -> dict[str, ortload.GraphTensor]:
    found = {}
    for meta in metas:
        data_type = _TYPES.get(meta.type)
        if data_type is None:
            raise RefusedError(f"unsupported ONNX type '{meta.type}' for I/O '{meta.name}': Triton carries tensors of its own data types only")
        dims = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in meta.shape)
        found[meta.name] = ortload.GraphTensor(meta.name, data_type, dims)
    return found
