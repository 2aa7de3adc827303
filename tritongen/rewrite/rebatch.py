"""`rebatch`: a model exported with a fixed batch, made to take any.

The leading dimension of every input and output becomes a symbol, and what pins the batch inside the graph is repaired, node by node. What cannot be repaired is
refused, with the node that stands in the way. That the result is right is for `prove_batch` to show: a rewrite is a claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

from tritongen.diagnostics import Diagnostic
from tritongen.errors import ModelFileError
from tritongen.rewrite.document import Rewritten, describe, followed, graphs, load, problem, save, skeleton
from tritongen.rewrite.facts import UNKNOWN, Fact, Shape, State, of_type, used_names
from tritongen.rewrite.nodes import walk_graph
from tritongen.rewrite.walk import Walk
from tritongen.signature import Signature, TensorSpec

_PROBES = (13, 17)
_EXAMPLE = 64  # networks often halve sizes several times; multiples of 64 survive that
_CANNOT_BATCH = "Triton refuses max_batch_size above 0 for a model with a tensor that has no variable axis 0"
_FIXED_HINT = "serve it with `batching: none`, or export it with a dynamic batch axis (torch.onnx.export: dynamic_axes or dynamic_shapes)"


def rebatch(path: Path, target: Path, *, symbol: str = "batch") -> Rewritten:
    """Makes axis 0 of every input and output of the model at `path` symbolic, repairs what pins it inside, and writes the result to `target`.

    A model whose leading axes are variable already is only repaired inside; where nothing pins the batch, the copy says the same as the original. `symbol`
    names the new dimension, unless the model has a name for it.

    Example::

        rebatch(Path("face_b1.onnx"), Path("face.onnx")).notes  # ("The Reshape node 'flat' has the target [0, 512] instead of [1, 512]", ...)

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG153 for every tensor whose axis 0 is not the batch; TG154 for every node that pins the batch and
            cannot be repaired; TG164 a target that cannot be written.
    """
    model, signature = load(path)
    size = _exported_size(path, signature)
    symbol = _symbol(path, signature, symbol)
    probe = next(each for each in _PROBES if each != size)
    walk = Walk(model, signature.inputs[0].name, (size, probe))
    before = used_names(model.graph)
    with followed(path, model):
        _learn_inputs(walk, model, signature)
        walk.store(model.graph, path.parent)
        walk_graph(walk, model.graph, _declared(model, signature, size), path.parent)
    problems = [problem("TG154", path, str(pin), _FIXED_HINT, _CANNOT_BATCH) for pin in walk.pins]
    problems += _unbatched_outputs(path, walk, model)
    if problems:
        raise ModelFileError(problems)
    notes = _name_borders(model, signature, symbol) + walk.notes
    if not notes:
        return save(load(path)[0], path, target, ())
    nodes = [*walk.prelude, *walk.out]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    _declare_again(walk, model, symbol)
    _drop_unused(model, walk, before)
    return save(model, path, target, notes)


def _exported_size(path: Path, signature: Signature) -> int:
    """The batch size that the inputs were exported with; where they are variable already, the one that all outputs have, or 1."""
    problems = list(_unbatched_inputs(path, signature))
    why, hint = "it is a scalar", "return one value for each row"
    problems += [_no_batch(path, "output", tensor, why, hint) for tensor in signature.outputs if tensor.shape == ()]
    if problems:
        raise ModelFileError(problems)
    inner, outer = ({tensor.shape[0] for tensor in side if tensor.shape and isinstance(tensor.shape[0], int)} for side in (signature.inputs, signature.outputs))
    return next((int(size) for sizes in (inner, outer) if len(sizes) == 1 for size in sizes if isinstance(size, int) and size), 1)


def _unbatched_inputs(path: Path, signature: Signature) -> Iterator[Diagnostic]:
    """The inputs whose axis 0 cannot be the batch."""
    if not signature.inputs:
        yield problem("TG153", path, "the model has no inputs, so that nothing says how large a batch is", _FIXED_HINT, _CANNOT_BATCH)
    for tensor, why, hint in _hopeless_inputs(signature):
        yield _no_batch(path, "input", tensor, why, hint)


def may_rebatch(signature: Signature) -> bool:
    """Whether `rebatch` is worth trying, as far as a signature tells: axis 0 of every input and output may be the batch.

    A fixed vector as input may hold a value for each row, or a setting such as the k of a TopK: it is no hope.
    """
    inputs, outputs = signature.inputs, signature.outputs
    if not inputs or any(len(tensor.shape or ()) == 1 and -1 not in tensor.dims for tensor in inputs):
        return False
    fixed = {tensor.shape[0] for tensor in inputs if tensor.shape and isinstance(tensor.shape[0], int)}
    for tensor in outputs:
        if tensor.shape == () or (fixed and tensor.shape and isinstance(tensor.shape[0], int) and tensor.shape[0] not in fixed):
            return False
    return not any(True for _ in _hopeless_inputs(signature))


def _hopeless_inputs(signature: Signature) -> Iterator[tuple[TensorSpec, str, str]]:
    """Every input whose axis 0 cannot be the batch, why, and what to do."""
    leading = {tensor.shape[0] for tensor in signature.inputs if tensor.shape}
    symbols = {size for size in leading if isinstance(size, str) and size}
    fixed = Counter(tensor.shape[0] for tensor in signature.inputs if tensor.shape and isinstance(tensor.shape[0], int))
    usual = 1 if len(fixed) < len(leading) else fixed.most_common(1)[0][0] if fixed else 1
    for tensor in signature.inputs:
        if tensor.shape is None:
            yield tensor, "the file states no shape for it", "state its shape when exporting"
        elif not tensor.shape:
            yield tensor, "it is a scalar", "make it a constant of the model, or give it one value for each row"
        elif isinstance(tensor.shape[0], int) and symbols.intersection(tensor.shape):
            axis = next(axis for axis, size in enumerate(tensor.shape) if size in symbols)
            yield tensor, f"its batch is on axis {axis}", "transpose it inside the model when exporting"
        elif isinstance(tensor.shape[0], int) and (tensor.shape[0] != usual or tensor.shape[0] < 1):
            other = "that of other inputs is variable" if len(fixed) < len(leading) else f"that of other inputs has {usual}"
            yield tensor, f"it has {tensor.shape[0]}, and {other}", _FIXED_HINT


def _no_batch(path: Path, side: str, tensor: TensorSpec, why: str, hint: str) -> Diagnostic:
    return problem("TG153", path, f"axis 0 of {side} '{tensor.name}' is not the batch: {why} ({tensor.describe()})", hint, _CANNOT_BATCH)


def _symbol(path: Path, signature: Signature, symbol: str) -> str:
    """The name for the batch: the one the inputs use already, else the one given. Raises ModelFileError where that names another dimension."""
    named = {tensor.shape[0] for tensor in signature.inputs if tensor.shape and isinstance(tensor.shape[0], str) and tensor.shape[0]}
    if len(named) == 1:
        return str(named.pop())
    for tensor in (*signature.inputs, *signature.outputs):
        if symbol in (tensor.shape or ())[1:]:
            message = f"'{symbol}' names another dimension than the batch: {tensor.describe()}"
            raise ModelFileError([problem("TG153", path, message, "give another symbol for the batch")])
    return symbol


def _learn_inputs(walk: Walk, model: onnx.ModelProto, signature: Signature) -> None:
    """The facts of the graph's inputs. Other variable dimensions get example sizes, equal ones where they bear the same name, or none on the same axis."""
    examples: dict[object, int] = {}
    required = {tensor.name for tensor in signature.inputs}
    for value in model.graph.input:
        elem_type, shape = of_type(value)
        sizes: list[int] = []
        for axis, dim in enumerate(shape or ()):
            fixed = isinstance(dim, int) and dim > 0
            walk.symbolic |= axis > 0 and not fixed
            sizes.append(int(dim) if fixed and dim is not None else examples.setdefault(dim or axis, _EXAMPLE * (2 * len(examples) + 3)))
        batched = value.name in required
        old, new = ((walk.sizes[which], *sizes[1:]) if batched else tuple(sizes) for which in (0, 1))
        walk.facts[value.name] = Fact(elem_type, State(old), State(new), varies=True)


def _declared(model: onnx.ModelProto, signature: Signature, size: int) -> dict[str, Shape]:
    """Shapes that the file declares, or that inference over the whole graph finds, for nodes that inference knows nothing about."""
    light = skeleton(model)
    names = {tensor.name for tensor in signature.inputs}
    for value in light.graph.input:
        if value.name in names:
            value.type.tensor_type.shape.dim[0].dim_value = size
    try:
        light = onnx.shape_inference.infer_shapes(light, data_prop=True)
    except onnx.shape_inference.InferenceError:
        light = model  # what the file says itself
    return {value.name: shape for value in (*light.graph.value_info, *light.graph.output) if (shape := of_type(value)[1]) is not None}


def _unbatched_outputs(path: Path, walk: Walk, model: onnx.ModelProto) -> list[Diagnostic]:
    """Outputs whose axis 0 is known not to be the batch, with the node where it was lost. Those behind a refused node say nothing new."""
    problems = []
    for value in model.graph.output:
        fact = walk.facts.get(value.name, UNKNOWN)
        axes = fact.axes(walk.sizes)
        if fact.new.shape is None or fact.old.shape is None or axes.get(0) == 1 or walk.pins:
            continue
        shape = f"[{', '.join(map(str, fact.old.shape))}]"
        if 0 in axes:
            why = f"it has {axes[0]} rows for each row of the batch"
        elif axes:
            why = f"its batch is on axis {min(axes)}"
        elif not fact.varies:
            why = "it does not depend on any input"
        else:
            why = "its shape does not grow with the batch"
        if fact.lost is not None:
            why += f", since {describe(fact.lost)} drops the batch axis of '{next((name for name in fact.lost.input if walk.axes(name)), fact.lost.input[0])}'"
        problems.append(problem("TG153", path, f"axis 0 of output '{value.name}' {shape} is not the batch: {why}", _FIXED_HINT, _CANNOT_BATCH))
    return problems


def _name_borders(model: onnx.ModelProto, signature: Signature, symbol: str) -> list[str]:
    """Name axis 0 of every required input and every output that has no symbol there; the change, in sentences."""
    notes = []
    required = {tensor.name for tensor in signature.inputs}
    for side, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            if side == "input" and value.name not in required:
                continue
            dims = value.type.tensor_type.shape.dim
            if dims and dims[0].HasField("dim_value"):
                notes.append(f"Axis 0 of {side} '{value.name}' is '{symbol}'; it was {dims[0].dim_value}")
                dims[0].dim_param = symbol
    return notes


def _declare_again(walk: Walk, model: onnx.ModelProto, symbol: str) -> None:
    """Correct the declared shapes of outputs and intermediate tensors on the axes that carry the batch; drop those of which nothing is known any more."""
    kept = []
    for value in (*model.graph.output, *model.graph.value_info):
        fact = walk.facts.get(value.name, UNKNOWN)
        dims = value.type.tensor_type.shape.dim
        fits = fact.new.shape is not None and len(dims) == len(fact.new.shape)
        if fits:
            for axis, per_item in fact.axes(walk.sizes).items():
                if dims[axis].HasField("dim_value"):
                    dims[axis].CopyFrom(onnx.TensorShapeProto.Dimension(dim_param=symbol) if per_item == 1 else onnx.TensorShapeProto.Dimension())
        kept.append(fits)
    intermediate = [value for value, fits in zip(model.graph.value_info, kept[len(model.graph.output) :], strict=True) if fits]
    del model.graph.value_info[:]
    model.graph.value_info.extend(intermediate)


def _drop_unused(model: onnx.ModelProto, walk: Walk, before: set[str]) -> None:
    """Remove the constants that only the old form of a repaired node used, and our own that were only read. `before`: the names used in the old graph."""
    gone = (before | walk.made) - used_names(model.graph)
    for listed in (model.graph.initializer, model.graph.input, model.graph.value_info):
        for index in reversed(range(len(listed))):
            if listed[index].name in gone:
                del listed[index]
    for graph in graphs(model.graph):
        for index in reversed(range(len(graph.node))):
            if graph.node[index].op_type == "Constant" and gone.issuperset(graph.node[index].output):
                del graph.node[index]
