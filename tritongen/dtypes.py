"""The one table of data types: Triton's wire names, `TYPE_*` names, numpy and ONNX.

Sources: `DataType` in Triton's model_config.proto; ONNX `TensorProto.DataType` (the integers are part of the ONNX format and never change). Types that are in
ONNX but in no Triton protocol (complex, 8-bit floats, 4-bit types) are absent on purpose: a model that has them at its border cannot be served.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Dtype:
    """One data type under all its names.

    Attributes:
        wire: Triton's protocol name (`FP32`, `BYTES`), as in metadata and requests.
        config: the name in config.pbtxt (`TYPE_FP32`, `TYPE_STRING`).
        config_value: its number in `model_config.proto`.
        onnx: its number in ONNX `TensorProto.DataType`.
        itemsize: bytes per element; None for strings, whose elements have no fixed size.
        numpy_name: the numpy dtype's name; `bfloat16` is provided by ml_dtypes, strings are `object` arrays.
    """

    wire: str
    config: str
    config_value: int
    onnx: int
    itemsize: int | None
    numpy_name: str

    @cached_property
    def numpy(self) -> np.dtype:  # type: ignore[type-arg]
        """The numpy dtype. Imports numpy (and ml_dtypes for BF16) on first use."""
        import numpy

        if self.wire == "BF16":
            import ml_dtypes

            return numpy.dtype(ml_dtypes.bfloat16)
        return numpy.dtype(self.numpy_name)

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; BOOL is not one."""
        return "INT" in self.wire

    @property
    def is_float(self) -> bool:
        """True for FP16, BF16, FP32 and FP64."""
        return self.wire in ("FP16", "BF16", "FP32", "FP64")

    def __str__(self) -> str:
        return self.wire


DTYPES: tuple[Dtype, ...] = (
    Dtype("BOOL", "TYPE_BOOL", 1, 9, 1, "bool"),
    Dtype("UINT8", "TYPE_UINT8", 2, 2, 1, "uint8"),
    Dtype("UINT16", "TYPE_UINT16", 3, 4, 2, "uint16"),
    Dtype("UINT32", "TYPE_UINT32", 4, 12, 4, "uint32"),
    Dtype("UINT64", "TYPE_UINT64", 5, 13, 8, "uint64"),
    Dtype("INT8", "TYPE_INT8", 6, 3, 1, "int8"),
    Dtype("INT16", "TYPE_INT16", 7, 5, 2, "int16"),
    Dtype("INT32", "TYPE_INT32", 8, 6, 4, "int32"),
    Dtype("INT64", "TYPE_INT64", 9, 7, 8, "int64"),
    Dtype("FP16", "TYPE_FP16", 10, 10, 2, "float16"),
    Dtype("FP32", "TYPE_FP32", 11, 1, 4, "float32"),
    Dtype("FP64", "TYPE_FP64", 12, 11, 8, "float64"),
    Dtype("BYTES", "TYPE_STRING", 13, 8, None, "object"),
    Dtype("BF16", "TYPE_BF16", 14, 16, 2, "bfloat16"),
)

_BY_WIRE = {dtype.wire: dtype for dtype in DTYPES}
WIRE_NAMES = frozenset(_BY_WIRE)
"""All names that `from_wire` knows."""

_BY_CONFIG = {dtype.config: dtype for dtype in DTYPES}
_BY_CONFIG_VALUE = {dtype.config_value: dtype for dtype in DTYPES}
_BY_ONNX = {dtype.onnx: dtype for dtype in DTYPES}


def from_wire(name: str) -> Dtype:
    """The dtype with this protocol name, such as `FP32`. Raises KeyError for an unknown one."""
    return _BY_WIRE[name]


def from_config(name_or_value: str | int) -> Dtype:
    """The dtype with this `TYPE_*` name or number. Raises KeyError for an unknown one and for TYPE_INVALID."""
    return _BY_CONFIG[name_or_value] if isinstance(name_or_value, str) else _BY_CONFIG_VALUE[name_or_value]


def from_onnx(elem_type: int) -> Dtype | None:
    """The dtype with this ONNX `TensorProto.DataType` number, or None where Triton has no such type."""
    return _BY_ONNX.get(elem_type)
