"""Model files seen from outside: `read_onnx(path)` gives a `Signature` without reading weights."""

from tritongen.signature.onnx import read_onnx
from tritongen.signature.tensors import Dim, ExternalData, Signature, TensorSpec, symbol_of

__all__ = ["Dim", "ExternalData", "Signature", "TensorSpec", "read_onnx", "symbol_of"]
