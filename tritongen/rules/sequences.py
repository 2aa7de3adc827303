"""Rules: sequence batching and its control tensors; `states` has the rest of the family. Tried on core 2.51.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.modelconfig import DataType
from tritongen.rules import states
from tritongen.rules.batching import preferred_problems
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_KINDS = {0: "CONTROL_SEQUENCE_START", 1: "CONTROL_SEQUENCE_READY", 2: "CONTROL_SEQUENCE_END", 3: "CONTROL_SEQUENCE_CORRID"}
_CORRID = 3
_ID_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
_CORE = "`GetBooleanSequenceControlProperties` and `GetTypedSequenceControlProperties` (core/src/model_config_utils.cc)"


def _controls(context: ModelContext) -> Iterator[tuple[str, Key, Any]]:
    """Every control of a known kind: how to call it, where it is, and itself."""
    for number, tensor in enumerate(context.config.sequence_batching.control_input):
        for index, control in enumerate(tensor.control):
            if control.kind in _KINDS:
                yield f"{_KINDS[control.kind]} of control tensor '{tensor.name}'", ("sequence_batching", "control_input", number, "control", index), control


def _names(context: ModelContext) -> Iterator[Finding]:
    seen: set[str] = set()
    for number, tensor in enumerate(context.config.sequence_batching.control_input):
        key: Key = ("sequence_batching", "control_input", number)
        if not tensor.name:
            yield Finding(f"control_input number {number + 1} has no name", key, 'write `name: "..."` with the name of the model\'s input')
        elif tensor.name in seen:
            yield Finding(f"control tensor '{tensor.name}' is declared twice", (*key, "name"), "give each control an input of its own")
        seen.add(tensor.name)
    kinds: dict[int, str] = {}
    for _, key, control in _controls(context):
        name = context.config.sequence_batching.control_input[key[2]].name
        if control.kind in kinds:
            message = f"{_KINDS[control.kind]} is given to '{kinds[control.kind]}' and to '{name}'; each kind may be given once"
            yield Finding(message, (*key, "kind"), "remove one of the two, or correct its kind")
        kinds.setdefault(control.kind, name)


def _values(context: ModelContext) -> Iterator[Finding]:
    for label, key, control in _controls(context):
        if control.kind == _CORRID:
            continue
        given = [field for field in _VALUES if getattr(control, field)]
        if len(given) != 1:
            found = f"it has {' and '.join(given)}" if given else "it has none"
            yield Finding(
                f"{label} needs exactly one of {', '.join(_VALUES)}; {found}", key, "write `int32_false_true: [ 0, 1 ]`, or the one of the input's type"
            )
            continue
        values = list(getattr(control, given[0]))
        if len(values) != len(("false", "true")):
            yield Finding(
                f"{label} has {len(values)} values in {given[0]}; expected 2, for false and for true",
                (*key, given[0]),
                f"write `{given[0]}: [ {_pair(given[0])} ]`",
            )
        elif values[0] == values[1]:
            message = f"{label} has {values[0]} for false and for true: the model cannot tell them apart"
            yield Finding(message, (*key, given[0]), f"write `{given[0]}: [ {_pair(given[0])} ]`", consequence=Consequence.MISBEHAVES)


def _pair(field: str) -> str:
    return "false, true" if field.startswith("bool") else "0, 1"


def _ids(context: ModelContext) -> Iterator[Finding]:
    for label, key, control in _controls(context):
        if control.kind != _CORRID:
            continue
        given = [field for field in _VALUES if getattr(control, field)]
        if given:
            yield Finding(f"{label} has {given[0]}, and is no switch", (*key, given[0]), f"remove {given[0]} and write `data_type: TYPE_UINT64`")
        found = DataType.Name(control.data_type) if control.data_type in DataType.values() else str(control.data_type)
        if found not in _ID_TYPES:
            said = f"the data_type {found}" if control.data_type else "no data_type"
            yield Finding(
                f"{label} has {said}; expected one of {', '.join(_ID_TYPES)}",
                (*key, "data_type"),
                "write `data_type: TYPE_UINT64`, or the type of the model's input",
            )


def _sizes(context: ModelContext) -> Iterator[Finding]:
    batching = context.config.sequence_batching
    yield from preferred_problems(batching.oldest.preferred_batch_size, context.config.max_batch_size, ("sequence_batching", "oldest", "preferred_batch_size"))
    share = batching.direct.minimum_slot_utilization
    if share < 0 or share > 1:
        key = ("sequence_batching", "direct", "minimum_slot_utilization")
        yield Finding(f"minimum_slot_utilization is {share:g}; expected 0 to 1", key, "write the share of slots to wait for, such as 0.5, or leave it out")


def _without_effect(context: ModelContext) -> Iterator[Finding]:
    for number, tensor in enumerate(context.config.sequence_batching.control_input):
        key: Key = ("sequence_batching", "control_input", number)
        if not tensor.name:
            continue
        if not tensor.control:
            message = f"control tensor '{tensor.name}' has no control: nothing is delivered to it"
            yield Finding(message, key, "write `control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ]`, or remove it")
        elif len({control.kind for control in tensor.control}) > 1:
            kinds = " and ".join(_KINDS.get(control.kind, str(control.kind)) for control in tensor.control)
            yield Finding(
                f"control tensor '{tensor.name}' is to carry {kinds}, and holds one value",
                key,
                "give each control an input of its own",
                consequence=Consequence.MISBEHAVES,
            )


def _idle(context: ModelContext) -> Iterator[Finding]:
    if context.config.HasField("sequence_batching") and not context.config.sequence_batching.max_sequence_idle_microseconds:
        message = (
            "max_sequence_idle_microseconds is not set: a sequence that pauses for more than 1 s is dropped, and its next request is refused for want of START"
        )
        yield Finding(message, ("sequence_batching",), "write `max_sequence_idle_microseconds: 60000000` for one minute, or what your slowest client needs")


RULES: tuple[Rule, ...] = (
    Rule(
        "TG330",
        "doubled-control-tensor",
        Consequence.REFUSED,
        "Every control tensor has a name, no two share one, and each kind of control is given once.",
        f"{_CORE} refuse anything else.",
        'control_input [ { name: "S" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },\n'
        '                { name: "S" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] } ]',
        'control_input [ { name: "S" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },\n'
        '                { name: "E" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] } ]',
        check=_names,
    ),
    Rule(
        "TG331",
        "invalid-control-values",
        Consequence.REFUSED,
        "START, END and READY have exactly one pair of values: for false, and for true.",
        f"{_CORE} want one of the three lists, with two entries. Equal entries are loaded, and tell the model nothing.",
        "control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 1 ] } ]",
        "control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ]",
        check=_values,
    ),
    Rule(
        "TG332",
        "invalid-correlation-id",
        Consequence.REFUSED,
        "CORRID has a data type of 32 or 64 bit integers or strings, and no pair of values.",
        f"{_CORE} refuse other types; a missing one is TYPE_INVALID.",
        "control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } ]",
        "control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ]",
        check=_ids,
    ),
    Rule(
        "TG333",
        "invalid-sequence-sizes",
        Consequence.REFUSED,
        "Preferred sizes of the oldest strategy are 1 to max_batch_size, and minimum_slot_utilization is 0 to 1.",
        "`ValidateModelConfig` (core/src/model_config_utils.cc) refuses others; its message says (0, 1], but 0 is accepted (tried on 24.10).",
        "max_batch_size: 4\nsequence_batching { oldest { max_candidate_sequences: 8 preferred_batch_size: [ 8 ] } }",
        "max_batch_size: 8\nsequence_batching { oldest { max_candidate_sequences: 8 preferred_batch_size: [ 8 ] } }",
        check=_sizes,
    ),
    Rule(
        "TG338",
        "default-idle-timeout",
        Consequence.FRAGILE,
        "sequence_batching says how long a sequence may pause.",
        "The default is one second; after it the slot is freed and queued requests of the sequence are dropped (core/src/sequence_batch_scheduler.cc; "
        "triton-inference-server/server issue 4178).",
        "sequence_batching { }",
        "sequence_batching { max_sequence_idle_microseconds: 60000000 }",
        check=_idle,
    ),
    Rule(
        "TG339",
        "control-without-effect",
        Consequence.IGNORED,
        "Every control tensor carries exactly one control.",
        "Without one nothing is delivered. With two in one control_input the model got the last one's value only (tried on 24.10: START was lost to END); "
        "two control_input of one name are refused.",
        'control_input [ { name: "S" } ]',
        'control_input [ { name: "S" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ]',
        check=_without_effect,
    ),
    *states.RULES,
)
