"""What a load test is told to do: a value that travels to every process as JSON, and stands in the result."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.load.arrivals import Arrival, Stage, schedule, trace
from tritongen.sources import read_text
from tritongen.spec.traffic import Promises, Step, TrafficError

Arrivals = Literal["poisson", "constant", "trace"]

MOST_USERS = 100_000
"""Requests under way in a closed loop, of all processes together."""

_MOST_TRACE_BYTES = 100_000_000
"""Some ten million requests: each sender holds all of them in memory."""

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class ModelLoad:
    """What is sent to one model, and what it must keep.

    Attributes:
        model: its name.
        version: its version; empty for the server's choice.
        part: its part of all requests, in proportion to the other models'.
        batch_mix: rows of a request, with their parts of 1.
        shape_mix: sizes of inputs with variable dimensions by input, one entry for each combination that is mixed, with its part of 1.
        data: path of a folder, .npz or other file with inputs; `random` for seeded random values; empty for the samples, and random values for other inputs.
        samples: what the spec gives for inputs, by name: plain values, or the keys of its `samples` with the path of their files.
        slo: what must be kept.
        slo_from: where the promise was made, for reports; empty where none was.
    """

    model: str
    version: str = ""
    part: float = 1.0
    batch_mix: tuple[tuple[int, float], ...] = ((1, 1.0),)
    shape_mix: tuple[tuple[Mapping[str, Sequence[int]], float], ...] = ()
    data: str = ""
    samples: Mapping[str, Any] = field(default_factory=dict)
    slo: Promises = field(default_factory=Promises)
    slo_from: str = ""

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> ModelLoad:
        """What `dataclasses.asdict` made of one, after JSON."""
        batches = tuple((rows, part) for rows, part in data["batch_mix"])
        shapes = tuple((shapes, part) for shapes, part in data["shape_mix"])
        return cls(**{**data, "batch_mix": batches, "shape_mix": shapes, "slo": Promises(**data["slo"])})


@dataclass(frozen=True)
class LoadPlan:
    """One load test.

    Attributes:
        models: the models, with what is sent to each; requests are mixed by their parts.
        url: the server's address.
        scenario: the scenario of a spec that it is; empty for none.
        stages: the rates of all models together, warmup first; empty in a closed loop.
        users: requests under way in a closed loop; 0 in an open one.
        seconds: length of a closed loop, without its warmup.
        warmup_s: length of its warmup.
        arrivals: how an open loop's requests are spread.
        trace: path of a trace of arrivals.
        pool: how many different requests to each model are prepared.
        deadline_s: seconds after its scheduled instant at which a request is given up.
        most_under_way: requests under way at once in one process; what is due beyond that is missed.
        seed: of the arrivals, the mixes, the random inputs and the order of files.
        find_max: it is one run of a search for the highest rate.
    """

    models: tuple[ModelLoad, ...]
    url: str
    scenario: str = ""
    stages: tuple[Stage, ...] = ()
    users: int = 0
    seconds: float = 0.0
    warmup_s: float = 0.0
    arrivals: Arrivals = "poisson"
    trace: str = ""
    pool: int = 64
    deadline_s: float = 10.0
    most_under_way: int = 1000
    seed: int = 0
    find_max: bool = False

    @property
    def length_s(self) -> float:
        """Seconds of the whole run, the warmup included and the last answers not."""
        return sum(stage.seconds for stage in self.stages) if self.stages else self.warmup_s + self.seconds

    @property
    def begin_s(self) -> float:
        """Seconds of the warmup, after which the measured time begins."""
        return self.warmup_s if self.users else sum(stage.seconds for stage in self.stages if not stage.measured)

    @property
    def names(self) -> str:
        """The models, for people."""
        return ", ".join(load.model for load in self.models)

    @property
    def promises(self) -> bool:
        """Whether anything must be kept."""
        return any(load.slo for load in self.models)

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LoadPlan:
        """What `to_json` wrote."""
        data = json.loads(text)
        data["models"] = tuple(ModelLoad.from_plain(load) for load in data["models"])
        data["stages"] = tuple(Stage(**stage) for stage in data["stages"])
        return cls(**data)


def problem(message: str, hint: str, *, code: str = "TG420", model: str = "") -> InputError:
    """The error for an option that cannot be used."""
    return InputError([Diagnostic(code, message, hint=hint, model=model)])


def read(parse: Callable[[S], T], given: S) -> T:
    """What `spec.traffic` makes of an option, or of what a scenario says. Raises InputError (TG420)."""
    try:
        return parse(given)
    except TrafficError as error:
        raise problem(str(error), error.hint) from error


def staged(steps: Sequence[Step], warmup_s: float) -> tuple[Stage, ...]:
    """The stages of an open loop, with names for reports, and before them a warmup at the first rate; of a ramp from 0, at its mean."""
    stages = [
        Stage(step.seconds, step.rate, step.end_rate, f"{step.rate:g}/s" if step.rate == step.end_rate else f"{step.rate:g} to {step.end_rate:g}/s")
        for step in steps
    ]
    rate = steps[0].rate or steps[0].end_rate / 2
    return (*_warmup(warmup_s, rate), *stages)


def _warmup(seconds: float, rate: float) -> tuple[Stage, ...]:
    return (Stage(seconds, rate, rate, "warmup", measured=False),) if seconds > 0 else ()


def traced(seconds: float, warmup_s: float) -> tuple[Stage, ...]:
    """The stages of a trace, which has no rate of its own: 0 stands for it."""
    return (*_warmup(warmup_s, 0.0), Stage(seconds, 0.0, 0.0, "trace"))


def arrivals_of(plan: LoadPlan, share: int = 0, shares: int = 1, *, begin_s: float = 0.0) -> Iterator[Arrival]:
    """The requests of one of `shares` equal senders of an open loop, in order; a schedule's, but not a trace's, from `begin_s` on.

    Raises InputError (TG001 to TG003, TG420) for a trace that cannot be used; all of it is read at once, so that none breaks in the middle of a run.
    """
    if plan.arrivals != "trace":
        return schedule(plan.stages, plan.arrivals, seed=plan.seed, share=share, shares=shares, begin_s=begin_s)
    return itertools.islice(_traced(plan)[0], share, None, shares)


def shortened(plan: LoadPlan) -> LoadPlan:
    """The same; with a trace that is over before, only to the end of the second in which its last request is due, since a rate is of the time of its requests.

    Raises InputError as `arrivals_of` does.
    """
    if plan.arrivals != "trace":
        return plan
    found, later = _traced(plan)
    *before, measured = plan.stages
    last_s = found[-1].due_s - plan.begin_s
    if later or last_s < 0:
        return plan
    return dataclasses.replace(plan, stages=(*before, dataclasses.replace(measured, seconds=min(measured.seconds, math.floor(last_s) + 1.0))))


def beyond(plan: LoadPlan) -> int:
    """How many requests of a trace lie beyond the end of the run, and are not sent. Raises InputError as `arrivals_of` does."""
    return _traced(plan)[1] if plan.arrivals == "trace" else 0


def _traced(plan: LoadPlan) -> tuple[list[Arrival], int]:
    """A trace's requests within the run, and how many lie beyond. Raises InputError: TG001 to TG003 for what is no readable text, TG420."""
    hint = "give a file with seconds from the beginning of the run, one a line, ascending"
    lines = read_text(Path(plan.trace), _MOST_TRACE_BYTES).text.splitlines()
    try:
        found, later = trace(lines, plan.stages)
    except ValueError as error:
        raise problem(f"{plan.trace}: {error}", hint) from error
    if not found:
        what = f"all {later} requests of the trace {plan.trace} lie beyond the {plan.length_s:g} s of the run" if later else f"{plan.trace} holds no time"
        raise problem(f"{what}: nothing would be sent", hint)
    return found, later


def settings(plan: LoadPlan) -> dict[str, Any]:
    """The plan as plain data, for reports."""
    found: dict[str, Any] = json.loads(plan.to_json())
    return found
