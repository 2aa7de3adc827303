"""Rules: `batch_input` and `batch_output`, the tensors that tell a model where each request of a ragged batch ends."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from tritongen.modelconfig import DataType
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule


def _check(context: ModelContext) -> Iterator[Finding]:
    inputs = [tensor.name for tensor in context.config.input]
    outputs = [tensor.name for tensor in context.config.output]
    for index, entry in enumerate(context.config.batch_input):
        key: Key = ("batch_input", index)
        yield from _kind(entry, key)
        yield from _source(entry, key, inputs)
        if entry.data_type not in (DataType.Value("TYPE_INT32"), DataType.Value("TYPE_FP32")):
            found = DataType.Name(entry.data_type) if entry.data_type in DataType.values() and entry.data_type else "none"
            yield Finding(
                f"batch_input number {index + 1} has data_type {found}; expected TYPE_INT32 or TYPE_FP32", (*key, "data_type"), "write `data_type: TYPE_INT32`"
            )
        if not entry.target_name:
            message = f"batch_input number {index + 1} has no target_name: nothing is delivered"
            yield Finding(message, key, 'write `target_name: "..."` with the name of the model\'s input', consequence=Consequence.IGNORED)
    for index, entry in enumerate(context.config.batch_output):
        key = ("batch_output", index)
        yield from _kind(entry, key)
        yield from _source(entry, key, inputs)
        yield from _targets(entry, key, outputs)


def _kind(entry: Any, key: Key) -> Iterator[Finding]:
    kinds = entry.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number
    if entry.kind not in kinds:
        message = f"{key[0]} number {int(key[1]) + 1} has the kind {entry.kind}, which stands for nothing"
        yield Finding(message, (*key, "kind"), f"write one of {', '.join(value.name for value in kinds.values())}")


def _source(entry: Any, key: Key, inputs: Sequence[str]) -> Iterator[Finding]:
    label = f"{key[0]} number {int(key[1]) + 1}"
    if len(entry.source_input) != 1:
        yield Finding(
            f"{label} names {len(entry.source_input)} source inputs; expected exactly 1",
            (*key, "source_input"),
            'write `source_input: "..."` with one declared input',
        )
    for name in entry.source_input[:1]:
        if name not in inputs:
            message = f"{label} takes its numbers from '{name}', which is no declared input; those are {', '.join(inputs) or 'none'}"
            yield Finding(message, (*key, "source_input"), _close(name, inputs, "source_input"))


def _targets(entry: Any, key: Key, outputs: Sequence[str]) -> Iterator[Finding]:
    label = f"batch_output number {int(key[1]) + 1}"
    if not entry.target_name:
        yield Finding(f"{label} has no target_name; Triton 24.10 crashes when it loads such a config", key, 'write `target_name: "..."` with a declared output')
    for name in dict.fromkeys(entry.target_name):
        if name not in outputs:
            message = f"{label} is for '{name}', which is no declared output; those are {', '.join(outputs) or 'none'}"
            yield Finding(message, (*key, "target_name"), _close(name, outputs, "target_name"))
        elif list(entry.target_name).count(name) > 1:
            yield Finding(f"{label} names the output '{name}' more than once", (*key, "target_name"), "name it once")


def _close(name: str, known: Sequence[str], field: str) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f'write `{field}: "{close[0]}"`' if close else f"name a tensor that the config declares under {'output' if field == 'target_name' else 'input'}"


RULES: tuple[Rule, ...] = (
    Rule(
        "TG256",
        "invalid-batch-tensor",
        Consequence.REFUSED,
        "A batch_input takes INT32 or FP32 numbers from exactly one declared input, and a batch_output splits declared outputs by exactly one declared input.",
        "`ValidateBatchIO` (core/src/model_config_utils.cc) refuses anything else. A batch_output without a target crashed the server, and a batch_input "
        "without one was loaded and "
        "did nothing (tried on 24.10).",
        'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_INT64 source_input: "x" } ]',
        'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_INT32 source_input: "x" } ]',
        check=_check,
    ),
)
