"""An ONNX file → a TensorRT network, with everything that the parser refuses; and the profiles, held against the network's inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tritongen.build.libraries import Library
from tritongen.diagnostics import Diagnostic, Location
from tritongen.recipe import PlanRecipe, Profile, Span

if TYPE_CHECKING:
    import tensorrt

_ACCELERATOR = "serve this model with backend: onnxruntime and accelerator: tensorrt, where ONNX Runtime runs what TensorRT cannot"


def parse(library: Library, parser: tensorrt.OnnxParser, path: Path, model: str) -> list[Diagnostic]:
    """Read the file into the parser's network. The findings are what it refuses (TG090), every node; none where all is well.

    From the file itself: weights that lie beside it are found by its path only.
    """
    if parser.parse_from_file(str(path)):
        return []
    found = [_refused(library, parser, parser.get_error(index), path, model) for index in range(parser.num_errors)]
    return found or [Diagnostic("TG090", f"{library.title} cannot read the model, and gives no reason", Location(str(path)), hint=_ACCELERATOR, model=model)]


def _refused(library: Library, parser: tensorrt.OnnxParser, error: tensorrt.ParserError, path: Path, model: str) -> Diagnostic:
    operator, name, inside = error.node_operator(), error.node_name(), error.local_function_stack()
    where = f"node {error.node()} '{name}'" if name else f"node {error.node()}"
    # `is` compares with what the parser says for a part of the file that is no node: an input, or the file as a whole.
    what = f"{where}, operator {operator}" if operator else "the file itself"
    if inside:
        what += f", in the function {' > '.join(inside)}"
    reason = f"{error.code().name}: {' '.join(error.desc().split())} ({error.file()}:{error.line()}, {error.func()})"
    if operator and not parser.supports_operator(operator):
        hint = f"export the model without {operator}, name a plugin for it (tensorrt: {{build: {{plugins: [...]}}}}), or {_ACCELERATOR}"
    elif operator:
        hint = f"TensorRT has {operator}, but not as it is used here: export with another opset, or simplify the graph (`optimize`), or {_ACCELERATOR}"
    else:
        hint = f"export the model with types that TensorRT has, or {_ACCELERATOR}"
    return Diagnostic("TG090", f"{library.title} cannot build {what}: {reason}", Location(str(path)), "no plan can be built", hint, model)


def inputs(network: tensorrt.INetworkDefinition) -> dict[str, tensorrt.ITensor]:
    """The network's inputs by name, in its order."""
    return {tensor.name: tensor for tensor in map(network.get_input, range(network.num_inputs))}


def misfits(network: tensorrt.INetworkDefinition, recipe: PlanRecipe, path: Path) -> list[Diagnostic]:
    """Where profiles and network do not belong together (TG091)."""
    known = inputs(network)
    profiles = recipe.profiles or (Profile({}),)
    return [
        Diagnostic("TG091", f"profile {number}: {message}", Location(str(path)), "TensorRT refuses the profile", hint, recipe.model)
        for number, profile in enumerate(profiles)
        for message, hint in _misfits(known, profile)
    ]


def _misfits(known: dict[str, tensorrt.ITensor], profile: Profile) -> Iterator[tuple[str, str]]:
    again = "render the spec again: the recipe was made for another ONNX file"
    missing = {*profile.shapes, *profile.values} - known.keys()
    # The parser gives an input that is an output, too, another name: no client would know it.
    passed_on = {f"__{name}": name for name in missing if f"__{name}" in known}
    for name in sorted(missing):
        if name in passed_on.values():
            yield (
                f"input '{name}' of the ONNX file is one of its outputs, too, for which TensorRT gives the input another name",
                "put an Identity node between the input and that output in the ONNX file, or remove the output",
            )
        else:
            yield f"the network has no input '{name}'", again
    for name, tensor in known.items():
        if name in passed_on:
            continue
        dims = tuple(tensor.shape[axis] for axis in range(len(tensor.shape)))
        span = profile.shapes.get(name)
        if span is None and -1 in dims:
            yield f"input '{name}' {list(dims)} has a variable dimension, and no range for it is given", "give its sizes in shapes:"
        elif span is not None and not _holds(dims, span):
            yield f"input '{name}' is {list(dims)}, and {list(span.minimum)} to {list(span.maximum)} is given", again
        if tensor.is_shape_tensor and name not in profile.values:
            hint = f"give their range: tensorrt: {{shape_tensors: {{{name}: {{min: [...], opt: [...], max: [...]}}}}}}"
            yield f"the values of input '{name}' are sizes that the network works with, and no range for them is given", hint
        elif name in profile.values and not tensor.is_shape_tensor:
            yield f"a range of values is given for input '{name}', and its values are no sizes in this network", "remove it from tensorrt.shape_tensors"


def _holds(dims: tuple[int, ...], span: Span) -> bool:
    """Whether a range is one of this shape; -1 for a variable dimension."""
    columns = (span.minimum, span.optimum, span.maximum)
    return all(len(column) == len(dims) for column in columns) and all(
        dim in (-1, low) and low <= usual <= high and (dim == -1 or dim == high) for dim, low, usual, high in zip(dims, *columns, strict=True)
    )
