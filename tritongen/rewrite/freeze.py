"""`freeze`: sizes written into a model's inputs, and carried to everything that bears the same symbol.

Fixed shapes are what TensorRT, CUDA graphs and memory planning like best. A size that the file or the graph contradicts is refused, never adapted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from tritongen.diagnostics import Diagnostic
from tritongen.errors import ModelFileError
from tritongen.rewrite.constants import fixed_outputs
from tritongen.rewrite.document import Rewritten, followed, graphs, load, problem, save, skeleton
from tritongen.signature import Signature, TensorSpec, symbol_of

_KEEP = -1
_PROBES = (13, 17)


def freeze(path: Path, shapes: Mapping[str, Sequence[int]], target: Path) -> Rewritten:
    """Writes the dimensions of `shapes` into the model at `path`, and the result to `target`.

    `shapes`: for each input to be fixed its full shape, batch included; -1 leaves a dimension as it is. A size given for a symbolic dimension (`seq`) holds for
    every dimension of that name. The shapes of outputs and intermediate tensors are inferred again.

    Example::

        freeze(Path("bert.onnx"), {"input_ids": [-1, 128]}, Path("bert_128.onnx"))

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG150 a size that contradicts a fixed one or another given one; TG151 a name or a number of
            dimensions that fits no input, or a size below 1; TG152 a graph that cannot take these sizes; TG164 a target that cannot be written.
    """
    model, signature = load(path)
    problems = list(_misfits(path, signature, shapes))
    symbols = _symbols(path, signature, shapes, problems)
    if problems:
        raise ModelFileError(problems)
    before = skeleton(model)
    stated = _borders(model)
    with followed(path, model):
        _write_inputs(model, shapes)
        _write_symbols(model, symbols)
        if _borders(model) == stated:
            return save(model, path, target, ())
        notes = _infer_again(model, before, path, shapes)
    notes += [f"{tensor} has the shape {shape}; it was {stated[tensor]}" for tensor, shape in _borders(model).items() if shape != stated[tensor]]
    return save(model, path, target, notes)


def _borders(model: onnx.ModelProto) -> dict[str, str]:
    """The shape of every input and output, for comparing and for messages."""
    sides = (("input", model.graph.input), ("output", model.graph.output))
    return {f"{side} '{value.name}'": _shown(value) for side, values in sides for value in values}


def _misfits(path: Path, signature: Signature, shapes: Mapping[str, Sequence[int]]) -> Iterator[Diagnostic]:
    """What is wrong with each given shape on its own."""
    known = {tensor.name: tensor for tensor in (*signature.inputs, *signature.optional_inputs)}
    for name, shape in shapes.items():
        tensor = known.get(name)
        if tensor is None:
            yield problem("TG151", path, f"the model has no input '{name}'", f"its inputs are {', '.join(repr(each) for each in known)}")
        elif any(size < 1 and size != _KEEP for size in shape):
            yield problem("TG151", path, f"the shape {list(shape)} for input '{name}' has a size below 1", "give sizes from 1 on, or -1 to leave a dimension")
        elif tensor.shape is not None and len(tensor.shape) != len(shape):
            message = f"the shape {list(shape)} for input '{name}' has {len(shape)} dimensions, and the model's has {len(tensor.shape)}: {tensor.describe()}"
            yield problem("TG151", path, message, "give the full shape, with the batch dimension; -1 leaves a dimension as it is")
        elif tensor.shape is not None:
            yield from _fixed_otherwise(path, tensor, shape)


def _fixed_otherwise(path: Path, tensor: TensorSpec, shape: Sequence[int]) -> Iterator[Diagnostic]:
    for axis, (stated, size) in enumerate(zip(tensor.shape or (), shape, strict=True)):
        if isinstance(stated, int) and size not in (_KEEP, stated):
            message = f"dimension {axis} of input '{tensor.name}' is fixed to {stated} in the model, and {size} was given"
            yield problem("TG150", path, message, f"write {stated} or -1 there, or export the model with a variable dimension", "Triton refuses other sizes")


def _symbols(path: Path, signature: Signature, shapes: Mapping[str, Sequence[int]], problems: list[Diagnostic]) -> dict[str, int]:
    """The size of each symbol that a given shape fixes. Appends to `problems` where one symbol gets two sizes."""
    found: dict[str, tuple[int, str]] = {}
    for tensor in (*signature.inputs, *signature.optional_inputs):
        shape = shapes.get(tensor.name, ())
        if tensor.shape is None or len(shape) != len(tensor.shape):
            continue
        for axis, (stated, size) in enumerate(zip(tensor.shape, shape, strict=True)):
            symbol = symbol_of(stated)
            if not symbol or size == _KEEP:
                continue
            place = f"dimension {axis} of '{tensor.name}'"
            first, where = found.setdefault(symbol, (size, place))
            if first != size:
                message = f"the symbol '{symbol}' is given two sizes: {first} at {where} and {size} at {place}"
                problems.append(problem("TG150", path, message, "dimensions of one symbol are equal: give one size"))
    return {symbol: size for symbol, (size, _) in found.items()}


def _write_inputs(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    for value in model.graph.input:
        shape = shapes.get(value.name, ())
        dims = value.type.tensor_type.shape.dim
        if shape and not value.type.tensor_type.HasField("shape"):
            dims.extend(onnx.TensorShapeProto.Dimension() for _ in shape)
        for dim, size in zip(dims, shape, strict=False):
            if size != _KEEP:
                dim.dim_value = size


def _write_symbols(model: onnx.ModelProto, symbols: Mapping[str, int]) -> None:
    """Give every dimension named by one of `symbols` its number, in the graph and the graphs inside it."""
    for graph in graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in symbols:
                    dim.dim_value = symbols[dim.dim_param]


def _infer_again(model: onnx.ModelProto, before: onnx.ModelProto, path: Path, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Fix the dimensions of outputs and intermediate tensors that follow from the inputs. Raises ModelFileError (TG152) where the graph contradicts them."""
    try:
        inferred = onnx.shape_inference.infer_shapes(skeleton(model), strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        if _infers(before):
            message = f"the graph cannot take the sizes {', '.join(f'{name}: {list(shape)}' for name, shape in shapes.items())}: {_one_line(error)}"
            raise ModelFileError([problem("TG152", path, message, "give sizes that the model was made for", "Triton fails to load or to run it")]) from error
        return ["the shapes of outputs stay as they were: ONNX's shape inference does not get through this graph, with or without the new sizes"]
    known = {value.name: value for value in (*inferred.graph.output, *inferred.graph.value_info)}
    symbols = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    for value in (*model.graph.output, *model.graph.value_info):
        if value.name in known:
            _refine(value, known[value.name], symbols)
    _fix_outputs(model)
    return []


def _fix_outputs(model: onnx.ModelProto) -> None:
    """Write the sizes that outputs have whatever the free dimensions of the inputs are. ONNX Runtime finds them too, and Triton compares with those."""
    one, other = (fixed_outputs(model, size) for size in _PROBES)
    for value in model.graph.output:
        sizes = zip(value.type.tensor_type.shape.dim, one.get(value.name, ()), other.get(value.name, ()), strict=False)
        for dim, first, second in sizes:
            if first is not None and first == second and not dim.HasField("dim_value"):
                dim.dim_value = first


def _refine(value: onnx.ValueInfoProto, inferred: onnx.ValueInfoProto, symbols: set[str]) -> None:
    """Write the numbers that inference found where `value` has none. Names are kept only if they are the model's own: inference makes up more."""
    stated, found = value.type.tensor_type, inferred.type.tensor_type
    if not found.HasField("shape"):
        return
    if not stated.HasField("shape"):
        stated.shape.CopyFrom(found.shape)
        for dim in stated.shape.dim:
            if dim.dim_param and dim.dim_param not in symbols:
                dim.Clear()
    elif len(stated.shape.dim) == len(found.shape.dim):
        for old, new in zip(stated.shape.dim, found.shape.dim, strict=True):
            if new.HasField("dim_value") and not old.HasField("dim_value"):
                old.dim_value = new.dim_value


def _infers(model: onnx.ModelProto) -> bool:
    try:
        onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).replace("[ShapeInferenceError] ", "")


def _shown(value: onnx.ValueInfoProto) -> str:
    dims = (str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in value.type.tensor_type.shape.dim)
    return f"[{', '.join(dims)}]" if value.type.tensor_type.HasField("shape") else "(none)"
