"""Rules: an ensemble's batches against what the models of its steps take. Tried on core 2.51.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tritongen.rules.completed import interface, max_batch_size
from tritongen.rules.context import ModelContext
from tritongen.rules.ensemble_graph import Writer, build_graph
from tritongen.rules.ensemble_steps import Models, ensembles, known_models
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.rules.shapes import written

_STEP: Key = ("ensemble_scheduling", "step")
Writers = Mapping[str, Sequence[Writer]]


def _batch_sizes(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    models = known_models(contexts)
    for context in ensembles(contexts):
        size = context.config.max_batch_size
        written_by = build_graph(context.config).written if size > 1 else {}
        for index, step in enumerate(context.config.ensemble_scheduling.step):
            model = models.get(step.model_name)
            limit = max_batch_size(model) if model is not None else None
            if limit and size > limit:
                origin = "" if model is not None and model.config.max_batch_size else ", set by auto-complete"
                message = f"max_batch_size is {size}, and step {index + 1} ('{step.model_name}') takes at most {limit}{origin}"
                yield Finding(message, ("max_batch_size",), f"write `max_batch_size: {limit}`, or raise the model's", model=context.name)
            elif limit == 0 and size > 1:
                yield from _unbatched(context, models, written_by, index)


def _unbatched(context: ModelContext, models: Models, written_by: Writers, index: int) -> Iterator[Finding]:
    """A step that does not batch, and whose inputs have no dimension to spare for the ensemble's batch. Such a dimension may stand in its dims."""
    step = context.config.ensemble_scheduling.step[index]
    side = interface(models[step.model_name])
    tensors = {tensor.name: tensor for tensor in side.inputs} if side is not None else {}
    for inner in sorted(step.input_map):
        rank = _rank(context, models, written_by, step.input_map[inner])
        if inner in tensors and rank is not None and len(tensors[inner].dims) != rank:
            message = (
                f"max_batch_size is {context.config.max_batch_size}, and step {index + 1} ('{step.model_name}') does not batch: its input '{inner}' is "
                f"{written(tensors[inner].dims)}, without the batch dimension, so that every batch above 1 fails"
            )
            hint = "write `max_batch_size: 1`, or give the model a max_batch_size, or write -1 before its dims where its own code takes batches"
            yield Finding(message, (*_STEP, index, "model_name"), hint, model=context.name, consequence=Consequence.FAILS)
            return


def _rank(context: ModelContext, models: Models, written_by: Writers, tensor: str) -> int | None:
    """With how many dimensions, that of the batch counted, a tensor comes to a step; None where that is not known."""
    for own in context.config.input:
        if own.name == tensor:
            return None if own.HasField("reshape") else 1 + len(own.dims)
    for index, inner in written_by.get(tensor, ()):
        model = models.get(context.config.ensemble_scheduling.step[index].model_name)
        side = interface(model) if model is not None else None
        rank = next((len(output.dims) for output in side.outputs if output.name == inner), None) if side is not None else None
        if side is not None and rank is not None:
            return rank + (1 if side.batches else 0)
    return None


RULES: tuple[Rule, ...] = (
    Rule(
        "TG329",
        "ensemble-batch-size",
        Consequence.REFUSED,
        "An ensemble's max_batch_size is at most that of each step that batches, and 0 or 1 where a step takes no batch.",
        "'allows maximum batch size 16, but it contains model ... which only allows maximum batch size to be 8' (core/src/ensemble_scheduler/"
        "ensemble_utils.cc; tried on 24.10). Over a step with max_batch_size 0 the ensemble loads; a batch reaches the step with its batch dimension, which "
        "fails ('unexpected shape for input') unless the step's dims have a place for it.",
        "max_batch_size: 16  # of an ensemble whose step has max_batch_size: 8",
        "max_batch_size: 8",
        check_all=_batch_sizes,
    ),
)
