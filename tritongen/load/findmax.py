"""The highest rate that keeps an SLO: doubling until it breaks, then bisection. A rate is kept only where its tail does not grow while it is sent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tritongen.errors import TritongenError
from tritongen.load.plan import LoadPlan, problem, staged
from tritongen.load.recorder import Second
from tritongen.load.result import LoadResult
from tritongen.load.verdict import FEWEST_BEYOND, is_thin, judged
from tritongen.spec.traffic import MOST_RATE, Promises, Step

_PRECISION = 1.05
MOST_RATES = 24
FEWEST_RUNS = 2 + math.ceil(math.log2(math.log(2) / math.log(_PRECISION)))
"""Of a search whose first rate is kept and whose second is not: each bisection halves the logarithm of what is between them."""
_TRIES = 3
"""How often a rate is sent before this machine counts as too slow for it: it may have done something else for a moment."""
_GROWTH = 1.5
_WORTH = 0.5
_WORTH_OF_DEADLINE = 0.05
_SPREAD = 4.0


@dataclass(frozen=True)
class Probe:
    """One run at one rate.

    Attributes:
        rate: requests a second.
        result: the run.
        reasons: why the rate was not kept; empty where it was.
        by_generator: the sending side was the bottleneck.
    """

    rate: float
    result: LoadResult
    reasons: tuple[str, ...]
    by_generator: bool


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        rate: the highest rate that was kept; 0 where none was.
        probes: everything that was tried, in order; a rate at which this machine was the bottleneck is there again.
        complete: the search came to its end; False after Ctrl-C, and where a run could not begin.
        ended: why it could not, in a sentence; empty otherwise.
    """

    rate: float
    probes: tuple[Probe, ...]
    complete: bool = True
    ended: str = ""

    @property
    def best(self) -> LoadResult | None:
        """The run at the highest rate that was kept."""
        return next((probe.result for probe in self.probes if probe.rate == self.rate and not probe.reasons), None)

    @property
    def lowest_broken(self) -> float:
        """The lowest rate above it that was not kept; infinite where none was tried. A run that was broken off, or sent nothing, says nothing of it."""
        return min((probe.rate for probe in self._above), default=math.inf)

    @property
    def close(self) -> bool:
        """Whether the highest rate is known within 5 %."""
        return bool(self.rate) and self.lowest_broken / self.rate <= _PRECISION

    @property
    def nothing_due(self) -> bool:
        """Whether the search ended at a rate at which no request was due: so short a run says nothing about it."""
        return self.complete and not self.probes[-1].result.due

    @property
    def limited_by_generator(self) -> bool:
        """Whether higher rates failed only since this machine could not send them."""
        return bool(self._above) and all(probe.by_generator for probe in self._above)

    @property
    def _above(self) -> list[Probe]:
        # The server may have gone in the last run before one that could not begin.
        told = self.probes[:-1] if self.ended else self.probes
        return [probe for probe in told if probe.rate > self.rate and probe.result.complete and probe.result.due]


def check_search(plan: LoadPlan) -> None:
    """Raise InputError (TG420) for a plan without an SLO, or with a trace: there is no rate to be searched."""
    if not plan.promises:
        raise problem("the highest rate that keeps an SLO needs one", "add --slo p99=20ms")
    if plan.arrivals == "trace":
        raise problem(
            "the highest rate is searched by sending at one after another, and a trace has its own", "leave out --find-max, or use --arrivals poisson"
        )


def find_max(
    plan: LoadPlan,
    *,
    first_rate: float,
    seconds: float,
    warmup_s: float,
    run: Callable[[LoadPlan], LoadResult],
    tell: Callable[[Probe], None] = lambda probe: None,
) -> Found:
    """Search with runs of `seconds` each; `tell` is called with each. Raises InputError as `check_search` does.

    Starts at `first_rate`, doubles (or halves) until one rate is kept and another is not, and bisects until they are within 5 %. A run in which nothing was due
    ends it, and so does Ctrl-C, or a run that cannot begin since the server is gone, with what was found until then; before the first run was over these go on
    as KeyboardInterrupt and TritongenError.
    """
    check_search(plan)
    probes: list[Probe] = []
    low, high, rate = 0.0, 0.0, first_rate
    while len({probe.rate for probe in probes}) < MOST_RATES and (not low or not high or high / low > _PRECISION):
        try:
            tried = _tried(plan, rate, seconds, warmup_s, run)
            for probe in tried:
                probes.append(probe)
                tell(probe)
        except KeyboardInterrupt:
            if not probes:
                raise
            return Found(low, tuple(probes), complete=False)
        except TritongenError as error:
            if not probes:
                raise
            return Found(low, tuple(probes), complete=False, ended=str(error))
        if not (last := probes[-1].result).complete or not last.due:
            return Found(low, tuple(probes), complete=last.complete)
        if probes[-1].reasons:
            high = rate
        else:
            low = rate
        rate = min(rate * 2, MOST_RATE) if not high else rate / 2 if not low else (low * high) ** 0.5
        if rate < 0.1 or (not high and low >= MOST_RATE):
            break
    return Found(low, tuple(probes))


def _tried(plan: LoadPlan, rate: float, seconds: float, warmup_s: float, run: Callable[[LoadPlan], LoadResult]) -> Iterator[Probe]:
    """The runs at one rate; the last one counts."""
    stages = staged((Step(rate, rate, seconds),), warmup_s)
    believed = False
    for _ in range(_TRIES):
        result = run(dataclasses.replace(plan, stages=stages, users=0, find_max=True))
        reasons = _reasons(result, rate)
        yield Probe(rate, result, reasons, bool(result.overburdened))
        if not result.complete or not (result.overburdened or (reasons and not believed and _by_few(result))):
            return
        believed = believed or not result.overburdened


def _by_few(result: LoadResult) -> bool:
    """Whether all that was not kept stands on fewer requests than make it sure: a single hiccup of the server is enough for that."""
    for part in result.models:
        sure = {name: limit for name, limit in part.load.slo.percentiles.items() if not (name.startswith("p") and is_thin(part.due, name))}
        firm = dataclasses.replace(part, load=dataclasses.replace(part.load, slo=Promises(sure, part.load.slo.error_rate)))
        if firm.missed_slo() or part.error_rate * part.due >= FEWEST_BEYOND:
            return False
    return bool(result.due and result.missed_slo())


def _reasons(result: LoadResult, rate: float) -> tuple[str, ...]:
    """Why a rate is not kept."""
    if not result.complete and not result.trouble:
        return ("it was broken off before its end",)
    return (*result.invalid, *result.missed_slo(), *_other_rate(result, rate), *_growing(result))


def _other_rate(result: LoadResult, rate: float) -> tuple[str, ...]:
    """That something else than this rate was due, beyond what chance does to irregular arrivals: the standard deviation of n of them is sqrt(n)."""
    expected = rate * result.measured_s
    if abs(result.target_rate - rate) <= rate * max(_PRECISION - 1, _SPREAD / math.sqrt(max(expected, 1.0))):
        return ()
    return (f"{result.target_rate:.1f} requests/s were due in it, which is another rate",)


def _growing(result: LoadResult) -> tuple[str, ...]:
    """Whether the tail of the second half is much above that of the first: a queue that grows breaks every promise in time."""
    deadline_s = result.plan.deadline_s
    name, worth = _tail([load.slo for load in result.plan.models], deadline_s)
    middle = result.plan.begin_s + result.measured_s / 2
    first, second = Second(), Second()
    for number, entry in result.recorder.seconds.items():
        (first if number + 0.5 < middle else second).merge(entry)
    before, after = (judged(half.latencies, half.due - half.ok, name, deadline_s) for half in (first, second))
    if before in (0, math.inf) or after <= _GROWTH * before or after <= worth:
        return ()
    end = f"{after:.2f} ms in the second" if after < math.inf else f"{second.due - second.ok} of {second.due} requests without a good answer in the second"
    return (f"{name} grows while the rate is held: {before:.2f} ms in the first half, {end}",)


def _tail(promises: Sequence[Promises], deadline_s: float) -> tuple[str, float]:
    """The percentile by which growth is judged, and the milliseconds from which on it matters: the highest that is promised, else p99."""
    limits = [(name, limit) for each in promises for name, limit in each.percentiles.items()]
    if percentiles := [(float(name[1:]), -limit, name) for name, limit in limits if name.startswith("p")]:
        _, limit, name = max(percentiles)
        return name, _WORTH * -limit
    # A tail lies above the mean, and below the largest.
    worths = [limit if name == "mean" else _WORTH * limit for name, limit in limits]
    return "p99", min(worths, default=_WORTH_OF_DEADLINE * deadline_s * 1000)
