"""What differs between Triton's backends for a model that comes from an ONNX file: one row each."""

from __future__ import annotations

from dataclasses import dataclass

from tritongen.dtypes import DTYPES


@dataclass(frozen=True)
class Backend:
    """A backend's names, and the wire names of the dtypes that it can have at a model's border."""

    name: str
    platform: str
    filename: str
    dtypes: frozenset[str]


BACKENDS = {
    # Sources: onnxruntime_backend `ConvertOnnxDataType`; tensorrt_backend `ConvertTrtTypeToDataType`.
    "onnxruntime": Backend("onnxruntime", "onnxruntime_onnx", "model.onnx", frozenset(dtype.wire for dtype in DTYPES)),
    "tensorrt": Backend("tensorrt", "tensorrt_plan", "model.plan", frozenset({"FP32", "FP16", "BF16", "INT8", "UINT8", "INT32", "INT64", "BOOL"})),
}
