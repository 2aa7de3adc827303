"""The config's tensors against the graph's, as NVIDIA's backend compares them when it makes an instance, in its order: controls, inputs, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .graph import Graph, GraphTensor
from .problem import Kind, Path, Problem

Config = Mapping[str, Any]
"""A model config in the JSON form of Triton's ModelConfig."""

_CONTROLS = ("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_CORRID")
_BOOLEAN_TYPES = (("int32_false_true", "TYPE_INT32"), ("fp32_false_true", "TYPE_FP32"), ("bool_false_true", "TYPE_BOOL"))


def judge(config: Config, graph: Graph, *, bf16: bool = True) -> Iterator[Problem]:
    """Every problem; where the model is refused, the first one is what NVIDIA's backend says. `bf16` is False for releases whose backend lacks that type."""
    yield from _controls(config, graph)
    yield from _count(config, graph)
    for index, tensor in enumerate(config.get("input", [])):
        yield from _input(config, graph, tensor, index, bf16)
    for index, tensor in enumerate(config.get("output", [])):
        yield from _output(config, graph, tensor, index, bf16)
    yield from _failing_later(config, graph)


def shape_of(tensor: Config) -> list[int]:
    """The dims that are compared with the graph: those of `reshape` where there is one."""
    source = tensor["reshape"].get("shape", []) if "reshape" in tensor else tensor.get("dims", [])
    return [int(dim) for dim in source]


def control_names(config: Config) -> list[str]:
    """Tensors that the sequence batcher adds to each request."""
    return [name for _, name, _, _ in _control_tensors(config)]


def states(config: Config) -> list[Config]:
    """Implicit states of the sequence batcher."""
    return list(config.get("sequence_batching", {}).get("state", []))


def _control_tensors(config: Config) -> Iterator[tuple[str, str, str, Path]]:
    """Kind, tensor, data type (empty where the config does not say) and place of each control, in the backend's order."""
    found: dict[str, tuple[str, str, str, Path]] = {}
    for index, entry in enumerate(config.get("sequence_batching", {}).get("control_input", [])):
        for control in entry.get("control", []):
            typed = control.get("data_type", "")
            given = [data_type for field, data_type in _BOOLEAN_TYPES if control.get(field)]
            kind = control.get("kind", _CONTROLS[0])
            data_type = typed if kind == _CONTROLS[3] else (given[0] if given else "")
            found.setdefault(kind, (kind, entry.get("name", ""), data_type, ("sequence_batching", "control_input", index)))
    return (found[kind] for kind in _CONTROLS if kind in found)


def _controls(config: Config, graph: Graph) -> Iterator[Problem]:
    lead = 1 if config.get("max_batch_size", 0) > 0 else 0
    model = config["name"]
    for _, name, data_type, path in _control_tensors(config):
        tensor = graph.inputs.get(name)
        if tensor is None:
            message = f"configuration specified sequence control '{name}', but model does not provide that input"
            yield Problem(Kind.CONTROL_NAME, message, (*path, "name"), name, name, choices=tuple(sorted(graph.inputs)))
            continue
        dims = tensor.dims[lead:]
        if dims != (1,):
            message = f"unable to load model '{model}', sequence control '{name}' in model has dims {_text(dims)} but dims [1] is expected"
            yield Problem(Kind.CONTROL_DIMS, message, (*path, "name"), name, "[1]", _text(dims))
        if data_type not in ("", "TYPE_INVALID", tensor.data_type):
            expects = f"the model expects data-type {tensor.data_type[5:]} but the model configuration specifies data-type {data_type}"
            message = f"unable to load model '{model}', sequence control '{name}', {expects}"
            yield Problem(Kind.CONTROL_DTYPE, message, (*path, "control"), name, data_type, tensor.data_type)


def _count(config: Config, graph: Graph) -> Iterator[Problem]:
    """The backend compares numbers, not names; each tensor behind a difference is a problem of its own here, all with the backend's one message."""
    inputs = config.get("input", [])
    required = [tensor["name"] for tensor in inputs if not tensor.get("optional")]
    made = control_names(config) + [state.get("input_name", "") for state in states(config)]
    given = len(required) + len(config.get("batch_input", [])) + len(made)
    made += [name for item in config.get("batch_input", []) for name in item.get("target_name", [])]
    covered = {*required, *made}
    missing = [name for name in graph.inputs if name not in covered]
    if given == len(graph.inputs):
        if all(name in graph.inputs for name in covered):  # a name given twice, say, makes up for the missing one
            for name in missing:
                yield Problem(Kind.MISSING_INPUT, f"onnx runtime error: Missing Input: {name}", ("input",), name, refused=False)
        return
    message = f"unable to load model '{config['name']}', configuration expects {given} inputs, model provides {len(graph.inputs)}"
    culprits = list(_culprits(inputs, graph, missing, message))
    yield from culprits or [Problem(Kind.INPUT_COUNT, message, ("input",), found=str(given), expected=str(len(graph.inputs)))]


def _culprits(inputs: Sequence[Config], graph: Graph, missing: Sequence[str], message: str) -> Iterator[Problem]:
    seen = set()
    optional = {tensor["name"] for tensor in inputs if tensor.get("optional")}
    for index, tensor in enumerate(inputs):
        name = tensor["name"]
        if name in seen:
            yield Problem(Kind.DUPLICATE_INPUT, message, ("input", index, "name"), name)
        elif tensor.get("optional") and name in graph.inputs:
            yield Problem(Kind.REQUIRED_IS_OPTIONAL, message, ("input", index, "optional"), name)
        elif not tensor.get("optional") and name in graph.initializers:
            yield Problem(Kind.DEFAULT_NOT_OPTIONAL, message, ("input", index, "name"), name)
        elif not tensor.get("optional") and name not in graph.inputs:
            yield _unknown(tensor, index, "input", graph, message)
        seen.add(name)
    for name in missing:
        if name not in optional:
            expected = f"{graph.inputs[name].data_type} {_text(graph.inputs[name].dims)}"
            yield Problem(Kind.MISSING_INPUT, message, ("input",), name, expected=expected)


def _unknown(tensor: Config, index: int, role: str, graph: Graph, message: str = "") -> Problem:
    known = sorted({**graph.inputs, **graph.initializers} if role == "input" else graph.outputs)
    name = tensor["name"]
    message = message or f"unexpected inference {role} '{name}', allowed {role}s are: {', '.join(known)}"
    kind = Kind.UNKNOWN_INPUT if role == "input" else Kind.UNKNOWN_OUTPUT
    return Problem(kind, message, (role, index, "name"), name, name, choices=tuple(known))


def _input(config: Config, graph: Graph, tensor: Config, index: int, bf16: bool) -> Iterator[Problem]:
    name = tensor["name"]
    if tensor.get("optional") and config.get("max_batch_size", 0) != 0:
        message = f"unable to load model '{config['name']}', optional input '{name}' is not supported for models that support batching"
        yield Problem(Kind.OPTIONAL_WITH_BATCHING, message, ("input", index, "optional"), name)
    found = graph.inputs.get(name) or graph.initializers.get(name)
    if found is None:
        yield _unknown(tensor, index, "input", graph)
        return
    yield from _dtype(config, tensor, "input", index, found, bf16)
    if tensor.get("allow_ragged_batch"):
        yield from _ragged(config, tensor, index, found)
    else:
        yield from _dims(config, tensor, "input", index, found)


def _output(config: Config, graph: Graph, tensor: Config, index: int, bf16: bool) -> Iterator[Problem]:
    found = graph.outputs.get(tensor["name"])
    if found is None:
        yield _unknown(tensor, index, "output", graph)
        return
    yield from _dtype(config, tensor, "output", index, found, bf16)
    scattered = {name for item in config.get("batch_output", []) for name in item.get("target_name", [])}
    if tensor["name"] not in scattered:  # what batch_output splits need not have the graph's shape
        yield from _dims(config, tensor, "output", index, found)


def _dtype(config: Config, tensor: Config, role: str, index: int, found: GraphTensor, bf16: bool) -> Iterator[Problem]:
    path = (role, index, "data_type")
    declared = tensor["data_type"]
    if declared == "TYPE_BF16" and not bf16:
        message = f"unsupported datatype TYPE_BF16 for {role} '{tensor['name']}' for model '{config['name']}'"
        yield Problem(Kind.UNSUPPORTED_DTYPE, message, path, tensor["name"], declared, found.data_type)
    elif declared != found.data_type:
        provided = found.data_type.replace("TYPE_STRING", "TYPE_BYTES")
        expected = f"configuration expects datatype {declared} for {role} '{tensor['name']}'"
        message = f"unable to load model '{config['name']}', {expected}, model provides {provided}"
        yield Problem(Kind.DTYPE, message, path, tensor["name"], declared, found.data_type)


def _ragged(config: Config, tensor: Config, index: int, found: GraphTensor) -> Iterator[Problem]:
    wanted = f"unable to load model '{config['name']}', configuration expects model provides input with shape [-1]"
    path = ("input", index, "allow_ragged_batch")
    if tensor.get("optional"):
        message = f"{wanted} for ragged input '{tensor['name']}', which is not supported for optional input"
        yield Problem(Kind.RAGGED, message, path, tensor["name"], "optional", _text(found.dims))
    elif found.dims != (-1,):
        message = f"{wanted}  for ragged input '{tensor['name']}', model provides {_text(found.dims)}"
        yield Problem(Kind.RAGGED, message, path, tensor["name"], expected=_text(found.dims))


def _dims(config: Config, tensor: Config, role: str, index: int, found: GraphTensor) -> Iterator[Problem]:
    """A free dimension of an input accepts any, one of an output must be -1 in the config as well."""
    dims = shape_of(tensor)
    name = tensor["name"]
    path = (role, index, "reshape" if "reshape" in tensor else "dims")
    place = f"model '{config['name']}', tensor '{name}'"
    batching = config.get("max_batch_size", 0) > 0
    if not found.dims:
        if any(dim != 1 for dim in dims):
            message = (
                f"unable to load model '{config['name']}', scalar tensor '{name}', should only provide 1 in the model configuration when the model "
                f"doesn't support batching. Model configuration provided: {_text(dims)}."
            )
            yield Problem(Kind.SCALAR, message, path, name, _text(dims), "[1]")
        return
    if batching and not found.can_batch:
        message = (
            f"{place}: for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; "
            f"but shape expected by the model is {_text(found.dims)}"
        )
        yield Problem(Kind.NO_BATCH_AXIS, message, (role, index, "dims"), name, _text(dims), _text(found.dims))
        return
    full = [-1, *dims] if batching else dims
    exact = role == "output"
    same = len(full) == len(found.dims) and all(wanted == have or (have == -1 and not exact) for wanted, have in zip(full, found.dims, strict=True))
    if not same:
        shape = f"shape {_text(full)}"
        if batching:
            shape = f"an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete {shape}"
        specified = f"{len(full)} dimensions ({shape})"
        message = f"{place}: the model expects {len(found.dims)} dimensions (shape {_text(found.dims)}) but the model configuration specifies {specified}"
        yield Problem(Kind.DIMS, message, path, name, _text(dims), _text(found.dims[1:] if batching else found.dims))


def _failing_later(config: Config, graph: Graph) -> Iterator[Problem]:
    """What loads, and fails requests: no output at all, a scalar that cannot be split among the requests of a batch, states that the graph lacks."""
    if not config.get("output") and not states(config):
        yield Problem(Kind.NO_OUTPUT, "onnx runtime error 2: At least one output should be requested.", ("output",), refused=False)
    if config.get("max_batch_size", 0) > 1:
        for index, tensor in enumerate(config.get("output", [])):
            found = graph.outputs.get(tensor["name"])
            if found is not None and not found.dims:
                message = f"failed to split the output tensor '{tensor['name']}' in responses: expected batch size of at least 2 in model output, got 1"
                yield Problem(Kind.SCALAR_BATCH, message, ("output", index, "dims"), tensor["name"], refused=False)
    for index, state in enumerate(states(config)):
        for field, known in (("input_name", graph.inputs), ("output_name", graph.outputs)):
            name = state.get(field, "")
            if name not in known:
                path = ("sequence_batching", "state", index, field)
                message = f"onnx runtime error 2: Invalid {'input' if known is graph.inputs else 'output'} name: {name}"
                yield Problem(Kind.STATE_NAME, message, path, name, name, choices=tuple(sorted(known)), refused=False)


def _text(dims: Sequence[int]) -> str:
    return f"[{','.join(map(str, dims))}]"
