"""A spec's scenario, or a model's name, with the options of the command line → the plan of a load test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.load.plan import MOST_USERS, Arrivals, LoadPlan, ModelLoad, problem, read, staged, traced
from tritongen.spec import LoadedSpec, ModelSpec, load_spec
from tritongen.spec.paths import expand
from tritongen.spec.samples import SampleFiles
from tritongen.spec.scenarios import DEFAULT_RATE, RANDOM, ModelTraffic, Scenario, beside_arrivals
from tritongen.spec.sending import sending
from tritongen.spec.slo import Slo
from tritongen.spec.traffic import Promises, Step, combined

Given = Mapping[str, Any]
"""Values of options that were given, by the name of the field of `Scenario` that each overrides; paths are relative to the current folder."""

_LOOPS = ("rate", "users", "stages")
_OWN = ("batch_mix", "shape_mix", "data", "slo")
_URLS = {"grpc": "grpc://127.0.0.1:8001", "http": "http://127.0.0.1:8000"}


def plan_for_model(name: str, given: Given, *, url: str = "") -> LoadPlan:
    """The load test of one model of which only the name is known. Raises InputError (TG420)."""
    scenario = _overridden(Scenario(), given)
    slo = scenario.slo or Promises()
    load = ModelLoad(
        name,
        batch_mix=scenario.batch_mix or ((1, 1.0),),
        shape_mix=read(combined, scenario.shape_mix or {}),
        data=scenario.data or "",
        slo=slo,
        slo_from="--slo" if slo else "",
    )
    return _plan(scenario, (load,), url)


def plan_for_spec(path: Path, given: Given, *, scenario: str = "", model: str = "", url: str = "") -> LoadPlan:
    """The load test of a scenario of a spec, or of one of its models.

    Args:
        path: the spec.
        given: what overrides the scenario.
        scenario: its name; empty for the only one.
        model: in place of a scenario, the model that is sent to as the options say.
        url: the server's address; empty for this machine, over the scenario's protocol.

    Raises SpecError for what is wrong with the spec, and InputError (TG420) where it does not say what is to be sent.
    """
    loaded = load_spec(path)
    name = "" if model else _chosen(loaded, scenario)
    own = _resolved(loaded.spec.load.scenarios[name], loaded.folder) if name and loaded.spec.load else Scenario(models=_only(loaded, model))
    run = _overridden(own, given)
    names = list(run.models) if run.models is not None else [each.name for each in loaded.spec.models]
    if len(names) > 1 and (several := [option for option in ("shape_mix", "data") if given.get(option) not in (None, RANDOM)]):
        options = " and ".join(f"--{option.replace('_', '-')}" for option in several)
        raise problem(f"{options}: inputs are those of one model, and the scenario has {len(names)}", "write it in the spec, under the scenario's models")
    return _plan(run, tuple(_load(loaded, each, run, name, given) for each in names), url, name)


def _chosen(loaded: LoadedSpec, wanted: str) -> str:
    """The name of the scenario; empty where the spec has none and none was asked for."""
    names = list(loaded.spec.load.scenarios) if loaded.spec.load else []
    listed = ", ".join(names)
    if wanted and wanted not in names:
        hint = f"its scenarios are {listed}" if names else "add load: {scenarios: {steady: {rate: 200, duration: 60s}}}"
        raise problem(f"{loaded.path} has no scenario {wanted[:60]!r}", hint)
    if len(names) > 1 and not wanted:
        raise problem(f"{loaded.path} has {len(names)} scenarios: {listed}", f"choose one: --scenario {names[0]}")
    return wanted or "".join(names)


def _only(loaded: LoadedSpec, wanted: str) -> dict[str, ModelTraffic]:
    """The model that was asked for, or the only one."""
    names = [model.name for model in loaded.spec.models]
    listed = ", ".join(names)
    if wanted and wanted not in names:
        raise problem(f"{loaded.path} has no model {wanted[:60]!r}", f"its models are {listed}")
    if len(names) > 1 and not wanted:
        hint = f"choose one (--model {names[0]}), or add a scenario to the spec, in which they are mixed"
        raise problem(f"{loaded.path} has {len(names)} models and no scenario: {listed}", hint)
    return {wanted or names[0]: ModelTraffic()}


def _resolved(scenario: Scenario, folder: Path) -> Scenario:
    """The same with its paths relative to the current folder."""
    kind, trace = scenario.arrivals
    models = {name: own.model_copy(update={"data": _path(own.data, folder)}) for name, own in (scenario.models or {}).items()}
    return scenario.model_copy(
        update={"arrivals": (kind, _path(trace, folder) or ""), "data": _path(scenario.data, folder), "models": models or scenario.models}
    )


def _path(text: str | None, folder: Path) -> str | None:
    if not text or text == RANDOM:
        return text
    path = expand(text, folder)
    if isinstance(path, Path):
        return str(path)
    raise problem(*path)


def _overridden(scenario: Scenario, given: Given) -> Scenario:
    """The scenario with the values of options in place of its own, and of those that its models have."""
    loop = next((name for name in _LOOPS if given.get(name) is not None), "")
    dropped = _dropped(scenario, given, loop)
    own = dict.fromkeys(name for name in _OWN if name in given)
    models = {name: each.model_copy(update=own) for name, each in scenario.models.items()} if scenario.models is not None else None
    run = scenario.model_copy(update={**dropped, **given, "models": models})
    if run.stages is not None and "duration_us" in given:
        raise problem("--duration is given, and stages have their own durations", "leave it out, or write the durations in the stages")
    return run


def _dropped(scenario: Scenario, given: Given, loop: str) -> dict[str, Any]:
    """What options take from a scenario beside what they replace. Raises InputError (TG420) for options that cannot both be meant."""
    if "arrivals" not in given:
        clash = loop and beside_arrivals(loop, scenario.arrivals[0])
        return {**(dict.fromkeys(_LOOPS) if loop else {}), **({"arrivals": Scenario().arrivals} if clash else {})}
    kind = given["arrivals"][0]
    own = "users" if scenario.users and "users" not in given and kind != "trace" else ""
    if wrong := beside_arrivals(loop or own, kind) if loop or own else "":
        raise problem(wrong, "leave one of them out" if loop else "leave out --arrivals, or give --rate as well")
    return dict.fromkeys(_LOOPS) if loop or kind == "trace" else {}


def _load(loaded: LoadedSpec, name: str, run: Scenario, scenario: str, given: Given) -> ModelLoad:
    """What is sent to one model: its own keys before the scenario's, and these before those of the spec's model."""
    index = next(index for index, model in enumerate(loaded.spec.models) if model.name == name)
    model, own = loaded.spec.models[index], (run.models or {}).get(name) or ModelTraffic()
    sent = read(lambda each: sending(run, each), model)
    slo, origin = _slo(loaded, index, run, own, scenario, given)
    return ModelLoad(
        name,
        part=sent.part,
        batch_mix=sent.batch_mix,
        shape_mix=sent.shape_mix,
        data=sent.data,
        samples=_samples(loaded, model),
        slo=slo,
        slo_from=origin,
    )


def _slo(loaded: LoadedSpec, index: int, run: Scenario, own: ModelTraffic, scenario: str, given: Given) -> tuple[Promises, str]:
    """What a model must keep, and where that was written."""
    model = loaded.spec.models[index]
    if run.slo is not None and "slo" in given:
        return run.slo, "--slo"
    for promises, place in ((own.slo, ("load", "scenarios", scenario, "models", model.name, "slo")), (run.slo, ("load", "scenarios", scenario, "slo"))):
        if promises is not None:
            return promises, f"scenario {scenario} ({loaded.locate(place)})"
    return (_promises(model.slo), f"slo of {model.name} ({loaded.locate(('models', index, 'slo'))})") if model.slo is not None else (Promises(), "")


def _promises(slo: Slo) -> Promises:
    """The promise of a model, in milliseconds."""
    return Promises({name: limit_us / 1000 for name, limit_us in slo.times_us.items()}, slo.error_rate)


def _samples(loaded: LoadedSpec, model: ModelSpec) -> dict[str, Any]:
    """The samples of a model as the plan has them."""
    found: dict[str, Any] = {}
    for name, value in model.samples.items():
        if isinstance(value, SampleFiles):
            found[name] = {**value.model_dump(mode="json", exclude_none=True), "files": _path(value.files, loaded.folder)}
        else:
            found[name] = {"files": _path(value, loaded.folder)} if isinstance(value, str) and value.endswith(".npy") else value
    return found


def _check_promises(models: Sequence[ModelLoad], deadline_s: float) -> None:
    """Raise InputError (TG420) for every promise that could not be judged: an answer that comes after the deadline is not waited for."""
    problems = [
        Diagnostic(
            "TG420",
            f"{name} within {limit / 1000:g} s is promised, and a request is given up after {deadline_s:g} s: whether the promise is kept would not be seen",
            hint=f"give up later, such as --deadline {2 * limit / 1000:g}s (deadline in a scenario), or promise less",
            model=load.model,
        )
        for load in models
        for name, limit in load.slo.percentiles.items()
        if limit >= deadline_s * 1000
    ]
    if problems:
        raise InputError(problems)


def _plan(run: Scenario, models: tuple[ModelLoad, ...], url: str, name: str = "") -> LoadPlan:
    _check_promises(models, run.deadline_us / 1e6)
    kind, trace = run.arrivals
    arrivals: Arrivals = "trace" if kind == "trace" else "constant" if kind == "constant" else "poisson"
    # What a warmup would leave out of a trace is a part of what it was recorded for.
    warmup_us = run.warmup_us if kind != "trace" or "warmup_us" in run.model_fields_set else 0
    seconds, warmup_s = run.duration_us / 1e6, warmup_us / 1e6
    rate = run.rate or DEFAULT_RATE
    if (run.users or 0) > MOST_USERS:
        raise problem(f"{run.users} users are more than the {MOST_USERS:,} that a load test can have", "give fewer, or a rate: an open loop needs no users")
    return LoadPlan(
        models,
        url or _URLS[run.protocol],
        scenario=name,
        stages=() if run.users else traced(seconds, warmup_s) if kind == "trace" else staged(run.stages or (Step(rate, rate, seconds),), warmup_s),
        users=run.users or 0,
        seconds=seconds if run.users else 0.0,
        warmup_s=warmup_s if run.users else 0.0,
        arrivals=arrivals,
        trace=trace,
        pool=run.pool,
        deadline_s=run.deadline_us / 1e6,
        seed=run.seed,
    )
