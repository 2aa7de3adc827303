"""Rules: types and shapes along an ensemble's data flow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tritongen.rules.completed import Tensor, interface
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.rules.shapes import agree, written, wrong_entries


@dataclass(frozen=True)
class _Use:
    """What one place says about a tensor of the ensemble; `label` names the place."""

    label: str
    key: Key
    tensor: Tensor
    batches: bool

    @property
    def full(self) -> tuple[int, ...]:
        return (-1, *self.tensor.dims) if self.batches else self.tensor.dims


def _own(context: ModelContext) -> dict[str, _Use]:
    """What the ensemble says about its inputs and outputs. Here, and only here, a reshape counts instead of dims (tried on 24.10)."""
    found: dict[str, _Use] = {}
    batches = context.config.max_batch_size > 0
    for kind in ("input", "output"):
        for index, tensor in enumerate(getattr(context.config, kind)):
            dims = tuple(tensor.reshape.shape) if tensor.HasField("reshape") else tuple(tensor.dims)
            field = "reshape" if tensor.HasField("reshape") else "dims"
            use = _Use(f"the ensemble's {kind}", (kind, index, field), Tensor(tensor.name, tensor.data_type, dims), batches)
            found.setdefault(tensor.name, use)
    return found


def _uses(context: ModelContext, models: dict[str, ModelContext]) -> Iterator[tuple[str, _Use]]:
    """Every statement of a step's model about a tensor, in the order in which the core looks: step by step, as in the file."""
    for index, step in enumerate(context.config.ensemble_scheduling.step):
        side = interface(models[step.model_name]) if step.model_name in models else None
        if side is None:
            continue
        for kind, tensors, mapped in (("input", side.inputs, step.input_map), ("output", side.outputs, step.output_map)):
            by_name = {tensor.name: tensor for tensor in tensors}
            for inner in sorted(mapped):
                if inner in by_name:
                    label = f"{kind} '{inner}' of step {index + 1} ('{step.model_name}')"
                    yield mapped[inner], _Use(label, ("ensemble_scheduling", "step", index, f"{kind}_map", inner), by_name[inner], side.batches)


def _check(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    names = [context.name for context in contexts]
    models = {context.name: context for context in contexts if names.count(context.name) == 1}
    for context in models.values():
        if not context.config.HasField("ensemble_scheduling"):
            continue
        # Each use is compared with the first one only, as the core does: later ones may disagree with each other where the first has a -1.
        first = _own(context)
        for name, use in _uses(context, models):
            if name not in first:
                first[name] = use
                continue
            finding = _disagreement(name, first[name], use)
            if finding is not None:
                message, hint = finding
                yield Finding(message, use.key, hint, model=context.name)


def _disagreement(name: str, first: _Use, use: _Use) -> tuple[str, str] | None:
    one, other = first.tensor, use.tensor
    if 0 in (one.dtype, other.dtype) or any(not tensor.dims or wrong_entries(tensor.dims) for tensor in (one, other)):
        return None
    if one.dtype != other.dtype:
        message = f"tensor '{name}' is {one.type_name} as {first.label}, and {other.type_name} as {use.label}"
        return message, f"{_correct(first, use, 'the type')}, or put a step in between that converts"
    if not agree(one.dims, other.dims) and not agree(first.full, use.full):
        message = f"tensor '{name}' is {written(first.full)} as {first.label}, and {written(use.full)} as {use.label}{_batch_note(first, use)}"
        return message, f"{_correct(first, use, 'dims')}, or put a step in between that reshapes"
    return None


def _correct(first: _Use, use: _Use, what: str) -> str:
    if first.key[0] not in ("input", "output"):
        return f"correct {what} in the config of one of the two models"
    if what == "dims" and first.key[-1] == "reshape":
        return f"remove the reshape of the ensemble's {first.key[0]}, where it counts instead of dims, or write {written(use.tensor.dims)} in it"
    value = f"`data_type: {use.tensor.type_name}`" if what == "the type" else f"`dims: {written(use.tensor.dims)}`"
    return f"write {value} in the ensemble's {first.key[0]}"


def _batch_note(first: _Use, use: _Use) -> str:
    return " (with the batch dimension)" if first.batches and use.batches else ""


RULES: tuple[Rule, ...] = (
    Rule(
        "TG328",
        "ensemble-type-mismatch",
        Consequence.REFUSED,
        "A tensor of an ensemble has one type, and shapes that agree, wherever it is written and read.",
        "'inconsistent data type' and 'inconsistent shape' (core/src/ensemble_scheduler/ensemble_utils.cc; tried on 24.10). -1 agrees with every size; shapes "
        "may agree with or without the batch dimension, so that a model without batching can feed one with it. A step's dims count, not its reshapes; and "
        "only the first use of a tensor in the file is compared with the others.",
        'input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] } ]  # of an ensemble whose step takes INT32',
        'input [ { name: "A" data_type: TYPE_INT32 dims: [ 4 ] } ]',
        check_all=_check,
    ),
)
