"""A model as the shared rules of `ortload` want it: the config in its JSON form, the signature as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict

from tritongen.rules.ortload import Graph, GraphTensor, Kind, Problem, complete, is_needed, judge
from tritongen.rules.shapes import reshape_problem, wrong_entries
from tritongen.signature import Signature, TensorSpec

if TYPE_CHECKING:
    from tritongen.rules.context import ModelContext, ModelFile

_ABOUT_SHAPES = frozenset({Kind.DIMS, Kind.SCALAR, Kind.SCALAR_BATCH, Kind.NO_BATCH_AXIS, Kind.RAGGED})


def json_form(config: Any) -> dict[str, Any]:
    """A `ModelConfig` as Triton hands it to backends: proto names, plain fields with their defaults."""
    form: dict[str, Any] = MessageToDict(config, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    return form


def graph_of(signature: Signature) -> Graph:
    """The graph as ONNX Runtime describes it: what states no shape has rank 0 there."""
    return Graph(_tensors(signature.inputs), _tensors(signature.outputs), _tensors(signature.optional_inputs))


def load_problems(context: ModelContext) -> tuple[Problem, ...]:
    """What NVIDIA's onnxruntime backend would say of a config and the model files of every version that is loaded, each thing once.

    What core refuses before (dims that are none, tensors without a dtype, names given twice) is left to the rules about that.
    """
    if context.config.max_batch_size < 0:
        return ()
    found: dict[Problem, None] = {}
    for file in context.models.values():
        if file.signature is not None:
            config = json_form(context.config)
            config["name"] = context.name
            found.update(dict.fromkeys(_problems(config, graph_of(_as_loaded(file, config)), auto_complete=context.server.auto_complete)))
    once: dict[tuple[Kind, tuple[str | int, ...], str], Problem] = {}
    for problem in found:
        if not _is_cores(problem, context.config):
            once.setdefault((problem.kind, problem.path, problem.name), problem)
    return tuple(once.values())


def _problems(config: dict[str, Any], graph: Graph, *, auto_complete: bool) -> Iterable[Problem]:
    if auto_complete and is_needed(config):
        problem = complete(config, graph)
        if problem is not None:
            return [problem]
    return judge(config, graph)


def _as_loaded(file: ModelFile, config: Mapping[str, Any]) -> Signature:
    """The signature as ONNX Runtime has it. Where a dimension of a listed output is free only by the exporter's word, shape inference decides."""
    signature = file.signature
    assert signature is not None, "callers look"
    if file.refine is None:
        return signature
    listed = {tensor["name"] for tensor in config.get("output", [])}
    symbols = {dim for tensor in signature.inputs for dim in tensor.shape or () if isinstance(dim, str) and dim}
    for tensor in signature.outputs:
        if tensor.name in listed and (tensor.shape is None or any(not isinstance(dim, int) and dim not in symbols for dim in tensor.shape)):
            return file.refine()
    return signature


def _tensors(tensors: Iterable[TensorSpec]) -> dict[str, GraphTensor]:
    return {tensor.name: GraphTensor(tensor.name, tensor.dtype.config, () if tensor.shape is None else tensor.dims) for tensor in tensors}


def _is_cores(problem: Problem, config: Any) -> bool:
    """Whether core itself refuses the tensor that a problem is about, before a backend sees it."""
    if problem.kind is Kind.DUPLICATE_INPUT:
        return True
    role, index = (*problem.path, "", "")[:2]
    if role not in ("input", "output") or not isinstance(index, int) or index >= len(getattr(config, role)):
        return False
    tensor = getattr(config, role)[index]
    if not tensor.name:
        return True
    if problem.kind is Kind.DTYPE:
        return bool(tensor.data_type == 0)
    return problem.kind in _ABOUT_SHAPES and _is_no_shape(tensor, batches=config.max_batch_size > 0)


def _is_no_shape(tensor: Any, *, batches: bool) -> bool:
    dims = tuple(tensor.dims)
    if not dims or wrong_entries(dims):
        return True
    if not tensor.HasField("reshape"):
        return False
    shape = tuple(tensor.reshape.shape)
    return bool(wrong_entries(shape)) or bool(reshape_problem(dims, shape, batches=batches))
