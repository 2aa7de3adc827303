"""Rules: implicit state of sequences, and the tensors that Triton fills in. Tried on core 2.51.0 with the Python backend."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tritongen.dtypes import from_config
from tritongen.modelconfig import DataType
from tritongen.repository.scan import ModelFolder
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.rules.shapes import agree, written


def _states(context: ModelContext) -> Iterator[tuple[str, Key, Any]]:
    for index, state in enumerate(context.config.sequence_batching.state):
        yield f"state '{state.input_name}'" if state.input_name else f"state number {index + 1}", ("sequence_batching", "state", index), state


def _incomplete(context: ModelContext) -> Iterator[Finding]:
    for label, key, state in _states(context):
        if not state.input_name:
            message = f"{label} has no input_name; the first request of a sequence crashed Triton 24.10"
            yield Finding(message, key, 'write `input_name: "..."` with the model\'s input that takes the state')
        if not state.output_name:
            message = f"{label} has no output_name: no output of the model updates it"
            hint = 'write `output_name: "..."` with the model\'s output that gives the next state'
            yield Finding(message, key, hint, consequence=Consequence.MISBEHAVES)
        retyped = any(initial.data_type != state.data_type for initial in state.initial_state)  # said by the rule of initial states, which refuses it
        if (state.data_type not in DataType.values() or not state.data_type) and not retyped:
            yield Finding(f"{label} has no data_type", (*key, "data_type"), "write the type of the model's input, such as `data_type: TYPE_FP32`")
        for index, dim in enumerate(state.dims):
            if dim < -1:
                yield Finding(f"{label} has the dimension {dim}; expected a size, or -1 where it varies", (*key, "dims", index), "write the size, or -1")


def _initial(context: ModelContext) -> Iterator[Finding]:
    begun: set[str] = set()
    for label, key, state in _states(context):
        if state.initial_state and state.input_name in begun:
            message = f"{label} has an initial state, as another state of that input_name has"
            yield Finding(message, (*key, "input_name"), "give each state an input of its own, or remove one of the two")
        begun |= {state.input_name} if state.initial_state else set()
        if len(state.initial_state) > 1:
            yield Finding(f"{label} has {len(state.initial_state)} initial states; expected one at most", (*key, "initial_state", 1), "remove all but one")
            continue
        for initial in state.initial_state:
            place: Key = (*key, "initial_state", 0)
            if not initial.name:
                yield Finding(f"the initial state of {label} has no name", place, 'write `name: "..."`; any text will do')
            if initial.data_type != state.data_type:
                yield _other_type(label, key, place, state.data_type, initial.data_type)
            yield from _initial_dims(label, place, list(state.dims), list(initial.dims))
            yield from _initial_data(context.folder, label, place, initial)


def _other_type(label: str, key: Key, place: Key, of_state: int, of_initial: int) -> Finding:
    if not of_state and of_initial in DataType.values():
        hint = f"write `data_type: {DataType.Name(of_initial)}`, if that is the type of the model's input"
        return Finding(f"{label} has no data_type, and its initial state has one", (*key, "data_type"), hint)
    wanted = DataType.Name(of_state) if of_state in DataType.values() else of_state
    return Finding(f"the initial state of {label} has another data_type than the state, {wanted}", (*place, "data_type"), f"write `data_type: {wanted}`")


def _initial_dims(label: str, place: Key, dims: list[int], given: list[int]) -> Iterator[Finding]:
    if -1 in given:
        yield Finding(f"the initial state of {label} has the dims {written(given)}; a first value has a definite size", (*place, "dims"), "write every size")
    elif not agree(dims, given):
        yield Finding(
            f"the initial state of {label} has the dims {written(given)}, which do not fit the state's {written(dims)}",
            (*place, "dims"),
            f"write dims that fit {written(dims)}",
        )


def _initial_data(folder: ModelFolder | None, label: str, place: Key, initial: Any) -> Iterator[Finding]:
    if initial.WhichOneof("state_data") is None:
        yield Finding(
            f"the initial state of {label} has no data", place, "write `zero_data: true`, or `data_file` with a file in the model's folder initial_state"
        )
        return
    if initial.WhichOneof("state_data") != "data_file" or folder is None:
        return
    path = f"initial_state/{initial.data_file}"
    facts = folder.entries.get(path)
    if facts is None or facts.kind != "file":
        yield Finding(
            f"the initial state of {label} is to be read from {path}, and there is no such file in the model's folder",
            (*place, "data_file"),
            f"put the file at {folder.at(path)}",
        )
        return
    needed = _bytes(initial)
    if needed is not None and facts.size < needed:
        message = f"{path} has {facts.size} bytes, and the initial state of {label} needs {needed}"
        yield Finding(message, (*place, "data_file"), "write the raw little-endian values, row by row, for one sequence without a batch dimension")


def _bytes(initial: Any) -> int | None:
    """Bytes of the first value; None where its type or its dims do not say."""
    if initial.data_type not in DataType.values() or not initial.data_type or any(dim < 0 for dim in initial.dims):
        return None
    size = from_config(initial.data_type).itemsize
    return None if size is None else size * prod(initial.dims)


def _declared_twice(context: ModelContext) -> Iterator[Finding]:
    batching = context.config.sequence_batching
    filled = {tensor.name: "control tensor" for tensor in batching.control_input} | {state.input_name: "state" for state in batching.state}
    refused = context.is_onnx or context.is_plan
    for index, tensor in enumerate(context.config.input):
        if tensor.name and tensor.name in filled:
            message = f"input '{tensor.name}' is a {filled[tensor.name]} of sequence_batching too: Triton fills it in, and what a request sends is overwritten"
            consequence = Consequence.REFUSED if refused else Consequence.MISBEHAVES
            yield Finding(message, ("input", index, "name"), "remove it from `input`", consequence=consequence)


def _growable(context: ModelContext) -> Iterator[Finding]:
    for label, key, state in _states(context):
        if state.use_growable_memory and not state.use_same_buffer_for_input_output:
            message = f"{label} uses growable memory without one buffer for input and output: on a GPU its sequences are refused, on a CPU it has no effect"
            yield Finding(message, (*key, "use_growable_memory"), "write `use_same_buffer_for_input_output: true` as well")


RULES: tuple[Rule, ...] = (
    Rule(
        "TG334",
        "filled-in-tensor-among-inputs",
        Consequence.MISBEHAVES,
        "Control tensors and states are not among the inputs.",
        "Triton adds them to each request. One that is declared as input as well is overwritten (tried on 24.10); the onnxruntime and tensorrt backends "
        "count it twice and refuse the model "
        "(onnxruntime_backend/src/onnxruntime.cc).",
        'input [ { name: "START" data_type: TYPE_INT32 dims: [ 1 ] } ]\nsequence_batching { control_input [ { name: "START" ... } ] }',
        'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]\nsequence_batching { control_input [ { name: "START" ... } ] }',
        check=_declared_twice,
    ),
    Rule(
        "TG335",
        "incomplete-state",
        Consequence.FAILS,
        "A state has an input, an output, a data type, and dims that are sizes or -1.",
        "The core checks none of it when it loads the model. Without an input_name the first request crashed the server; without a type, or with dims below "
        "-1, requests fail (tried on 24.10).",
        'state [ { output_name: "next" data_type: TYPE_FP32 dims: [ 2 ] } ]',
        'state [ { input_name: "previous" output_name: "next" data_type: TYPE_FP32 dims: [ 2 ] } ]',
        check=_incomplete,
    ),
    Rule(
        "TG336",
        "invalid-initial-state",
        Consequence.REFUSED,
        "A state has at most one initial state, with a name, the state's type, definite dims that fit, and data that is there.",
        "`GenerateInitialStateData` (core/src/sequence_batch_scheduler.cc) refuses anything else, a file with fewer bytes than the dims need (more "
        "bytes are accepted), and two states of one input_name that both have one (tried on 24.10).",
        "initial_state { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }",
        'initial_state { name: "zeros" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }',
        check=_initial,
    ),
    Rule(
        "TG337",
        "growable-state-without-shared-buffer",
        Consequence.MISBEHAVES,
        "A growable state uses one buffer for input and output.",
        "use_growable_memory is for GPUs and requires use_same_buffer_for_input_output (core/src/sequence_state.cc). On a machine without GPU the model is "
        "loaded and answers (tried on 24.10).",
        'state [ { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: [ 2 ] use_growable_memory: true } ]',
        'state [ { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: [ 2 ] use_growable_memory: true use_same_buffer_for_input_output: true } ]',
        check=_growable,
    ),
)
