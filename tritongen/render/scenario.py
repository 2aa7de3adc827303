"""The spec's scenario → a locustfile for plain Locust, as far as that can follow it. Pure.

Plain Locust is a closed loop: each user waits for its answer. A rate becomes a pace of each user, which holds while answers come in time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tritongen.spec import Spec
from tritongen.spec.scenarios import DEFAULT_RATE, RANDOM, Scenario
from tritongen.spec.sending import sending
from tritongen.spec.units import duration_text
from tritongen.templating import environment

_USERS = 8
_PACE = 5.0
"""Requests a second of one user: an answer may take 200 ms until the rate sinks."""


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
        loaded_models: names of models that the server loads at the start: those that are asked where the spec has no scenario, or one that names none.
    """
    scenario = _scenario(spec)
    run = scenario or Scenario(users=_USERS)
    names = tuple(run.models or ()) or tuple(loaded_models) or tuple(model.name for model in spec.models)
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
