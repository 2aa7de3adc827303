"""`name_dimensions`: every variable dimension of an input that has no name of its own gets one.

TensorRT takes dimensions of one name to be equal, and exporters write the same `?` for all that they have no name for; a dimension whose name is an empty
text it takes for one of size 0 (both tried with TensorRT-RTX 1.7, which shares its parser). A name that the batch has, too, is none of its own where Triton
forms the batch: it puts rows of any requests together, so that nothing of a row has the size of a batch.
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


def shares_a_mark(signature: Signature, *, batched: bool) -> bool:
    """Whether two dimensions of inputs bear the same text that is no name. Those of the batch, where `batched`, are one: they are equal."""
    tensors = (*signature.inputs, *signature.optional_inputs)
    places = {
        (dim, "batch" if batched and axis == 0 else (tensor.name, axis))
        for tensor in tensors
        for axis, dim in enumerate(tensor.shape or ())
        if isinstance(dim, str) and not symbol_of(dim)
    }
    return len({text for text, _ in places}) < len(places)


def repeats_the_batch(signature: Signature) -> bool:
    """Whether a dimension of an input that is not its first bears the name of a first one."""
    tensors = (*signature.inputs, *signature.optional_inputs)
    first = {symbol_of(tensor.shape[0]) for tensor in tensors if tensor.shape} - {""}
    return any(symbol_of(dim) in first for tensor in tensors for dim in (tensor.shape or ())[1:])


def name_dimensions(path: Path, target: Path, *, batched: bool = False) -> Rewritten:
    """Names the nameless dimensions of the inputs of the model at `path`, each otherwise, and writes the result to `target`. Nothing else is changed.

    Args:
        path: the model.
        target: the file to write.
        batched: whether the first dimensions are the batch that Triton forms: others that bear the name of one get a name of their own, too.

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG164 a target that cannot be written.
    """
    model, _ = load(path)
    taken = set(_used(model.graph))
    names = (name for name in (f"{_PREFIX}_{number}" for number in itertools.count()) if name not in taken)
    notes = []
    batch = {value.type.tensor_type.shape.dim[0].dim_param for value in model.graph.input if batched and value.type.tensor_type.shape.dim}
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") and (not symbol_of(dim.dim_param) or (axis and dim.dim_param in batch)):
                dim.dim_param = next(names)
                notes.append(f"dimension {axis} of input '{value.name}' is called {dim.dim_param}")
    return save(model, path, target, notes)


def _used(graph: onnx.GraphProto) -> Iterator[str]:
    """The names of all dimensions."""
    for inner in graphs(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim if dim.dim_param)
