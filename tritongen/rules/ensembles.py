"""Rules: an ensemble's own config, of which a lone file can tell; `ensemble_steps` compares it with the models of its steps. Tried on core 2.51.0."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from tritongen.rules import ensemble_batches, ensemble_steps
from tritongen.rules.context import ModelContext
from tritongen.rules.ensemble_graph import Graph, build_graph
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_STEP: Key = ("ensemble_scheduling", "step")
_FLOW = "(`ValidateEnsembleSchedulingConfig`, core/src/model_config_utils.cc; the reason is in the server's log alone)"


def _declaration(context: ModelContext) -> Iterator[Finding]:
    config = context.config
    scheduled = config.HasField("ensemble_scheduling")
    if scheduled and config.platform != "ensemble":
        found = f"platform '{config.platform}'" if config.platform else "no platform"
        yield Finding(
            f"there is an ensemble_scheduling, and {found}", ("platform",) if config.platform else _STEP[:1], 'write `platform: "ensemble"`, and no backend'
        )
    elif scheduled and config.backend:
        yield Finding(f"an ensemble has no backend; found '{config.backend}'", ("backend",), "remove `backend`")
    if not context.is_ensemble:
        return
    if not scheduled and not config.backend:
        yield Finding(
            "platform is 'ensemble', and there is no ensemble_scheduling",
            ("platform",),
            "write `ensemble_scheduling { step [ ... ] }`, or the platform of the model",
        )
    if not scheduled:
        return
    for field in ("instance_group", "optimization", "model_warmup"):
        if len(getattr(config, field)) if field != "optimization" else config.HasField(field):
            yield Finding(f"an ensemble cannot have {field}", (field,), f"move it into the config of a step's model{_step_names(config)}")


def _step_names(config: Any) -> str:
    names = list(dict.fromkeys(step.model_name for step in config.ensemble_scheduling.step if step.model_name))
    return f" ({', '.join(names)})" if names else ""


def _steps(context: ModelContext) -> Iterator[Finding]:
    if not context.config.HasField("ensemble_scheduling"):
        return
    steps = context.config.ensemble_scheduling.step
    if not steps:
        yield Finding(
            "the ensemble has no step",
            ("ensemble_scheduling",),
            'write `step [ { model_name: "..." model_version: -1 input_map { ... } output_map { ... } } ]`',
        )
    for index, step in enumerate(steps):
        missing = [field for field in ("model_name", "input_map", "output_map") if not getattr(step, field)]
        for field in missing:
            yield Finding(f"step {_label(index, step)} has no {field}", (*_STEP, index), _MISSING[field])


_MISSING = {
    "model_name": 'write `model_name: "..."` with the name of a model of this repository',
    "input_map": 'write `input_map { key: "<input of the model>" value: "<tensor of the ensemble>" }` for each input',
    "output_map": 'write `output_map { key: "<output of the model>" value: "<tensor of the ensemble>" }` for what is used',
}


def _label(index: int, step: Any) -> str:
    return f"{index + 1} ('{step.model_name}')" if step.model_name else str(index + 1)


def _wiring(context: ModelContext) -> Iterator[Finding]:
    """Tensors that are read and never written, or written and never read; one finding where the two are one misspelt name."""
    config = context.config
    if not config.ensemble_scheduling.step or any(not step.input_map or not step.output_map for step in config.ensemble_scheduling.step):
        return
    graph = build_graph(config)
    unused_inputs = [name for name in graph.inputs if name not in graph.read]
    loose = [*graph.unread, *unused_inputs]
    single = len(loose) == len(graph.unwritten) == 1
    for name in graph.unwritten:
        close = loose[0] if single else _closest(name, loose)
        if close:
            loose.remove(close)
        yield _unwritten(config, graph, name, close)
    for name in graph.unread:
        if name in loose:
            index, inner = graph.written[name][0]
            message = f"'{name}', written by step {_label(index, config.ensemble_scheduling.step[index])}, is read by no step and is no output of the ensemble"
            yield Finding(
                message,
                (*_STEP, index, "output_map", inner),
                f"remove it from the step's output_map (a step need not map all outputs), or read '{name}' somewhere",
            )
    for position, tensor in enumerate(config.input):
        if tensor.name in unused_inputs and tensor.name in loose:
            loose.remove(tensor.name)
            yield Finding(
                f"the ensemble's input '{tensor.name}' is read by no step", ("input", position, "name"), "map it to an input of a step's model, or remove it"
            )
    if graph.looped:
        index, inner = graph.written[graph.looped[0]][0]
        message = f"steps wait for each other in a circle; these tensors are never written: {', '.join(graph.looped)}"
        yield Finding(message, (*_STEP, index, "output_map", inner), "break the circle: a step cannot read what is made from its own outputs")


def _unwritten(config: Any, graph: Graph, name: str, close: str) -> Finding:
    near = f"; did you mean '{close}'?" if close else ""
    sources = ", ".join(f"'{known}'" for known in dict.fromkeys([*graph.inputs, *graph.written]) if known != name) or "none"
    hint = f"write '{close}' in both places" if close else f"map it from an output of a step, or read one of the tensors that exist: {sources}"
    if name in graph.read:
        index, inner = graph.read[name][0]
        label = _label(index, config.ensemble_scheduling.step[index])
        what = f"step {label} reads '{name}' for its input '{inner}', which is no input of the ensemble and is written by no step"
        return Finding(what + near, (*_STEP, index, "input_map", inner), hint)
    position = next(index for index, tensor in enumerate(config.output) if tensor.name == name)
    return Finding(f"the ensemble's output '{name}' is written by no step{near}", ("output", position, "name"), hint)


def _closest(name: str, known: Sequence[str]) -> str:
    folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else ""


def _written_twice(context: ModelContext) -> Iterator[Finding]:
    config = context.config
    graph = build_graph(config)
    for name, writers in graph.written.items():
        for index, inner in writers[1:]:
            first, _ = writers[0]
            label = _label(index, config.ensemble_scheduling.step[index])
            message = f"step {label} writes '{name}', which step {_label(first, config.ensemble_scheduling.step[first])} writes too"
            yield Finding(message, (*_STEP, index, "output_map", inner), "give one of the two another name")
        if name in graph.inputs and name:
            index, inner = writers[0]
            label = _label(index, config.ensemble_scheduling.step[index])
            message = f"step {label} writes '{name}', which is an input of the ensemble; Triton loads it, and requests are never answered"
            yield Finding(message, (*_STEP, index, "output_map", inner), "give the step's output another name", consequence=Consequence.FAILS)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG320",
        "mixed-ensemble-declaration",
        Consequence.REFUSED,
        'An ensemble has `platform: "ensemble"`, ensemble_scheduling, and no backend, instance_group, optimization or model_warmup.',
        "Platform and scheduling imply each other, and what only an executing model can have is refused (`ValidateModelConfig`, "
        "`ValidateEnsembleSchedulingConfig`, core/src/model_config_utils.cc). "
        "Without the platform the message is 'Could not determine backend', which misleads.",
        'platform: "ensemble"\ninstance_group [ { count: 2 } ]\nensemble_scheduling { ... }',
        'platform: "ensemble"\nensemble_scheduling { ... }',
        check=_declaration,
    ),
    Rule(
        "TG322",
        "incomplete-ensemble-step",
        Consequence.REFUSED,
        "An ensemble has steps, each with a model_name, an input_map and an output_map.",
        f"Triton refuses an ensemble in which one is missing {_FLOW}.",
        "ensemble_scheduling { step [ { model_version: -1 } ] }",
        'ensemble_scheduling { step [ { model_name: "a" model_version: -1 input_map { key: "x" value: "A" } output_map { key: "y" value: "Z" } } ] }',
        check=_steps,
    ),
    Rule(
        "TG323",
        "unconnected-ensemble-tensor",
        Consequence.REFUSED,
        "Every tensor of an ensemble is written (by a step, or as input) and read (by a step, or as output).",
        f"Triton refuses an input that is not used, an output that is not written, a tensor that no step makes and one that no step takes {_FLOW}. Names "
        "are compared by case. The keys of maps are "
        "the model's tensors, the values the ensemble's.",
        'output_map { key: "y" value: "scores" }  # and the next step: input_map { key: "x" value: "Scores" }',
        'output_map { key: "y" value: "scores" }  # and the next step: input_map { key: "x" value: "scores" }',
        check=_wiring,
    ),
    Rule(
        "TG324",
        "ensemble-tensor-written-twice",
        Consequence.REFUSED,
        "Every tensor of an ensemble is written once.",
        f"Two outputs of steps with one name are refused {_FLOW}. An input of the ensemble that a step writes again is loaded, and a request got no answer "
        "within a minute (tried on 24.10).",
        'step [ { output_map { key: "y" value: "Z" } }, { output_map { key: "y" value: "Z" } } ]',
        'step [ { output_map { key: "y" value: "M" } }, { output_map { key: "y" value: "Z" } } ]',
        check=_written_twice,
    ),
    *ensemble_steps.RULES,
    *ensemble_batches.RULES,
)
