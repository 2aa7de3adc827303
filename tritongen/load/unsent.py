"""What was due and never sent, counted instead of drawn: that costs the same at any rate. Pure.

A sender draws its requests one by one. What it could not keep up with, and what is left of the share of one that was lost, is as many as rates and parts of the
models say; of irregular arrivals that is within what chance does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tritongen.load.plan import LoadPlan, arrivals_of
from tritongen.load.recorder import Recorder


def accounted(recorder: Recorder) -> Counter[tuple[str, int]]:
    """Requests that were sent or missed, by model and stage."""
    found: Counter[tuple[str, int]] = Counter(recorder.missed)
    for key, histogram in recorder.histograms.items():
        found[key.model, key.stage] += histogram.count
    return found


def due_between(plan: LoadPlan, share: int, shares: int, begin_s: float, end_s: float) -> Iterator[tuple[str, int, int, int]]:
    """Model, stage, second and number of the measured requests that are due in a time, in its order; both ends in seconds from the run's beginning."""
    whole = sum(load.part for load in plan.models)
    left = [0.5] * len(plan.models)  # what rounding to whole requests left over, so that the sum is right
    for stage, second, expected in _expected(plan, share, shares, begin_s, end_s):
        if plan.stages[stage].measured:
            for index, load in enumerate(plan.models):
                left[index] += expected * load.part / whole
                count = int(left[index])
                left[index] -= count
                if count:
                    yield load.model, stage, second, count


def unsent(plan: LoadPlan, share: int, shares: int, told: Mapping[tuple[str, int], int], until_s: float) -> Iterator[tuple[str, int, int, int]]:
    """Model, stage, second and number of the measured requests of an open loop's share that its sender never told of: the last ones.

    Args:
        plan: the run.
        share: which part of it the sender had.
        shares: how many parts there were.
        told: what it told of, as in `accounted`.
        until_s: the end of the run, in seconds from its beginning.
    """
    seen: Counter[tuple[str, int]] = Counter(told)
    for model, stage, second, count in due_between(plan, share, shares, 0.0, until_s):
        known = min(seen[model, stage], count)
        seen[model, stage] -= known
        if count > known:
            yield model, stage, second, count - known


def _expected(plan: LoadPlan, share: int, shares: int, begin_s: float, end_s: float) -> Iterator[tuple[int, int, float]]:
    """Stage, second and how many requests of a share are due in it on average; of a trace, how many are."""
    if plan.arrivals == "trace":
        found = Counter((arrival.stage, int(arrival.due_s)) for arrival in arrivals_of(plan, share, shares) if begin_s <= arrival.due_s < end_s)
        yield from ((stage, second, float(count)) for (stage, second), count in found.items())
        return
    begin = 0.0
    for index, stage in enumerate(plan.stages):
        place, last = max(begin, begin_s), min(begin + stage.seconds, end_s)
        while place < last:
            until = min(int(place) + 1.0, last)
            yield index, int(place), (stage.arrived(until - begin) - stage.arrived(place - begin)) / shares
            place = until
        begin += stage.seconds
