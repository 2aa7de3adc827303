"""The spec's scenario → a locustfile for plain Locust, as far as that can follow it. Pure.

Plain Locust is a closed loop: each user waits for its answer. A rate becomes a pace of each user, which holds while answers come in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tritongen.render.findings import Findings, Key
from tritongen.render.sequences import takes_sequences
from tritongen.spec import Spec
from tritongen.spec.scenarios import DEFAULT_RATE, RANDOM, Scenario, Traffic
from tritongen.spec.sending import sending
from tritongen.spec.units import duration_text
from tritongen.templating import environment

_USERS = 8
_PACE = 5.0
"""Requests a second of one user: an answer may take 200 ms until the rate sinks."""
_MOST_USERS = 10_000
"""A worker is one process on one core; more users than this need dozens of them."""


@dataclass(frozen=True)
class LocustRun:
    """What Locust is told beside the file.

    Attributes:
        users: users of all workers together.
        seconds: length of the run, as Locust reads it; empty where it runs until somebody stops it.
    """

    users: int
    seconds: str


def chosen_scenario(spec: Spec) -> str:
    """The name of the scenario that Locust follows: the one that `deploy.load` names, else the first; empty where the spec has none."""
    return spec.deploy.load.scenario or next(iter(spec.load.scenarios if spec.load else ()), "")


def locust_run(spec: Spec) -> LocustRun:
    """How many users there are by default, and for how long."""
    scenario = _scenario(spec)
    if scenario is None:
        return LocustRun(_USERS, "")
    length_s = sum(step.seconds for step in scenario.stages) if scenario.stages else scenario.duration_us / 1e6
    return LocustRun(_users(scenario), f"{math.ceil(length_s)}s")


def locustfile(spec: Spec, *, spec_name: str, loaded_models: Sequence[str]) -> str:
    """The text of the file.

    Args:
        spec: the spec.
        spec_name: the spec's file, for people to read.
        loaded_models: names of models that the server loads at the start: where the spec has no scenario, or one that names none, those of them are asked that
            answer single requests.
    """
    scenario = _scenario(spec)
    run = scenario or Scenario(users=_USERS)
    names = _asked(spec, loaded_models)
    asked = [(model.name, sending(run, model)) for model in spec.models if model.name in names]
    users = _users(run)
    rate = None if run.users else _rate(run)
    return (
        environment()
        .get_template("scenario.py.j2")
        .render(
            asked=asked,
            deadline_s=run.deadline_us / 1e6,
            has_files=any(what.data not in ("", RANDOM) for _, what in asked),
            is_trace=run.arrivals[0] == "trace",
            pace=None if rate is None else rate / users,
            pacing="" if rate is None else "random_throughput" if run.arrivals[0] == "poisson" else "constant_throughput",
            pool=run.pool,
            protocol=run.protocol,
            rate=rate,
            run=locust_run(spec),
            scenario=chosen_scenario(spec),
            seed=run.seed,
            spec=spec_name,
            stages=[_stage(step.rate, step.end_rate, step.seconds) for step in run.stages or ()],
            users=users,
        )
    )


def judge_locust(spec: Spec, loaded_models: Sequence[str], findings: Findings) -> None:
    """What a deployment's Locust cannot do as the scenario has it (TG440). `loaded_models` as in `locustfile`; `findings`: for keys of the whole spec."""
    _judge_sequences(spec, loaded_models, findings)
    scenario = _scenario(spec)
    if scenario is None:
        return
    here: Key = ("load", "scenarios", chosen_scenario(spec))
    for name in scenario.models or () if loaded_models else ():
        if name not in loaded_models:
            findings.warning(
                "TG440",
                (*here, "models", name),
                f"Locust asks model '{name}', which the server does not load at its start (server.load_models)",
                consequence="its requests fail until somebody loads the model",
                hint="add it to load_models, or take it out of the scenario",
            )
    if _users(scenario) > _MOST_USERS:
        findings.warning(
            "TG440",
            (*here, next(key for key in ("users", "stages", "rate") if getattr(scenario, key) is not None)),
            f"Locust would start {_users(scenario):,} users for it: one sends a request every {1 / _PACE:g} s"
            if scenario.users is None
            else f"Locust would start {scenario.users:,} users",
            consequence="each of its workers is one process on one core: they are late, and what is sent is less than the scenario says",
            hint="set LOCUST_USERS for docker compose, or send with `tritongen load` from several machines (docs/load.md)",
        )
    for key, what in _unfollowed(scenario):
        findings.advice(
            "TG440", (*here, *key), f"Locust in the deployment {what}", hint="nothing has to be done: `tritongen load` follows the scenario as it is"
        )


def _named(spec: Spec) -> Sequence[str]:
    """The names of the models that the scenario names; none where it, or the spec, leaves that open."""
    scenario = _scenario(spec)
    return tuple(scenario.models or ()) if scenario else ()


def _asked(spec: Spec, loaded_models: Sequence[str]) -> Sequence[str]:
    """The names of the models that are asked. One that takes sequences is so only where the scenario names it, or where there is no other."""
    there = [model for model in spec.models if not loaded_models or model.name in loaded_models]
    return _named(spec) or [model.name for model in there if not takes_sequences(model)] or [model.name for model in there]


def _judge_sequences(spec: Spec, loaded_models: Sequence[str], findings: Findings) -> None:
    asked = _asked(spec, loaded_models)
    left_out = () if _named(spec) else loaded_models
    for index, model in enumerate(spec.models):
        if takes_sequences(model) and model.name in (*asked, *left_out):
            findings.advice(
                "TG440",
                ("models", index, "config", "sequence_batching"),
                f"Locust in the deployment {'asks' if model.name in asked else 'does not ask'} model '{model.name}', which takes requests of a sequence only",
                consequence="each request of Locust's stands alone, and is refused" if model.name in asked else "",
                hint="write a locustfile of your own in loadtests/, with self.client.sequence() of a TritonGrpcUser",
            )


def _unfollowed(scenario: Scenario) -> Iterator[tuple[Key, str]]:
    """(key of the scenario, what is sent instead) of all that plain Locust has no way to send."""
    if scenario.arrivals[0] == "trace":
        yield ("arrivals",), f"does not follow the trace: it sends {DEFAULT_RATE:g} requests a second"
    if scenario.stages:
        yield ("stages",), f"does not follow the stages: it sends the highest rate, {_rate(scenario):g} requests a second"
    if scenario.warmup_us and "warmup_us" in scenario.model_fields_set:
        yield ("warmup",), "knows no warmup: it counts all requests from the first one on"
    if scenario.slo is not None:
        yield ("slo",), "says no verdict on an slo"
    places: list[tuple[Key, Traffic]] = [((), scenario), *((("models", name), traffic) for name, traffic in (scenario.models or {}).items())]
    for place, traffic in places:
        if traffic.data not in (None, RANDOM):
            yield (*place, "data"), "has no files of data in its image: it sends random values, or those of the models' samples"


def _scenario(spec: Spec) -> Scenario | None:
    return spec.load.scenarios.get(chosen_scenario(spec)) if spec.load else None


def _rate(scenario: Scenario) -> float:
    """Requests a second of all models together; where stages change it, the highest."""
    return max(rate for step in scenario.stages for rate in (step.rate, step.end_rate)) if scenario.stages else scenario.rate or DEFAULT_RATE


def _users(scenario: Scenario) -> int:
    return scenario.users or max(1, math.ceil(_rate(scenario) / _PACE))


def _stage(rate: float, end_rate: float, seconds: float) -> str:
    change = f"{rate:g}" if rate == end_rate else f"{rate:g} to {end_rate:g}"
    return f"{change} a second for {duration_text(round(seconds * 1e6))}"
