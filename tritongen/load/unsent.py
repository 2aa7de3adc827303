"""What a sender that was lost had still to send. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tritongen.load.arrivals import draws
from tritongen.load.plan import LoadPlan, arrivals_of
from tritongen.load.recorder import Recorder


def accounted(recorder: Recorder) -> Counter[tuple[str, int]]:
    """Requests that were sent or missed, by model and stage."""
    found: Counter[tuple[str, int]] = Counter(recorder.missed)
    for key, histogram in recorder.histograms.items():
        found[key.model, key.stage] += histogram.count
    return found


def unsent(plan: LoadPlan, share: int, shares: int, told: Mapping[tuple[str, int], int], until_s: float) -> Iterator[tuple[str, int, float]]:
    """Model, stage and due second of every measured request of an open loop's share that its sender never told of, in order.

    Args:
        plan: the run.
        share: which part of it the sender had.
        shares: how many parts there were.
        told: what it told of, as in `accounted`.
        until_s: the end of the run, in seconds from its beginning.
    """
    pick, seen = draws([load.part for load in plan.models], seed=plan.seed, share=share), Counter[tuple[str, int]]()
    for arrival in arrivals_of(plan, share, shares):
        if arrival.due_s >= until_s:
            return
        place = (plan.models[pick()].model, arrival.stage)
        if plan.stages[arrival.stage].measured:
            seen[place] += 1
            if seen[place] > told.get(place, 0):
                yield *place, arrival.due_s
