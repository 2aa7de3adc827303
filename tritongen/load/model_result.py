"""One model's part of what a load test found, and the figures of any part: counts, the error rate, measures of latencies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritongen.load.histogram import Histogram
from tritongen.load.limits import Measured, ModelFacts, what_limits
from tritongen.load.plan import ModelLoad
from tritongen.load.recorder import PERCENTILES, Recorder, summary
from tritongen.load.serverside import PARTS, ServerSide
from tritongen.load.verdict import broken, judged, unshown

_EQUAL = 0.01
"""Of a mean: histograms round by up to 0.1 %, and where a run begins and ends the server counts some requests more or less than are measured here."""


@dataclass(frozen=True)
class ModelResult:
    """One model's part of a run.

    Attributes:
        load: what was sent to it, and what it must keep.
        recorder: what was measured, of all models.
        measured_s: seconds of the measured time.
        deadline_s: when a request was given up.
        server: what the server counted of it; None where it did not say.
        facts: what was known of it before the run; None where that is not kept.
        busy: a sender had no core left.
    """

    load: ModelLoad
    recorder: Recorder
    measured_s: float
    deadline_s: float
    server: ServerSide | None = None
    facts: ModelFacts | None = None
    busy: bool = False

    def latencies(self) -> Histogram:
        """The latencies of requests that were answered."""
        return self._of("ok")

    def _of(self, outcome: str) -> Histogram:
        return self.recorder.total(key for key in self.recorder.histograms if (key.model, key.outcome) == (self.load.model, outcome))

    @property
    def counts(self) -> Mapping[str, int]:
        """Requests by outcome."""
        return counted(self.recorder, self.load.model)

    @property
    def missed(self) -> int:
        """Requests that were due and never sent."""
        return self.recorder.missed_in(model=self.load.model)

    @property
    def due(self) -> int:
        """Requests that were due: those that were sent, and those that were not."""
        return sum(self.counts.values()) + self.missed

    @property
    def rate(self) -> float:
        """Requests a second that were sent."""
        return sum(self.counts.values()) / self.measured_s if self.measured_s else 0.0

    @property
    def error_rate(self) -> float:
        """The part of all due requests that were not answered well; what was never sent counts as well."""
        return failing(self.counts, self.missed)

    def missed_slo(self) -> tuple[str, ...]:
        """What the SLO promises and the model did not keep, with both numbers."""
        found = list(broken(self.load.slo, self.latencies(), self.due, self.deadline_s, self._of("unfinished")))
        limit_rate = self.load.slo.error_rate
        if limit_rate is not None and self.error_rate > limit_rate:
            found.append(f"the error rate is {self.error_rate:.3%}, and {limit_rate:.3%} were promised")
        return tuple(found)

    def unshown_slo(self) -> tuple[str, ...]:
        """What the SLO promises and so few requests cannot show."""
        return tuple(unshown(self.load.slo, self.due, self.error_rate))

    def split(self) -> Mapping[str, float]:
        """Where an answered request's time went on average, in milliseconds: the server's `PARTS`, and `outside` for the network and the client.

        Empty where the server did not say, or nothing was answered. Without `outside` where its requests took longer there than those that were answered here
        took in all: it counted others, such as those that were given up.
        """
        latencies = self.latencies()
        if self.server is None or not latencies.count:
            return {}
        parts = {part: self.server.mean_ms.get(part, 0.0) for part in PARTS}
        mean = measure(latencies, "mean")
        outside = mean - sum(parts.values())
        return {**parts, "outside": max(outside, 0.0)} if outside >= -_EQUAL * mean else parts

    def limits(self) -> str:
        """One sentence about what limits the model, and what to try."""
        protocol = next((key.protocol for key in self.recorder.histograms if key.model == self.load.model), "")
        late_ms, median_ms = measure(self.recorder.late, "p50"), measure(self.latencies(), "p50")
        return what_limits(Measured(self.split(), self.server, self.facts, protocol, late_ms, self.due, self.counts, self.busy, median_ms))

    def data(self, *, whole: bool) -> dict[str, Any]:
        """The part as plain data; no promise counts as kept by a run that is not `whole`: valid, and complete."""
        missed, split = self.missed_slo(), self.split()
        return {
            "model": self.load.model,
            "version": self.load.version,
            "requests": self.counts,
            "missed": self.missed,
            "rate": self.rate,
            "error_rate": self.error_rate,
            "latency_ms": summary(self.latencies()),
            "server": None if self.server is None else {**dataclasses.asdict(self.server), "average_batch": self.server.average_batch},
            "outside_ms": split.get("outside"),
            "facts": None if self.facts is None else dataclasses.asdict(self.facts),
            "slo": {"from": self.load.slo_from, "missed": list(missed), "kept": kept(self.load.slo, whole and not missed)},
            "limits": self.limits(),
        }


def kept(promised: object, well: bool) -> bool | None:
    """Whether all that was promised was kept; None where nothing was."""
    return well if promised else None


def counted(recorder: Recorder, model: str | None = None, stage: int | None = None) -> dict[str, int]:
    """Requests by outcome: of one model or of all, of one stage or of all."""
    found: dict[str, int] = {}
    for key, histogram in recorder.histograms.items():
        if model in (None, key.model) and stage in (None, key.stage):
            found[key.outcome] = found.get(key.outcome, 0) + histogram.count
    return found


def failing(counts: Mapping[str, int], missed: int) -> float:
    """The part of all due requests that were not answered well; what was under way when the run was broken off is no error, and no success."""
    due = sum(counts.values()) + missed - counts.get("unfinished", 0)
    return 1 - counts.get("ok", 0) / due if due else 0.0


def measure(latencies: Histogram, name: str) -> float:
    """A measure such as `p99`, `mean` or `max`, in milliseconds; 0 without samples."""
    return judged(latencies, 0, name, 0.0)


def percentiles(histogram: Histogram) -> Sequence[tuple[str, float]]:
    """The usual percentiles and the largest value, in milliseconds."""
    return [*((f"p{value:g}", measure(histogram, f"p{value:g}")) for value in PERCENTILES), ("max", measure(histogram, "max"))]
