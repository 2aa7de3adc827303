"""An ONNX `ModelProto` walked on the wire: the few facts that a signature needs, as the file states them.

Owns the field numbers of the ONNX format (onnx.proto, which never renumbers). Nothing is judged here: names stay bytes, element types stay numbers, and
`onnx.py` beside this module decides what Triton can serve. Nodes are walked for their domains, sub-graphs and references to external data; the payload of
a tensor is never read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tritongen.signature.valueinfo import ValueInfo, read_value
from tritongen.signature.wire import MAX_DEPTH, PART_STEPS, Source, Span, WireError, signed, signed32

# Tags are `field number << 3 | wire type`, as they stand in the file: 0 is a varint, 2 has a length, 5 is four bytes, 1 is eight bytes.
_MODEL_IR_VERSION, _MODEL_PRODUCER, _MODEL_PRODUCER_VERSION, _MODEL_GRAPH, _MODEL_OPSET, _MODEL_FUNCTION = 0x08, 0x12, 0x1A, 0x3A, 0x42, 0xCA
_OPSET_DOMAIN, _OPSET_VERSION = 0x0A, 0x10
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE = 0x0A, 0x2A, 0x5A, 0x62, 0x7A
_FUNCTION_NAME, _FUNCTION_NODE, _FUNCTION_DOMAIN, _FUNCTION_ATTRIBUTE = 0x0A, 0x3A, 0x52, 0x5A
_NODE_OP_TYPE, _NODE_ATTRIBUTE, _NODE_DOMAIN = 0x22, 0x2A, 0x3A
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_SPARSE = 0x2A, 0x32, 0xB2
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSES = 0x52, 0x5A, 0xBA
_TENSOR_DIM, _TENSOR_DIMS_PACKED, _TENSOR_DATA_TYPE, _TENSOR_NAME, _TENSOR_EXTERNAL, _TENSOR_DATA_LOCATION = 0x08, 0x0A, 0x10, 0x42, 0x6A, 0x70
_SPARSE_VALUES, _SPARSE_INDICES, _ENTRY_KEY, _ENTRY_VALUE = 0x0A, 0x12, 0x0A, 0x12

MODEL_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72, 0xA2, 0xCA, 0xD2})
"""The tags that a ModelProto may have at its outermost level."""

# Fields that nobody asks about. Those of a tensor are its values (also one field each, by the thousands), its payload and its documentation; those of an
# attribute its name, numbers and strings (tree ensembles have thousands); those of a node its inputs, outputs, name and documentation.
TENSOR_VALUES = frozenset({0x22, 0x25, 0x28, 0x2A, 0x32, 0x38, 0x3A, 0x4A, 0x51, 0x52, 0x58, 0x5A, 0x62})
_TENSOR_PLAIN = TENSOR_VALUES | {_TENSOR_DIM, _TENSOR_DIMS_PACKED, _TENSOR_DATA_TYPE, _TENSOR_EXTERNAL}
_ATTRIBUTE_PLAIN = frozenset({0x0A, 0x15, 0x18, 0x22, 0x3A, 0x3D, 0x40, 0x42, 0x4A, 0x6A})
_ATTRIBUTE_TYPE = b"\xa0\x01"
_NODE_NAMES = frozenset({0x0A, 0x12, 0x1A, 0x32})
_NODE_PLAIN = _NODE_NAMES | {_NODE_OP_TYPE}
_GRAPH_PLAIN = frozenset({0x12, 0x52, 0x6A, 0x72})
_GRAPH_STEPS = 8  # what a graph costs that waits for its turn, beyond its fields
_MAX_RANK = 64
_EXTERNAL = 1

_OWN_DOMAINS = frozenset(
    {
        b"", b"ai.onnx", b"ai.onnx.ml", b"ai.onnx.training", b"ai.onnx.preview", b"ai.onnx.preview.training",
        b"com.microsoft", b"com.microsoft.nchwc", b"com.microsoft.dml", b"com.microsoft.experimental", b"com.ms.internal.nhwc",
    }
)  # fmt: skip  # from the constants.h of ONNX (onnx/common) and of ONNX Runtime (core/graph)
_CONVOLUTION = b"Conv"
_CONVOLUTIONS = frozenset({b"Conv", b"ConvTranspose", b"ConvInteger", b"QLinearConv", b"FusedConv", b"NhwcConv", b"NhwcFusedConv", b"DeformConv"})


@dataclass
class Tensor:
    """A tensor whose bytes are in another file; `external` holds the entries of its external-data record."""

    name: bytes
    data_type: int
    dims: tuple[int, ...]
    external: dict[bytes, bytes]


@dataclass
class ModelProto:
    """What was found in the file. `operators` are the (domain, type) pairs of nodes outside ONNX's and ONNX Runtime's domains."""

    ir_version: int = 0
    producer: bytes = b""
    producer_version: bytes = b""
    opsets: list[tuple[bytes, int]] = field(default_factory=list)
    has_graph: bool = False
    inputs: list[ValueInfo] = field(default_factory=list)
    outputs: list[ValueInfo] = field(default_factory=list)
    initializers: set[bytes] = field(default_factory=set)
    operators: set[tuple[bytes, bytes]] = field(default_factory=set)
    functions: set[tuple[bytes, bytes]] = field(default_factory=set)
    external: list[Tensor] = field(default_factory=list)
    convolves: bool = False


def walk(source: Source) -> ModelProto:
    """Walks a whole model file.

    Raises WireError where the bytes are not valid, CutShortError where the file ends before the model does.
    """
    return _Walk(source).model()


class _Walk:
    """One pass over a file. Nested graphs wait in a queue, so the depth of the file never becomes the depth of our stack."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found = ModelProto()
        self.pending: deque[tuple[Span, int]] = deque()

    def model(self) -> ModelProto:
        graph: list[Span] = []
        functions: list[Span] = []
        found, source = self.found, self.source
        for tag, start, stop in source.fields(((0, source.size),)):
            if tag == _MODEL_IR_VERSION:
                found.ir_version = signed(start)
            elif tag == _MODEL_PRODUCER:
                found.producer = source.string(start, stop)
            elif tag == _MODEL_PRODUCER_VERSION:
                found.producer_version = source.string(start, stop)
            elif tag == _MODEL_OPSET:
                found.opsets.append(self._opset((start, stop)))
            elif tag == _MODEL_GRAPH:
                self.source.keep(graph, (start, stop))
            elif tag == _MODEL_FUNCTION:
                self.source.keep(functions, (start, stop))
        found.has_graph = bool(graph)
        self._main_graph(graph)
        for function in functions:
            self._function(function)
        while self.pending:
            span, depth = self.pending.popleft()
            self._subgraph(span, depth)
        return found

    def _opset(self, span: Span) -> tuple[bytes, int]:
        domain, version = b"", 0
        for tag, start, stop in self.source.fields((span,)):
            if tag == _OPSET_DOMAIN:
                domain = self.source.string(start, stop)
            elif tag == _OPSET_VERSION:
                version = signed(start)
        return domain, version

    def _main_graph(self, spans: Sequence[Span]) -> None:
        found = self.found
        for tag, start, stop in self.source.fields(spans, _GRAPH_PLAIN):
            if tag == _GRAPH_NODE:
                self._node((start, stop), 1)
            elif tag == _GRAPH_INITIALIZER:
                found.initializers.add(self._tensor(((start, stop),)))
            elif tag == _GRAPH_SPARSE:
                found.initializers.add(self._sparse(((start, stop),)))
            elif tag == _GRAPH_INPUT:
                found.inputs.append(read_value(self.source, (start, stop)))
            elif tag == _GRAPH_OUTPUT:
                found.outputs.append(read_value(self.source, (start, stop)))

    def _subgraph(self, span: Span, depth: int) -> None:
        """A graph inside an attribute: its inputs and outputs are nobody's business, its tensors and nodes are."""
        if depth > MAX_DEPTH:
            raise WireError(f"graphs nested more than {MAX_DEPTH} protobuf levels deep", span[0])
        for tag, start, stop in self.source.fields((span,), _GRAPH_PLAIN):
            if tag == _GRAPH_NODE:
                self._node((start, stop), depth)
            elif tag == _GRAPH_INITIALIZER:
                self._tensor(((start, stop),))
            elif tag == _GRAPH_SPARSE:
                self._sparse(((start, stop),))

    def _function(self, span: Span) -> None:
        name = domain = b""
        for tag, start, stop in self.source.fields((span,)):
            if tag == _FUNCTION_NAME:
                name = self.source.string(start, stop)
            elif tag == _FUNCTION_DOMAIN:
                domain = self.source.string(start, stop)
            elif tag == _FUNCTION_NODE:
                self._node((start, stop), 1)
            elif tag == _FUNCTION_ATTRIBUTE:
                self._attribute((start, stop), 1)
        self.found.functions.add((domain, name))

    def _node(self, span: Span, depth: int) -> None:
        if self.source.is_plain(span, _NODE_PLAIN, without=b"" if self.found.convolves else _CONVOLUTION):
            return
        domain = op_type = b""
        for tag, start, stop in self.source.fields((span,), _NODE_NAMES):
            if tag == _NODE_ATTRIBUTE:
                self._attribute((start, stop), depth + 1)
            elif tag == _NODE_DOMAIN:
                domain = self.source.string(start, stop)
            elif tag == _NODE_OP_TYPE:
                op_type = self.source.string(start, stop)
        if domain not in _OWN_DOMAINS:
            self.found.operators.add((domain, op_type))
        elif op_type in _CONVOLUTIONS:
            self.found.convolves = True

    def _attribute(self, span: Span, depth: int) -> None:
        if self.source.is_plain(span, _ATTRIBUTE_PLAIN, tail=_ATTRIBUTE_TYPE):
            return
        tensor: list[Span] = []
        graph: list[Span] = []
        sparse: list[Span] = []
        for tag, start, stop in self.source.fields((span,), _ATTRIBUTE_PLAIN):
            if tag == _ATTRIBUTE_TENSOR:
                self.source.keep(tensor, (start, stop))
            elif tag == _ATTRIBUTE_GRAPH:
                self.source.keep(graph, (start, stop))
            elif tag == _ATTRIBUTE_SPARSE:
                self.source.keep(sparse, (start, stop))
            elif tag == _ATTRIBUTE_TENSORS:
                self._tensor(((start, stop),))
            elif tag == _ATTRIBUTE_GRAPHS:
                self._later((start, stop), depth + 2)
            elif tag == _ATTRIBUTE_SPARSES:
                self._sparse(((start, stop),))
        for part in graph:
            self._later(part, depth + 2)
        if tensor:
            self._tensor(tensor)
        if sparse:
            self._sparse(sparse)

    def _later(self, graph: Span, depth: int) -> None:
        self.source.spend(_GRAPH_STEPS)
        self.pending.append((graph, depth))

    def _tensor(self, spans: Sequence[Span]) -> bytes:
        """Walks a tensor and gives its name; one whose bytes are in another file is kept as a whole."""
        name, location = b"", 0
        for tag, start, stop in self.source.fields(spans, _TENSOR_PLAIN):
            if tag == _TENSOR_NAME:
                name = self.source.string(start, stop)
            elif tag == _TENSOR_DATA_LOCATION and signed32(start) in (0, _EXTERNAL):
                location = signed32(start)  # an unknown value of an enum is an unknown field, by protobuf's rule
        if location == _EXTERNAL:
            self.found.external.append(self._external(name, spans))
        return name

    def _external(self, name: bytes, spans: Sequence[Span]) -> Tensor:
        dims: list[int] = []
        entries: dict[bytes, bytes] = {}
        data_type = 0
        for tag, start, stop in self.source.fields(spans, TENSOR_VALUES):
            if tag == _TENSOR_DIM and len(dims) < _MAX_RANK:
                dims.append(signed(start))
            elif tag == _TENSOR_DIMS_PACKED:
                dims.extend(signed(value) for value in self.source.packed(start, stop, _MAX_RANK - len(dims)))
            elif tag == _TENSOR_DATA_TYPE:
                data_type = signed32(start)
            elif tag == _TENSOR_EXTERNAL:
                entries.update([self._entry((start, stop))])
        return Tensor(name, data_type, tuple(dims), entries)

    def _entry(self, span: Span) -> tuple[bytes, bytes]:
        key = value = b""
        self.source.spend(PART_STEPS)
        for tag, start, stop in self.source.fields((span,)):
            if tag == _ENTRY_KEY:
                key = self.source.string(start, stop)
            elif tag == _ENTRY_VALUE:
                value = self.source.string(start, stop)
        return key, value

    def _sparse(self, spans: Sequence[Span]) -> bytes:
        """Walks a sparse tensor and gives its name, which is that of its values."""
        values: list[Span] = []
        indices: list[Span] = []
        for tag, start, stop in self.source.fields(spans):
            if tag == _SPARSE_VALUES:
                self.source.keep(values, (start, stop))
            elif tag == _SPARSE_INDICES:
                self.source.keep(indices, (start, stop))
        self._tensor(indices)
        return self._tensor(values)
