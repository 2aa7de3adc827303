"""The ONNX file around a rewrite: loading it without its external weights, checking the result, writing it in one step.

Knows nothing about what a rewrite changes. Weights in external files are never opened: a rewritten graph refers to the same files by the same relative names.
Codes of this package: TG150 a size that contradicts the file, TG151 a shape or sample that fits no input, TG152 sizes that the graph cannot take, TG153 a
tensor without batch axis 0, TG154 a node that pins the batch, TG155 a rewritten model that is not valid, TG156 an optimisation level that is not portable,
TG157 operators that the target lacks, TG158 answers that differ from the original's, TG159 a model that ONNX Runtime cannot optimise or run, TG160 a batch
size that fails, TG161 outputs without a row for each row, TG162 rows that depend on each other, TG163 nothing proven, TG164 a result that cannot be written,
TG165 a graph that cannot be followed.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import ModelFileError
from tritongen.signature import Signature, read_onnx

_SMALL_ELEMENTS = 1024
_REFUSED = "Triton refuses to load the model"
_AGAIN = "export, copy or download the model again"
# What onnx and numpy raise for nodes without their inputs or attributes, and for tensors whose content does not fit their shape.
MALFORMED = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    AttributeError,
    OverflowError,
)


@dataclass(frozen=True)
class Rewritten:
    """A model that was written.

    Attributes:
        path: the new file.
        notes: what was changed, one sentence each, naming nodes and tensors; empty where the copy says the same as the original.
        external: files with weights that the new file refers to, as POSIX paths relative to it. They are not copied: `optimize` writes its own, the others
            expect the original's beside the new file.
    """

    path: Path
    notes: tuple[str, ...] = ()
    external: tuple[str, ...] = ()


def problem(code: str, path: Path, message: str, hint: str = "", consequence: str = "") -> Diagnostic:
    """A finding about the model file as a whole."""
    return Diagnostic(code, message, Location(str(path)), consequence, hint)


def load(path: Path) -> tuple[onnx.ModelProto, Signature]:
    """A model without its external weights, and its signature. Raises ModelFileError (TG020 to TG037) for what is no usable model."""
    signature = read_onnx(path)
    try:
        model = onnx.load(str(path), load_external_data=False)
    except DecodeError as error:
        raise ModelFileError([problem("TG027", path, f"the file is damaged: {error}", _AGAIN, _REFUSED)]) from error
    if not _readable(model):
        raise ModelFileError([problem("TG027", path, "the file is damaged: it holds a name that is not UTF-8", _AGAIN, _REFUSED)])
    return model, signature


def _readable(message: Message) -> bool:
    """Whether all names are text; where they are not, protobuf hands out bytes and onnx fails in odd places. Weights are not looked at."""
    for field, value in message.ListFields():
        parts: Sequence[Any] = [value] if isinstance(value, (str, bytes, Message)) else value
        if field.type == field.TYPE_STRING and any(isinstance(each, bytes) for each in parts):
            return False
        if field.type == field.TYPE_MESSAGE and not all(_readable(each) for each in parts):
            return False
    return True


@contextlib.contextmanager
def followed(path: Path, model: onnx.ModelProto) -> Iterator[None]:
    """Around the work on a graph: what onnx and numpy raise for a malformed one becomes TG165, with the checker's reason where it has one."""
    before = skeleton(model)
    try:
        yield
    except MALFORMED as error:
        reason = invalid(before) or f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ModelFileError([problem("TG165", path, f"the graph cannot be followed, since it is not valid ONNX: {reason}", _AGAIN, _REFUSED)]) from error


def save(model: onnx.ModelProto, source: Path, target: Path, notes: Sequence[str], *, beside: Path | None = None) -> Rewritten:
    """Check the model and write it to `target` in one step; equal models give equal bytes. `beside`: a new file with its weights, moved along.

    Raises ModelFileError: TG155 where ONNX's checker refuses what it did not refuse in `source`, TG164 where the target cannot be written.
    """
    reason = invalid(model)
    if reason and not invalid(onnx.load(str(source), load_external_data=False)):
        message = f"the rewritten model is not valid ONNX: {reason}"
        raise ModelFileError([problem("TG155", source, message, "this is a fault of tritongen: please report it with the model; until then serve it as it is")])
    with writing(source, target), tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        staged = Path(folder) / target.name
        staged.write_bytes(model.SerializeToString(deterministic=True))
        if beside is not None:
            shutil.move(beside, target.parent / beside.name)
        staged.replace(target)
    return Rewritten(target, tuple(notes), external_files(model))


@contextlib.contextmanager
def writing(source: Path, target: Path) -> Iterator[None]:
    """Makes the target's folder; an operating system that refuses becomes TG164. Raises ModelFileError also where the target is the source."""
    try:
        if target.exists() and target.samefile(source):
            raise ModelFileError([problem("TG164", source, "the result would overwrite the model it is made from", "give another target")])
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        message = f"the result cannot be written: {error.strerror or error}"
        raise ModelFileError([problem("TG164", target, message, "check the folder, its permissions and the space left")]) from error


def invalid(model: onnx.ModelProto) -> str:
    """Why ONNX's checker refuses the model, on one line; empty where it does not. Large and external weights are taken as given."""
    try:
        onnx.checker.check_model(skeleton(model))
    except onnx.checker.ValidationError as error:
        return " ".join(str(error).split())
    except UnicodeDecodeError:
        return "the checker's reason cannot be shown, since it quotes bytes that are not text"
    return ""


def external_files(model: onnx.ModelProto) -> tuple[str, ...]:
    """The files that the model's tensors lie in, in order of first use."""
    return tuple(dict.fromkeys(location for tensor in tensors(model.graph) if (location := _location(tensor))))


def _location(tensor: onnx.TensorProto) -> str:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return ""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and the graphs inside its nodes, outermost first."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs(inner)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes: branches of an If, the body of a Loop."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor stored in the graph: initializers and tensor attributes, in subgraphs too."""
    for inner in graphs(graph):
        yield from inner.initializer
        for node in inner.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors


def skeleton(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its large and external initializers turned into inputs: all that checker and shape inference need, without the weights."""
    light = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            _copy_field(light, field.name, value)
    light.ir_version = max(light.ir_version, 4)  # before it every initializer had to be listed as an input
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            _copy_field(light.graph, field.name, value)
    listed = {value.name for value in light.graph.input}
    for tensor in model.graph.initializer:
        if is_small(tensor):
            light.graph.initializer.append(tensor)
        elif tensor.name not in listed:
            light.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return light


def _copy_field(message: onnx.ModelProto | onnx.GraphProto, name: str, value: object) -> None:
    if not isinstance(value, (str, bytes, int)):
        getattr(message, name).MergeFrom(value)
    else:
        setattr(message, name, value)


def is_small(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor's values may matter to shapes and are at hand: stored in the model file, and few."""
    return tensor.data_location != onnx.TensorProto.EXTERNAL and has_few_elements(tensor)


def has_few_elements(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor is small enough to hold sizes: at most 1,024 elements."""
    return math.prod(tensor.dims) <= _SMALL_ELEMENTS


def describe(node: onnx.NodeProto, inside: Iterable[str] = ()) -> str:
    """A node for messages: `the Reshape node 'r1'`; a node without a name is told by what it computes."""
    name = f"the {node.op_type} node '{node.name}'" if node.name else f"the {node.op_type} node that computes '{next(iter(node.output), '')}'"
    return name + "".join(f" in {place}" for place in inside)


def real(path: Path) -> str:
    """The absolute path, for libraries that resolve external data against it."""
    return os.path.realpath(path)  # Path.resolve may raise on a loop of links
