"""The config against the graph, as NVIDIA's C++ backend judges at load time.

The verdicts and the gist of the messages are those of that backend (release 24.10, recorded by running it); only BF16, which it learned in 26.03, is accepted
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import RefusedError
from .graph import Graph, GraphTensor

Config = Mapping[str, Any]
"""A model config as the stub gets it: the JSON form of Triton's ModelConfig."""


def check(config: Config, graph: Graph) -> None:
    """Raise RefusedError where NVIDIA's backend would refuse to load."""
    _check_inputs(config, graph)
    _check_outputs(config, graph)


def shape_of(tensor: Config) -> list[int]:
    """The dims that are compared with the graph: those of `reshape` where there is one."""
    source = tensor["reshape"].get("shape", []) if "reshape" in tensor else tensor.get("dims", [])
    return [int(dim) for dim in source]


def control_names(config: Config) -> list[str]:
    """Tensors that the sequence batcher adds to each request."""
    return [control["name"] for control in config.get("sequence_batching", {}).get("control_input", [])]


def states(config: Config) -> list[Config]:
    """Implicit states of the sequence batcher."""
    return list(config.get("sequence_batching", {}).get("state", []))


def batch_input_names(config: Config) -> list[str]:
    """Targets of `batch_input`: tensors that the backend makes from the batch itself."""
    return [name for item in config.get("batch_input", []) for name in item.get("target_name", [])]


def _check_inputs(config: Config, graph: Graph) -> None:
    model = config["name"]
    inputs = config.get("input", [])
    expected = sum(not tensor.get("optional") for tensor in inputs)
    expected += len(batch_input_names(config)) + len(control_names(config)) + len(states(config))
    if expected != len(graph.inputs):
        raise RefusedError(f"unable to load model '{model}', configuration expects {expected} inputs, model provides {len(graph.inputs)}")
    for tensor in inputs:
        name = tensor["name"]
        known = graph.inputs
        if tensor.get("optional"):
            if config.get("max_batch_size", 0) > 0:
                raise RefusedError(f"unable to load model '{model}', optional input '{name}' is not supported for models that support batching")
            known = graph.initializers
        _check_name(name, "input", known)
        _check_type(config, tensor, "input", known[name])
        if tensor.get("allow_ragged_batch"):
            _check_ragged(config, tensor, known[name])
        else:
            _check_dims(config, tensor, known[name], exact=False)
    for name in (*control_names(config), *batch_input_names(config), *(state["input_name"] for state in states(config))):
        _check_name(name, "input", graph.inputs)


def _check_outputs(config: Config, graph: Graph) -> None:
    for tensor in config.get("output", []):
        _check_name(tensor["name"], "output", graph.outputs)
        _check_type(config, tensor, "output", graph.outputs[tensor["name"]])
        _check_dims(config, tensor, graph.outputs[tensor["name"]], exact=True)
    for state in states(config):
        _check_name(state["output_name"], "output", graph.outputs)


def _check_name(name: str, role: str, known: Mapping[str, GraphTensor]) -> None:
    if name not in known:
        raise RefusedError(f"unexpected inference {role} '{name}', allowed {role}s are: {', '.join(sorted(known))}")


def _check_type(config: Config, tensor: Config, role: str, found: GraphTensor) -> None:
    if tensor["data_type"] != found.data_type:
        provided = found.data_type.replace("TYPE_STRING", "TYPE_BYTES")
        expected = f"configuration expects datatype {tensor['data_type']} for {role} '{tensor['name']}'"
        raise RefusedError(f"unable to load model '{config['name']}', {expected}, model provides {provided}")


def _check_ragged(config: Config, tensor: Config, found: GraphTensor) -> None:
    if found.dims != (-1,):
        raise RefusedError(
            f"unable to load model '{config['name']}', configuration expects model provides input '{tensor['name']}' with shape [-1] for ragged input, "
            f"model provides {_text(found.dims)}"
        )


def _check_dims(config: Config, tensor: Config, found: GraphTensor, *, exact: bool) -> None:
    """Compare one tensor's dims: a free dimension of an input accepts any, one of an output (`exact`) must be -1 in the config as well."""
    place = f"model '{config['name']}', tensor '{tensor['name']}'"
    dims = shape_of(tensor)
    if not found.dims:
        if any(dim != 1 for dim in dims):
            raise RefusedError(
                f"unable to load model '{config['name']}', scalar tensor '{tensor['name']}', should only provide 1 in the model configuration. "
                f"Model configuration provided: {_text(dims)}."
            )
        return
    batching = config.get("max_batch_size", 0) > 0
    if batching and not found.can_batch:
        raise RefusedError(
            f"{place}: for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; "
            f"but shape expected by the model is {_text(found.dims)}"
        )
    full = [-1, *dims] if batching else dims
    same = len(full) == len(found.dims) and all(wanted == have or (have == -1 and not exact) for wanted, have in zip(full, found.dims, strict=True))
    if not same:
        shape = f"shape {_text(full)}"
        if batching:
            shape = f"an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete {shape}"
        specified = f"{len(full)} dimensions ({shape})"
        raise RefusedError(
            f"{place}: the model expects {len(found.dims)} dimensions (shape {_text(found.dims)}) but the model configuration specifies {specified}"
        )


def _text(dims: Sequence[int]) -> str:
    return f"[{','.join(map(str, dims))}]"
