"""What a load test is told to do: a value that travels to every process as JSON, and stands in the result."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.load.arrivals import Stage
from tritongen.spec.units import parse_duration

Arrivals = Literal["poisson", "constant", "trace"]
MOST_RATE = 1_000_000.0


@dataclass(frozen=True)
class Slo:
    """What a run must keep. `percentiles` maps `p99` and the like to milliseconds; `error_rate` is a part of 1."""

    percentiles: Mapping[str, float] = field(default_factory=dict)
    error_rate: float | None = None


@dataclass(frozen=True)
class LoadPlan:
    """One load test.

    Attributes:
        model: the model's name.
        version: its version; empty for the server's choice.
        url: the server's address.
        stages: the rates, warmup first; empty in a closed loop.
        users: requests under way in a closed loop; 0 in an open one.
        seconds: length of a closed loop, without its warmup.
        warmup_s: length of its warmup.
        arrivals: how an open loop's requests are spread.
        trace: path of a trace of arrivals.
        batch_mix: rows of a request, with their parts of 1.
        shape_mix: sizes of inputs with variable dimensions by input, one entry for each shape that is mixed, with its part of 1.
        data: `random`, or the path of a folder or .npz file with arrays by input name.
        pool: how many different requests are prepared.
        deadline_s: seconds after its scheduled instant at which a request is given up.
        most_under_way: requests under way at once in one process; what is due beyond that is missed.
        seed: of the arrivals and the random inputs.
        slo: what must be kept.
    """

    model: str
    url: str
    version: str = ""
    stages: tuple[Stage, ...] = ()
    users: int = 0
    seconds: float = 0.0
    warmup_s: float = 0.0
    arrivals: Arrivals = "poisson"
    trace: str = ""
    batch_mix: tuple[tuple[int, float], ...] = ((1, 1.0),)
    shape_mix: tuple[tuple[Mapping[str, Sequence[int]], float], ...] = ()
    data: str = "random"
    pool: int = 64
    deadline_s: float = 10.0
    most_under_way: int = 1000
    seed: int = 0
    slo: Slo = field(default_factory=Slo)

    @property
    def length_s(self) -> float:
        """Seconds of the whole run, the warmup included and the last answers not."""
        return sum(stage.seconds for stage in self.stages) if self.stages else self.warmup_s + self.seconds

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LoadPlan:
        """What `to_json` wrote."""
        data = json.loads(text)
        data["stages"] = tuple(Stage(**stage) for stage in data["stages"])
        data["batch_mix"] = tuple((rows, part) for rows, part in data["batch_mix"])
        data["shape_mix"] = tuple((shapes, part) for shapes, part in data["shape_mix"])
        data["slo"] = Slo(**data["slo"])
        return cls(**data)


def problem(message: str, hint: str) -> InputError:
    """The error for an option that cannot be used."""
    return InputError([Diagnostic("TG420", message, hint=hint)])


def parse_stages(text: str, warmup_s: float) -> tuple[Stage, ...]:
    """Stages such as `100:30s,100-400:1m,400:30s`: a rate, or a rate that changes, and for how long. Raises InputError (TG420)."""
    hint = "write RATE:DURATION, or FROM-TO:DURATION for a ramp, with commas between, such as 100:30s,100-400:1m"
    stages: list[Stage] = []
    for part in text.split(","):
        rates, _, duration = part.strip().partition(":")
        first, _, second = rates.partition("-")
        try:
            begin, end = float(first), float(second or first)
            seconds = parse_duration(duration) / 1e6
        except ValueError as error:
            raise problem(f"'{part.strip()[:60]}' is no stage: {error}", hint) from error
        if not (0 <= begin <= MOST_RATE and 0 <= end <= MOST_RATE and begin + end > 0) or seconds <= 0:
            raise problem(f"'{part.strip()[:60]}' is no stage: rates are above 0 and up to {MOST_RATE:.0f}, and it takes some time", hint)
        name = f"{begin:g}/s" if begin == end else f"{begin:g} to {end:g}/s"
        stages.append(Stage(seconds, begin, end, name))
    if warmup_s > 0:
        stages.insert(0, Stage(warmup_s, stages[0].rate or stages[0].end_rate, stages[0].rate or stages[0].end_rate, "warmup", measured=False))
    return tuple(stages)


def parse_mix(text: str) -> tuple[tuple[str, float], ...]:
    """A mix such as `1:70%,8:30%`; parts may be left out where there is one entry, and need not make 100 %. Raises InputError (TG420)."""
    hint = "write VALUE:PART%, with commas between, such as 1:70%,8:30%"
    entries = []
    for entry in text.split(","):
        value, _, part = entry.strip().partition(":")
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%?", part) if part else None
        if not value or (part and match is None) or (not part and "," in text):
            raise problem(f"'{entry.strip()[:60]}' is no part of a mix", hint)
        entries.append((value, Fraction(match[1]) if match else Fraction(1)))
    total = sum((part for _, part in entries), Fraction(0))
    if not total:
        raise problem(f"the parts of '{text[:60]}' make nothing", hint)
    return tuple((value, float(part / total)) for value, part in entries)


def parse_slo(text: str) -> Slo:
    """An SLO such as `p99=20ms,error_rate=0.1%`. Raises InputError (TG420)."""
    hint = "write p99=20ms, p99.9=50ms, max=1s, error_rate=0.1%, with commas between"
    percentiles: dict[str, float] = {}
    error_rate = None
    for entry in text.split(","):
        name, _, value = entry.strip().partition("=")
        try:
            if name == "error_rate":
                error_rate = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
                if not 0 <= error_rate <= 1:
                    raise ValueError("it is between 0 and 100 %")
            elif name in ("mean", "max") or (re.fullmatch(r"p[0-9]{1,2}(\.[0-9]{1,3})?", name) and float(name[1:]) > 0):
                percentiles[name] = parse_duration(value) / 1000
            else:
                raise ValueError("there is no such measure")
        except ValueError as error:
            raise problem(f"'{entry.strip()[:60]}' is no part of an SLO: {error}", hint) from error
    return Slo(percentiles, error_rate)


def settings(plan: LoadPlan) -> dict[str, Any]:
    """The plan as plain data, for reports."""
    found: dict[str, Any] = json.loads(plan.to_json())
    return found
