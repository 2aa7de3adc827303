"""Rules: ensembles against the models of their steps, in the same repository.

As `ValidateEnsembleConfig` does it (core/src/ensemble_scheduler/ensemble_utils.cc), and the dependency graph of core/src/model_repository_manager.cc. Of a
step's model the interface is taken that it is loaded with; where that is not known, nothing is said.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from tritongen.rules import ensemble_types
from tritongen.rules.completed import Interface, interface
from tritongen.rules.context import ModelContext
from tritongen.rules.ensemble_graph import flow
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.rules.server_features import decoupled_models

_STEP: Key = ("ensemble_scheduling", "step")
_NAMED = 3
"""How many models a hint names."""

Models = Mapping[str, ModelContext]


def known_models(contexts: Sequence[ModelContext]) -> Models:
    """The models that a step's name stands for; without names that stand for several."""
    by_name: dict[str, list[ModelContext]] = {}
    for context in contexts:
        by_name.setdefault(context.name, []).append(context)
    return {name: owners[0] for name, owners in by_name.items() if len(owners) == 1}


def ensembles(contexts: Sequence[ModelContext]) -> Iterator[ModelContext]:
    """The models that are ensembles, once each."""
    known = known_models(contexts)
    return (context for context in known.values() if context.config.HasField("ensemble_scheduling"))


def _missing(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    names, models = {context.name for context in contexts}, known_models(contexts)
    for context in ensembles(contexts):
        if context.folder is None or not context.parses:
            continue
        for index, step in enumerate(context.config.ensemble_scheduling.step):
            if step.model_name and step.model_name not in names:
                message = f"step {index + 1} is model '{step.model_name}', which is not in the repository"
                yield Finding(message, (*_STEP, index, "model_name"), _other_model(step.model_name, names - {context.name}), model=context.name)
            elif reason := _unavailable(models.get(step.model_name)):
                message = f"step {index + 1} is model '{step.model_name}', which Triton cannot take in: {reason}"
                yield Finding(message, (*_STEP, index, "model_name"), f"mend model '{step.model_name}'", model=context.name)
        yield from _circles(context, models)


def _unavailable(model: ModelContext | None) -> str:
    """Why Triton has no such model, though its folder is there; empty where it has. Of a model that does not load for another reason it says so later."""
    if model is None or model.folder is None:
        return ""
    if not model.parses:
        unread = "its config.pbtxt cannot be read" if model.folder.config_problem else "its config.pbtxt does not parse"
        return "" if model.folder.config_is_out_of_reach else unread
    return "its config has another name than its folder" if model.is_misnamed else ""


def _other_model(name: str, others: Set[str]) -> str:
    """What to write for a model that is not there: the one that was meant, or the few whose names come nearest."""
    if close := difflib.get_close_matches(name, sorted(others), n=1):
        return f'write `model_name: "{close[0]}"`'
    nearest = difflib.get_close_matches(name, sorted(others), n=_NAMED, cutoff=0)
    if not nearest:
        return "add the model"
    more = f" or another of the {len(others)} models" if len(others) > len(nearest) else ""
    return f"add the model, or name {', '.join(nearest)}{more}"


def _circles(context: ModelContext, models: Models) -> Iterator[Finding]:
    for index, step in enumerate(context.config.ensemble_scheduling.step):
        way = _way_to(step.model_name, context.name, models, ())
        if way:
            message = f"step {index + 1} leads back to the ensemble itself: {' -> '.join((context.name, *way))}"
            yield Finding(message, (*_STEP, index, "model_name"), "an ensemble cannot be a step of itself; break the circle", model=context.name)


def _way_to(name: str, target: str, models: Models, passed: tuple[str, ...]) -> tuple[str, ...]:
    """The models from `name` to `target`, along steps; empty where there is no way."""
    if name == target:
        return (*passed, name)
    if name not in models or name in passed:
        return ()
    for step in models[name].config.ensemble_scheduling.step:
        way = _way_to(step.model_name, target, models, (*passed, name))
        if way:
            return way
    return ()


def _versions(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    models = known_models(contexts)
    for context in ensembles(contexts):
        for index, step in enumerate(context.config.ensemble_scheduling.step):
            finding = _version(step, models.get(step.model_name), (*_STEP, index))
            if finding is not None:
                message, hint, consequence = finding
                yield Finding(
                    f"step {index + 1} ('{step.model_name}') {message}", (*_STEP, index, "model_version"), hint, consequence=consequence, model=context.name
                )


def _version(step: Any, model: ModelContext | None, key: Key) -> tuple[str, str, Consequence | None] | None:
    wanted = step.model_version
    hint = "write `model_version: -1` for the latest one"
    if wanted == -1:
        return None
    said = "asks for version 0, as a step without model_version does (the latest is -1)" if wanted == 0 else f"asks for version {wanted}"
    if model is None or model.folder is None:
        # A folder named 0 can be a version, though nobody has one.
        return (f"{said}; it is refused unless the model has a folder 0", hint, Consequence.MISBEHAVES) if wanted == 0 and step.model_name else None
    loaded = sorted(model.versions.loaded)
    if not loaded or wanted in loaded:
        return None
    return f"{said}, which is not loaded; loaded are: {', '.join(map(str, loaded))}", hint, None


def _mappings(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    models = known_models(contexts)
    for context in ensembles(contexts):
        for index, step in enumerate(context.config.ensemble_scheduling.step):
            model = models.get(step.model_name)
            side = interface(model) if model is not None else None
            if side is not None and step.input_map and step.output_map:
                yield from _mapping(context, index, step, side)


def _mapping(context: ModelContext, index: int, step: Any, side: Interface) -> Iterator[Finding]:
    missing = [tensor.name for tensor in side.inputs if not tensor.optional and tensor.name not in step.input_map]
    for kind, tensors, mapped in (("input", side.inputs, step.input_map), ("output", side.outputs, step.output_map)):
        names = [tensor.name for tensor in tensors]
        for inner in sorted(mapped):
            if inner in names:
                continue
            free = [name for name in names if name not in mapped]
            close = _closest(inner, free)
            if close in missing and kind == "input":
                missing.remove(close)
            hint = f'write `key: "{close}"`' if close else f"keys of {kind}_map are the model's {kind}s: {', '.join(names) or 'none'}"
            if mapped[inner] in names and inner not in names and not close:
                hint += f'; key and value may be exchanged: write key: "{mapped[inner]}" value: "{inner}"'
            message = f"step {index + 1} maps '{inner}', which is no {kind} of model '{step.model_name}'"
            yield Finding(message, (*_STEP, index, f"{kind}_map", inner), hint, model=context.name)
    for name in missing:
        message = f"step {index + 1} maps nothing to '{name}', an input of model '{step.model_name}'"
        yield Finding(message, (*_STEP, index), f'write `input_map {{ key: "{name}" value: "<tensor of the ensemble>" }}`', model=context.name)


def _closest(name: str, known: Sequence[str]) -> str:
    folded = {other.lower(): other for other in known}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else known[0] if len(known) == 1 else ""


def _decoupled(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    decoupled = decoupled_models(contexts)
    for context in ensembles(contexts):
        yield from _mixed(context, lambda name: name in decoupled)


def _mixed(context: ModelContext, decoupled: Callable[[str], bool]) -> Iterator[Finding]:
    """Steps (and the ensemble's outputs) that bring together tensors of different decoupled origins: each decoupled step starts a new stream of its own."""
    config = context.config
    steps = config.ensemble_scheduling.step
    origin: dict[str, int] = {}
    for name, index in flow(config):
        if index is None:
            origin[name] = -1
        else:
            inherited = [origin[tensor] for tensor in steps[index].input_map.values()]
            origin[name] = index if decoupled(steps[index].model_name) else max(inherited, default=-1)
    gathered: list[tuple[str, Key, list[str]]] = [
        (f"step {index + 1} ('{step.model_name}')", (*_STEP, index, "input_map"), sorted(step.input_map.values())) for index, step in enumerate(steps)
    ]
    gathered.append(("the ensemble's answer", ("output",), [tensor.name for tensor in config.output]))
    for label, key, names in gathered:
        origins = {origin[name]: name for name in names if name in origin}
        if len(origins) > 1:
            parts = ", ".join(f"'{name}' from {_origin(steps, index)}" for index, name in sorted(origins.items()))
            message = f"{label} brings together tensors of different streams: {parts}"
            hint = "a decoupled step answers any number of times, so all inputs must come from that one step; pass the others through it"
            yield Finding(message, key, hint, model=context.name)
            return


def _origin(steps: Any, index: int) -> str:
    return "the request" if index < 0 else f"the decoupled step {index + 1} ('{steps[index].model_name}')"


_WHERE = "core/src/ensemble_scheduler/ensemble_utils.cc"

RULES: tuple[Rule, ...] = (
    Rule(
        "TG321",
        "mixed-decoupled-streams",
        Consequence.REFUSED,
        "All inputs of a step, and all outputs of an ensemble, come from the same decoupled step, or none of them from one.",
        f"'receives inputs originated from different decoupled models' ({_WHERE}). An ensemble input beside the output of a decoupled step is such a mix "
        "too (tried on 24.10), and an ensemble with a decoupled "
        "step is decoupled itself.",
        'step [ { model_name: "streams" input_map { key: "x" value: "A" } output_map { key: "y" value: "M" } },\n'
        '       { model_name: "joins" input_map { key: "x" value: "M" } input_map { key: "w" value: "A" } output_map { key: "y" value: "Z" } } ]',
        'step [ { model_name: "streams" input_map { key: "x" value: "A" } output_map { key: "y" value: "M" } },\n'
        '       { model_name: "joins" input_map { key: "x" value: "M" } output_map { key: "y" value: "Z" } } ]',
        check_all=_decoupled,
    ),
    Rule(
        "TG325",
        "missing-step-model",
        Consequence.REFUSED,
        "The model of every step is in the repository, with a config that parses and has its name, and is not the ensemble itself.",
        "'contains models that are not available or ambiguous', and 'circular dependency between ensembles' (core/src/model_repository_manager.cc; tried on "
        "24.10). The other models stay loaded.",
        'step [ { model_name: "resnet" ... } ]  # and no folder resnet',
        'step [ { model_name: "resnet50" ... } ]  # and a folder resnet50',
        check_all=_missing,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG326",
        "step-version-not-loaded",
        Consequence.REFUSED,
        "The version that a step asks for is loaded; -1 is the latest.",
        "An absent model_version is 0, and 0 is a version number like any other: 'depends on ... whose required version 0 is not loaded' (tried on 24.10; "
        "triton-inference-server/server issue 5474).",
        'step [ { model_name: "a" input_map { ... } output_map { ... } } ]',
        'step [ { model_name: "a" model_version: -1 input_map { ... } output_map { ... } } ]',
        check_all=_versions,
    ),
    Rule(
        "TG327",
        "unmapped-step-tensor",
        Consequence.REFUSED,
        "A step maps every input of its model that is not optional, and nothing that the model does not have.",
        f"Keys of input_map and output_map are the model's names, values the ensemble's ({_WHERE}). Control tensors and batch_input targets cannot be "
        "mapped; outputs may be left out.",
        'input_map { key: "image" value: "x" }  # of a model whose input is x',
        'input_map { key: "x" value: "image" }',
        check_all=_mappings,
    ),
    *ensemble_types.RULES,
)
