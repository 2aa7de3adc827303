"""`name_dimensions`: every variable dimension of an input that has no name of its own gets one.

TensorRT takes dimensions of one name to be equal, and exporters write the same `?` for all that they have no name for; a dimension whose name is an empty
text it takes for one of size 0 (both tried with TensorRT-RTX 1.7, which shares its parser).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import onnx

from tritongen.rewrite.document import Rewritten, graphs, load, save
from tritongen.signature import Signature, symbol_of

_PREFIX = "dim"


def is_anonymous(signature: Signature) -> bool:
    """Whether an input has a variable dimension without a name of its own."""
    tensors = (*signature.inputs, *signature.optional_inputs)
    return any(not isinstance(dim, int) and not symbol_of(dim) for tensor in tensors for dim in tensor.shape or ())


def name_dimensions(path: Path, target: Path) -> Rewritten:
    """Names the nameless dimensions of the inputs of the model at `path`, each otherwise, and writes the result to `target`. Nothing else is changed.

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG164 a target that cannot be written.
    """
    model, _ = load(path)
    taken = set(_used(model.graph))
    names = (name for name in (f"{_PREFIX}_{number}" for number in itertools.count()) if name not in taken)
    notes = []
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") and not symbol_of(dim.dim_param):
                dim.dim_param = next(names)
                notes.append(f"dimension {axis} of input '{value.name}' is called {dim.dim_param}")
    return save(model, path, target, notes)


def _used(graph: onnx.GraphProto) -> Iterator[str]:
    """The names of all dimensions."""
    for inner in graphs(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim if dim.dim_param)
