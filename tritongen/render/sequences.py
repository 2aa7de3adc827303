"""Sequences (`config: {sequence_batching: ...}`): tensors that Triton fills in, and that requests neither send nor get.

Source: ModelSequenceBatching in model_config.proto; the onnxruntime and tensorrt backends count a tensor twice that is an input too, and refuse the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritongen.modelconfig import ModelConfig, merge_overlay
from tritongen.render.findings import Findings, Key
from tritongen.signature import Signature
from tritongen.spec import ModelSpec

_FIELD = "sequence_batching"


@dataclass(frozen=True)
class Filled:
    """Tensors of a model that Triton fills in, or keeps, by name.

    Attributes:
        controls: inputs that say of each request where in its sequence it is.
        states: inputs with what an earlier request left.
        kept: outputs that become states.
    """

    controls: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


def takes_sequences(model: ModelSpec) -> bool:
    """Whether Triton refuses requests that belong to no sequence."""
    return _FIELD in model.config


def filled_tensors(model: ModelSpec) -> Filled:
    """What `config: {sequence_batching: ...}` names; what is wrong in it is said where the overlay is merged."""
    if not takes_sequences(model):
        return Filled()
    batching = _parsed(model).sequence_batching
    return Filled(
        frozenset(tensor.name for tensor in batching.control_input),
        frozenset(state.input_name for state in batching.state),
        frozenset(state.output_name for state in batching.state),
    )


def _parsed(model: ModelSpec) -> Any:
    config = ModelConfig()
    merge_overlay(config, {_FIELD: model.config[_FIELD]})
    return config


def leave_out_filled(config: Any, model: ModelSpec) -> tuple[str, ...]:
    """Take out of `input` what Triton fills in, and of `output` what it keeps. What the overlay names there stays: a state is then answered, too, and an input
    is refused where it stands. Returns sentences for the header of the config.
    """
    filled = filled_tensors(model)
    gone = []
    for field, names in (("input", filled.controls | filled.states), ("output", filled.kept)):
        tensors = getattr(config, field)
        asked = {entry.get("name") for entry in _entries(model, field)}
        leaving = [index for index, tensor in enumerate(tensors) if tensor.name in names and tensor.name not in asked]
        gone += [f"'{tensors[index].name}'" for index in leaving]
        for index in reversed(leaving):
            del tensors[index]
    return (f"Neither sent nor answered, since sequence_batching fills it in or keeps it: {', '.join(gone)}.",) if gone else ()


def _entries(model: ModelSpec, field: str) -> list[dict[str, object]]:
    """The entries of the overlay's list that are mappings; others are refused where the overlay is merged."""
    listed = model.config.get(field)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list | tuple) else []


def check_sequences(model: ModelSpec, signature: Signature, findings: Findings) -> None:
    """Say what the overlay's sequence_batching names that the model has not."""
    if _FIELD not in model.config:
        return
    batching = _parsed(model).sequence_batching
    inputs, outputs = ([tensor.name for tensor in tensors] for tensors in (signature.inputs, signature.outputs))
    named: list[tuple[Key, str, str, list[str]]] = [
        (("control_input", index, "name"), "input", tensor.name, inputs) for index, tensor in enumerate(batching.control_input) if tensor.name
    ]
    for index, state in enumerate(batching.state):
        named += [(("state", index, "input_name"), "input", state.input_name, inputs)] if state.input_name else []
        named += [(("state", index, "output_name"), "output", state.output_name, outputs)] if state.output_name else []
    for key, what, name, known in named:
        if name not in known:
            findings.error(
                "TG103",
                ("config", _FIELD, *key),
                f"the model has no {what} '{name}'",
                consequence="Triton refuses to load the model",
                hint=f"its {what}s are {', '.join(map(repr, known))}",
            )
