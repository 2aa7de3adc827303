"""When requests are sent: the schedule of an open-loop load test, made before the clock starts. Pure.

In an open loop, requests arrive when they arrive, whether or not earlier ones have been answered, as those of independent users do; a latency counts from the
scheduled instant. A closed loop waits for answers, so that a server that stands still is asked less and its pause hardly shows.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_SECONDS = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A line of a trace. Python's own numbers have underscores and the digits of all scripts, too."""

ArrivalKind = Literal["poisson", "constant"]


@dataclass(frozen=True)
class Stage:
    """A part of a run.

    Attributes:
        seconds: how long it takes.
        rate: requests a second at its beginning.
        end_rate: requests a second at its end; the rate changes evenly in between.
        name: what reports call it.
        measured: False for a warmup, whose requests are in no result.
    """

    seconds: float
    rate: float
    end_rate: float
    name: str
    measured: bool = True

    @property
    def requests(self) -> float:
        """How many requests the stage has on average."""
        return self.seconds * (self.rate + self.end_rate) / 2

    def arrived(self, seconds: float) -> float:
        """How many requests have arrived on average, so many seconds after the stage's beginning: the integral of the rate."""
        return self.rate * seconds + (self.end_rate - self.rate) / self.seconds * seconds**2 / 2

    def instant(self, count: float) -> float:
        """Seconds after the stage's beginning when `count` requests have arrived on average: the inverse of `arrived`."""
        slope = (self.end_rate - self.rate) / self.seconds
        if abs(slope) < 1e-12:
            return count / self.rate
        # The positive root of slope/2 t^2 + rate t - count, in the form that does not cancel.
        root = math.sqrt(max(self.rate**2 + 2 * slope * count, 0.0))
        return 2 * count / (self.rate + root)


@dataclass(frozen=True)
class Arrival:
    """One request: seconds after the run's beginning when it is due, and the index of its stage."""

    due_s: float
    stage: int


def schedule(stages: Sequence[Stage], kind: ArrivalKind, *, seed: int = 0, share: int = 0, shares: int = 1, begin_s: float = 0.0) -> Iterator[Arrival]:
    """The arrivals of one of `shares` equal senders, in order.

    `poisson`: exponential gaps, which is what independent users make, and what queues are measured with; the union of the shares is a Poisson process of the
    whole rate. `constant`: even gaps; the shares interleave exactly. `begin_s`: leave out what is due before, in seconds from the run's beginning.
    """
    source = random.Random(f"{seed} {share} {begin_s}" if begin_s else f"{seed} {share}")  # noqa: S311 - no secret
    begin = 0.0
    for index, stage in enumerate(stages):
        expected = stage.requests
        passed = stage.arrived(min(max(begin_s - begin, 0.0), stage.seconds))
        first = share + 0.5
        count = first + shares * max(math.ceil((passed - first) / shares), 0) if kind == "constant" else passed + source.expovariate(1.0) * shares
        while count < expected:
            yield Arrival(begin + stage.instant(count), index)
            count += shares if kind == "constant" else source.expovariate(1.0) * shares
        begin += stage.seconds


def trace(lines: Sequence[str], stages: Sequence[Stage]) -> tuple[list[Arrival], int]:
    """The arrivals of a trace: seconds from its beginning, one a line, ascending, comments after `#`; and how many lie beyond the stages, and are left out.

    Raises ValueError with the line that is no ascending number.
    """
    ends, total = [], 0.0
    for stage in stages:
        total += stage.seconds
        ends.append(total)
    found: list[Arrival] = []
    last, beyond = 0.0, 0
    for number, line in enumerate(lines, 1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        if not _SECONDS.fullmatch(text):
            raise ValueError(f"line {number} is no number of seconds: {text!r:.60}")
        due = float(text)
        if not last <= due < math.inf:
            raise ValueError(f"line {number} is {due:g}, and the times of a trace ascend from 0 (the one before is {last:g})")
        last = due
        if due < total:
            found.append(Arrival(due, bisect.bisect_right(ends, due)))
        else:
            beyond += 1
    return found, beyond


def draws(parts: Sequence[float], *, seed: int = 0, share: int = 0) -> Callable[[], int]:
    """What gives the index of each next request's model, drawn by the models' parts; the same for the same share of the same run."""
    if len(parts) == 1:
        return lambda: 0
    *ends, total = itertools.accumulate(parts)
    source = random.Random(f"{seed} {share} models")  # noqa: S311 - no secret
    return lambda: bisect.bisect(ends, source.random() * total)
