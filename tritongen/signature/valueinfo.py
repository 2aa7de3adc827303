"""A graph input or output as it stands in an ONNX file: `ValueInfoProto`, its type and its shape. Judges nothing; names stay bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritongen.signature.tensors import Dim
from tritongen.signature.wire import Source, Span, signed, signed32

_VALUE_NAME, _VALUE_TYPE, _TYPE_TENSOR, _TENSOR_TYPE_ELEMENT, _TENSOR_TYPE_SHAPE = 0x0A, 0x12, 0x0A, 0x08, 0x12
_SHAPE_DIM, _DIM_VALUE, _DIM_PARAM = 0x0A, 0x08, 0x12
_TYPE_KINDS = {_TYPE_TENSOR: "tensor", 0x22: "sequence", 0x2A: "map", 0x3A: "opaque", 0x42: "sparse tensor", 0x4A: "optional"}
_VALUE_STEPS = 16  # what a graph input or output costs beyond its fields, as each may become a finding


@dataclass
class ValueInfo:
    """A graph input or output. `kind` is "" where the file states no type; `shape` is None where a tensor's type states no shape."""

    name: bytes = b""
    kind: str = ""
    elem_type: int = 0
    shape: tuple[Dim, ...] | None = None


def read_value(source: Source, span: Span) -> ValueInfo:
    """Reads one `ValueInfoProto`. Raises WireError where its bytes are not valid."""
    value = ValueInfo()
    source.spend(_VALUE_STEPS)
    types: list[Span] = []
    for tag, start, stop in source.fields((span,)):
        if tag == _VALUE_NAME:
            value.name = source.string(start, stop)
        elif tag == _VALUE_TYPE:
            source.keep(types, (start, stop))
    tensor: list[Span] = []
    for tag, start, stop in source.fields(types):
        kind = _TYPE_KINDS.get(tag, value.kind)
        if kind != value.kind:  # the kinds are a oneof: a later one replaces an earlier one, the same one merges with it
            tensor.clear()
        value.kind = kind
        if tag == _TYPE_TENSOR:
            source.keep(tensor, (start, stop))
    _tensor_type(source, value, tensor)
    return value


def _tensor_type(source: Source, value: ValueInfo, spans: Sequence[Span]) -> None:
    shape: list[Span] = []
    for tag, start, stop in source.fields(spans):
        if tag == _TENSOR_TYPE_ELEMENT:
            value.elem_type = signed32(start)
        elif tag == _TENSOR_TYPE_SHAPE:
            source.keep(shape, (start, stop))
    if shape:
        value.shape = tuple(_dim(source, (start, stop)) for tag, start, stop in source.fields(shape) if tag == _SHAPE_DIM)


def _dim(source: Source, span: Span) -> Dim:
    """One dimension; a size below zero and an empty name say nothing, so they are None."""
    dim: Dim = None
    for tag, start, stop in source.fields((span,)):
        if tag == _DIM_VALUE:
            dim = signed(start) if signed(start) >= 0 else None
        elif tag == _DIM_PARAM:
            dim = text(source.string(start, stop)) or None
    return dim


def text(raw: bytes) -> str:
    """Bytes of a name as text; those that are not UTF-8 are shown as hexadecimal escapes."""
    return raw.decode("utf-8", errors="backslashreplace")
