"""What a load test found: one value, written as JSON, from which every report is made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tritongen.load.histogram import Histogram
from tritongen.load.limits import ModelFacts
from tritongen.load.model_result import ModelResult, counted, failing, kept
from tritongen.load.plan import LoadPlan, settings
from tritongen.load.recorder import Recorder, summary
from tritongen.load.serverside import ServerSide
from tritongen.load.verdict import lateness, slowness, stopped, unanswered, unstamped

SCHEMA_VERSION = 1
_BUSY = 0.9
_REACHED = 0.95
_SHORTEST_S = 0.5
"""Of a shorter time, such as that of a sender without any user, starting and ending are most of it."""


@dataclass(frozen=True)
class SenderUse:
    """How hard a sender process worked: its CPU seconds, and the length of the run in seconds."""

    name: str
    cpu_s: float
    wall_s: float

    @property
    def share(self) -> float:
        """The part of one core that it used."""
        return self.cpu_s / self.wall_s if self.wall_s >= _SHORTEST_S else 0.0

    @property
    def busy(self) -> bool:
        """Whether it had no core left."""
        return self.share > _BUSY


@dataclass(frozen=True)
class Setup:
    """How a run was made, beside its plan: sender processes of this machine, workers on others, the server's metrics page."""

    processes: int = 1
    workers: int = 0
    metrics_url: str = ""


@dataclass(frozen=True)
class LoadResult:
    """Everything about one run.

    Attributes:
        plan: what was asked for.
        recorder: what was measured.
        senders: the processes that sent.
        servers: what the server counted meanwhile, by model; without those of which it did not say it.
        versions: of tritongen, Locust and the server.
        complete: the run came to its end.
        trouble: what went wrong with the run itself, in sentences.
        started: when it began, in ISO 8601.
        facts: what was known of the models before the run, by model.
        lasted_s: after how many seconds it was broken off, the warmup included; None where it was not.
        setup: how it was made.
        notes: what was asked for and left out, in sentences.
    """

    plan: LoadPlan
    recorder: Recorder
    senders: tuple[SenderUse, ...] = ()
    servers: Mapping[str, ServerSide] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    trouble: tuple[str, ...] = ()
    started: str = ""
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    lasted_s: float | None = None
    setup: Setup = Setup()
    notes: tuple[str, ...] = ()

    @property
    def measured_s(self) -> float:
        """Seconds of the measured stages, or of the closed loop; of a run that was broken off, those that it had."""
        return max((self.plan.length_s if self.lasted_s is None else self.lasted_s) - self.plan.begin_s, 0.0)

    def stage_seconds(self, index: int) -> float:
        """Seconds of one stage; of a run that was broken off, those that it had."""
        begin = sum(stage.seconds for stage in self.plan.stages[:index])
        seconds = self.plan.stages[index].seconds
        return seconds if self.lasted_s is None else min(max(self.lasted_s - begin, 0.0), seconds)

    @property
    def settings(self) -> dict[str, Any]:
        """The plan, and how the run was made, as plain data."""
        return {**settings(self.plan), **dataclasses.asdict(self.setup)}

    def latencies(self, stage: int | None = None) -> Histogram:
        """The latencies of requests that were answered, in microseconds: of one stage, or of all."""
        return self.recorder.total(key for key in self.recorder.histograms if key.outcome == "ok" and stage in (None, key.stage))

    @property
    def counts(self) -> Mapping[str, int]:
        """Requests by outcome."""
        return counted(self.recorder)

    @property
    def due(self) -> int:
        """Requests that were due: those that were sent, and those that were not."""
        return sum(self.recorder.sent.values()) + self.recorder.missed_in()

    @property
    def error_rate(self) -> float:
        """The part of all due requests that were not answered well; what was never sent counts as well."""
        return failing(self.counts, self.recorder.missed_in())

    @property
    def rate(self) -> float:
        """Requests a second that were sent in the measured time."""
        return sum(self.recorder.sent.values()) / self.measured_s if self.measured_s else 0.0

    @property
    def target_rate(self) -> float:
        """Requests a second that were due; 0 for a closed loop, which has no target."""
        return self.due / self.measured_s if self.plan.stages and self.measured_s else 0.0

    @property
    def invalid(self) -> tuple[str, ...]:
        """Why the numbers say little about the server: it did not answer, or the sending side was the bottleneck; empty for a valid run."""
        reasons = list(self.trouble)
        sent, missed = sum(self.recorder.sent.values()), self.recorder.missed_in()
        if nothing := unanswered(self.counts, missed):
            reasons.append(nothing)
        elif silent := stopped(self.recorder, self.plan.begin_s, self.plan.begin_s + self.measured_s):
            reasons.append(silent)
        if missed and sent / (sent + missed) < _REACHED:
            reasons.append(f"{sent / (sent + missed):.0%} of the requests that were due were sent, which is less than {_REACHED:.0%}")
        return (*reasons, *self.overburdened)

    @property
    def overburdened(self) -> tuple[str, ...]:
        """Why the sending side was the bottleneck, whatever the server did; empty where it was not."""
        reasons = [f"sender {sender.name} used {sender.share:.0%} of a core: it was the bottleneck; add --processes" for sender in self.senders if sender.busy]
        return (*reasons, *filter(None, [lateness(self.recorder.late) or slowness(self.recorder.lag)]))

    @property
    def models(self) -> tuple[ModelResult, ...]:
        """The run by model."""
        busy = any(sender.busy for sender in self.senders)
        return tuple(
            ModelResult(load, self.recorder, self.measured_s, self.plan.deadline_s, self.servers.get(load.model), self.facts.get(load.model), busy)
            for load in self.plan.models
        )

    def missed_slo(self) -> tuple[str, ...]:
        """What the SLOs promise and the run did not keep, with both numbers; with the model where there are several."""
        return tuple(self._named(part, missed) for part in self.models for missed in part.missed_slo())

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, what latencies have in them, and what the SLOs promise and so few requests cannot show; with the model where there are several."""
        untold = unstamped(self.recorder, self.counts)
        return (*self.notes, *filter(None, [untold]), *(self._named(part, unshown) for part in self.models for unshown in part.unshown_slo()))

    def limits(self) -> tuple[str, ...]:
        """What limits each model, and what to try; with the model where there are several."""
        return tuple(self._named(part, part.limits()) for part in self.models)

    def _named(self, part: ModelResult, sentence: str) -> str:
        return f"{part.load.model}: {sentence}" if len(self.plan.models) > 1 else sentence

    def to_json(self) -> str:
        """The result as published JSON (`load_result.schema.json` in docs)."""
        return json.dumps(self.data(), indent=2)

    def data(self) -> dict[str, Any]:
        """The result as plain data."""
        recorder, missed = self.recorder, self.missed_slo()
        whole = self.complete and not self.invalid
        stages = [dataclasses.asdict(stage) for stage in self.plan.stages] or [{"name": "warmup", "measured": False}, {"name": "closed loop", "measured": True}]
        return {
            "schema": SCHEMA_VERSION,
            "started": self.started,
            "versions": dict(self.versions),
            "settings": self.settings,
            "loop": "closed" if self.plan.users else "open",
            "valid": not self.invalid,
            "invalid": list(self.invalid),
            "complete": self.complete,
            "notes": list(self.remarks),
            "measured_s": self.measured_s,
            "target_rate": self.target_rate,
            "rate": self.rate,
            "requests": self.counts,
            "missed": recorder.missed_in(),
            "error_rate": self.error_rate,
            "latency_ms": summary(self.latencies()),
            "late_ms": summary(recorder.late),
            "lag_ms": summary(recorder.lag),
            "unread_ms": summary(recorder.unread),
            "stages": [{**stage, **self._stage_data(index)} for index, stage in enumerate(stages) if stage["measured"]],
            "models": [part.data(whole=whole) for part in self.models],
            "errors": [
                {"model": model, "outcome": kind, "message": message, "count": count} for (model, kind, message), count in recorder.messages.most_common()
            ],
            "seconds": [
                {"second": number, "due": second.due, "ok": second.ok, "errors": second.errors, "latency_ms": summary(second.latencies)}
                for number, second in sorted(recorder.seconds.items())
            ],
            "senders": [{"name": sender.name, "cpu_s": sender.cpu_s, "wall_s": sender.wall_s} for sender in self.senders],
            "slo": {"missed": list(missed), "kept": kept(self.plan.promises, whole and not missed)},
            "limits": " ".join(self.limits()),
        }

    def stage_error_rate(self, index: int) -> float:
        """The part of a stage's due requests that were not answered well, as `error_rate` of all."""
        return failing(counted(self.recorder, stage=index), self.recorder.missed_in(stage=index))

    def stage_rate(self, index: int) -> float:
        """Requests a second that were sent in a stage; of a closed loop, in the measured time."""
        seconds = self.stage_seconds(index) if self.plan.stages else self.measured_s
        return self.recorder.sent[index] / seconds if seconds else 0.0

    def _stage_data(self, index: int) -> dict[str, Any]:
        return {
            "sent": self.recorder.sent[index],
            "missed": self.recorder.missed_in(stage=index),
            "sent_rate": self.stage_rate(index),
            "requests": counted(self.recorder, stage=index),
            "error_rate": self.stage_error_rate(index),
            "latency_ms": summary(self.latencies(index)),
        }
