"""What was measured: latencies in microseconds in HDR histograms, counts of errors, and a time series by second. Merges exactly.

A percentile is within 0.1 % of the sample it stands for (see `histogram`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tritongen.load.errors_seen import ErrorsSeen
from tritongen.load.histogram import Histogram, Samples

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)


class Key(NamedTuple):
    """What a histogram is of. `outcome` is `ok` or a kind of error."""

    model: str
    protocol: str
    stage: int
    outcome: str


@dataclass
class Second:
    """One second of a run, by the scheduled instant."""

    due: int = 0
    ok: int = 0
    errors: int = 0
    latencies: Histogram = field(default_factory=Histogram)

    def merge(self, other: Second) -> None:
        """Add another one's requests."""
        self.due += other.due
        self.ok += other.ok
        self.errors += other.errors
        self.latencies.add(other.latencies)


class Recorder:
    """Latencies and counts of one process, or of many when others are added.

    `last_ok_s` is when the last good answer came, in seconds from the run's beginning; below 0 before the first. `lag` is how late the loop of a sender woke up
    that had nothing else to wait for: what `late` is to an open loop, also in a closed one. `unread` is how long good answers had been on the sending machine
    when they were read, which is no part of their latency; without those of which the system does not tell it.
    """

    def __init__(self) -> None:
        self.histograms: dict[Key, Histogram] = {}
        self.errors = ErrorsSeen()
        self.seconds: dict[int, Second] = {}
        self.sent: Counter[int] = Counter()
        self.missed: Counter[tuple[str, int]] = Counter()
        self.late = Histogram()
        self.lag = Histogram()
        self.unread = Histogram()
        self.last_ok_s = -1.0

    def add(self, key: Key, due_s: float, latency_s: float, late_s: float, message: str = "", unread_s: float | None = None) -> None:
        """One request is over: how long after its scheduled instant its answer came and it was sent, and how long the answer waited to be read."""
        histogram = self.histograms.get(key)
        if histogram is None:
            histogram = self.histograms[key] = Histogram()
        histogram.record(latency_s)
        self.late.record(late_s)
        if unread_s is not None:
            self.unread.record(unread_s)
        self.sent[key.stage] += 1
        second = self.seconds.get(int(due_s))
        if second is None:
            second = self.seconds[int(due_s)] = Second()
        second.due += 1
        if key.outcome == "ok":
            second.ok += 1
            second.latencies.record(latency_s)
            self.last_ok_s = max(self.last_ok_s, due_s + latency_s)
        else:
            second.errors += 1
            self.errors.add(key.model, key.outcome, message)

    def miss(self, model: str, stage: int, due_s: float, count: int = 1) -> None:
        """Requests that were due in one second were not sent: the run ended, or the generator could not."""
        self.missed[model, stage] += count
        self.seconds.setdefault(int(due_s), Second()).due += count

    def merge(self, other: Recorder) -> None:
        """Add what another process measured."""
        for key, histogram in other.histograms.items():
            self.histograms.setdefault(key, Histogram()).add(histogram)
        self.errors.merge(other.errors)
        self.sent.update(other.sent)
        self.missed.update(other.missed)
        self.late.add(other.late)
        self.lag.add(other.lag)
        self.unread.add(other.unread)
        self.last_ok_s = max(self.last_ok_s, other.last_ok_s)
        for number, theirs in other.seconds.items():
            self.seconds.setdefault(number, Second()).merge(theirs)

    @property
    def messages(self) -> Counter[tuple[str, str, str]]:
        """How often requests failed by model, outcome and what was said; of a bounded number of kinds."""
        return self.errors.messages()

    def missed_in(self, *, stage: int | None = None, model: str | None = None) -> int:
        """How many requests were never sent: of one stage or of all, of one model or of all."""
        return sum(count for (of, where), count in self.missed.items() if stage in (None, where) and model in (None, of))

    def total(self, keys: Iterable[Key] | None = None) -> Histogram:
        """All samples of some keys in one histogram; of all where none are named."""
        whole = Histogram()
        for key in self.histograms if keys is None else keys:
            if key in self.histograms:
                whole.add(self.histograms[key])
        return whole

    def to_json(self) -> str:
        """Everything as one line of text, for another process; nothing is lost on the way."""
        return json.dumps(
            {
                "histograms": [[*key, histogram.to_plain()] for key, histogram in self.histograms.items()],
                "errors": list(self.errors),
                "sent": list(self.sent.items()),
                "missed": list(self.missed.items()),
                "late": self.late.to_plain(),
                "lag": self.lag.to_plain(),
                "unread": self.unread.to_plain(),
                "last_ok_s": self.last_ok_s,
                "seconds": [[number, second.due, second.ok, second.errors, second.latencies.to_plain()] for number, second in self.seconds.items()],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Recorder:
        """What `to_json` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        data = json.loads(text)
        made = cls()
        made.histograms = {Key(*parts): Histogram.from_plain(encoded) for *parts, encoded in data["histograms"]}
        for entry in data["errors"]:
            made.errors.add(*entry)
        made.sent, made.missed = Counter(dict(data["sent"])), Counter({(model, stage): count for (model, stage), count in data["missed"]})
        made.lag, made.unread = Histogram.from_plain(data["lag"]), Histogram.from_plain(data["unread"])
        made.late, made.last_ok_s = Histogram.from_plain(data["late"]), float(data["last_ok_s"])
        for number, due, ok, errors, encoded in data["seconds"]:
            made.seconds[number] = Second(due, ok, errors, Histogram.from_plain(encoded))
        return made


def summary(histogram: Histogram) -> Mapping[str, Any]:
    """Percentiles, mean and extremes in milliseconds, with the number of samples; only the count where there are none."""
    samples = Samples.of(histogram)
    if not samples.count:
        return {"count": 0}
    *figures, largest = (value / 1000 for value in samples.percentiles((*PERCENTILES, 100.0)))
    percentiles = {f"p{percentile:g}": value for percentile, value in zip(PERCENTILES, figures, strict=True)}
    return {"count": samples.count, "mean": samples.mean / 1000, "min": samples.smallest / 1000, "max": largest, **percentiles}
