"""The highest rate that keeps an SLO: doubling until it breaks, then bisection. A rate is kept only where its tail does not grow while it is sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from tritongen.load.arrivals import Stage
from tritongen.load.histogram import Histogram
from tritongen.load.plan import LoadPlan, problem
from tritongen.load.result import LoadResult, measure
from tritongen.spec.traffic import MOST_RATE

_PRECISION = 1.05
_MOST_PROBES = 24
_GROWTH = 1.5
_WORTH = 0.5


@dataclass(frozen=True)
class Probe:
    """One rate that was tried; `reasons` say why it was not kept, and are empty where it was. `by_generator`: this machine could not send it."""

    rate: float
    result: LoadResult
    reasons: tuple[str, ...]
    by_generator: bool


@dataclass(frozen=True)
class Found:
    """The highest rate that was kept (0 where none was), and everything that was tried, in order."""

    rate: float
    probes: tuple[Probe, ...]

    @property
    def best(self) -> LoadResult | None:
        """The run at the highest rate that was kept."""
        return next((probe.result for probe in self.probes if probe.rate == self.rate and not probe.reasons), None)

    @property
    def limited_by_generator(self) -> bool:
        """Whether higher rates failed only since this machine could not send them."""
        above = [probe for probe in self.probes if probe.rate > self.rate]
        return bool(above) and all(probe.by_generator for probe in above)


def find_max(plan: LoadPlan, *, first_rate: float, seconds: float, warmup_s: float, run: Callable[[LoadPlan], LoadResult]) -> Found:
    """Search with runs of `seconds` each. Raises InputError (TG420) for a plan without an SLO.

    Starts at `first_rate`, doubles (or halves) until one rate is kept and another is not, and bisects until they are within 5 %.
    """
    if not plan.promises:
        raise problem("the highest rate that keeps an SLO needs one", "add --slo p99=20ms")
    probes: list[Probe] = []

    def kept(rate: float) -> bool:
        stages = (*((Stage(warmup_s, rate, rate, "warmup", measured=False),) if warmup_s else ()), Stage(seconds, rate, rate, f"{rate:g}/s"))
        result = run(dataclasses.replace(plan, stages=stages, users=0))
        reasons = (*result.invalid, *result.missed_slo(), *_growing(result))
        probes.append(Probe(rate, result, reasons, bool(result.invalid) and not result.missed_slo()))
        return not reasons

    low, high, rate = 0.0, 0.0, first_rate
    while len(probes) < _MOST_PROBES and (not low or not high or high / low > _PRECISION):
        if kept(rate):
            low = rate
        else:
            high = rate
        if probes[-1].result.complete is False:
            break
        rate = min(rate * 2, MOST_RATE) if not high else rate / 2 if not low else (low * high) ** 0.5
        if rate < 0.1 or (not high and low >= MOST_RATE):
            break
    return Found(low, tuple(probes))


def _growing(result: LoadResult) -> tuple[str, ...]:
    """Whether the tail of the second half is much above that of the first: a queue that grows breaks every promise in time."""
    limits = [(name, limit) for load in result.plan.models for name, limit in load.slo.percentiles.items() if name.startswith("p")]
    if not limits:
        return ()
    name, limit = max(limits, key=lambda entry: (float(entry[0][1:]), -entry[1]))
    seconds = [second for _, second in sorted(result.recorder.seconds.items())]
    half = len(seconds) // 2
    first, second = Histogram(), Histogram()
    for index, entry in enumerate(seconds):
        (first if index < half else second).add(entry.latencies)
    before, after = measure(first, name), measure(second, name)
    if before and after > _GROWTH * before and after > _WORTH * limit:
        return (f"{name} grows while the rate is held: {before:.2f} ms in the first half, {after:.2f} ms in the second",)
    return ()
