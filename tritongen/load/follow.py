"""What the senders of a run say while it goes on: the lines of its file, as they come."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritongen.load.recorder import Recorder
from tritongen.load.unsent import accounted


@dataclass
class SenderState:
    """One sender.

    Attributes:
        name: what people call it; another may have the same.
        share: its share of the schedule.
        cpu_s, wall_s: its CPU seconds, and the seconds that they are of.
        under_way: its requests without an answer.
        over, lost_at: whether it is over, or lost and since when.
        lasted_s: for how long it sent, as its last report says; None where there was none.
        told: the requests that it told of, by model and stage.
    """

    name: str
    share: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    under_way: int = 0
    over: bool = False
    lost_at: float | None = None
    lasted_s: float | None = None
    told: Counter[tuple[str, int]] = field(default_factory=Counter)


@dataclass
class Follower:
    """The file of a run, read as it grows.

    Attributes:
        reports: the file.
        awaited: how many workers are waited for that others start; 0 where there are none, and nothing of them is news.
        recorder: what was measured so far.
        senders: by the id of their worker, from the beginning of the run on.
        trouble: what went wrong with single senders, in sentences.
        workers: how many workers the master has.
        start: when the first request was due, on this machine's `time.perf_counter`; None before.
    """

    reports: Path
    awaited: int = 0
    recorder: Recorder = field(default_factory=Recorder)
    senders: dict[str, SenderState] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    workers: int = 0
    start: float | None = None
    _place: int = 0
    _explained: set[str] = field(default_factory=set)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first request was due, at this moment; -1 as long as that is not known."""
        return time.perf_counter() - self.start if self.start is not None else -1.0

    @property
    def over(self) -> bool:
        """The run has begun, and nothing more will come."""
        return bool(self.senders) and all(sender.over or sender.lost_at is not None for sender in self.senders.values())

    def read(self) -> tuple[Recorder, list[str]]:
        """What is new: what was measured, and what people should know at once."""
        latest, news = Recorder(), []
        with self.reports.open("rb") as file:
            file.seek(self._place)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # the rest is still being written
                self._place += len(line)
                data = json.loads(line)
                measured = Recorder.from_json(data["recorder"]) if "recorder" in data else None
                if measured is not None:
                    latest.merge(measured)
                news += self._take(data, measured)
        self.recorder.merge(latest)
        return latest, news

    def not_ready(self, seconds: float) -> str:
        """That the run could not begin in so many seconds, in a sentence, with the workers that came where others are missing."""
        missing = f": {self.workers} of {self.awaited} workers are there" if self.workers < self.awaited else ""
        return f"not everything was ready within {seconds:.0f} s{missing}"

    def lost(self) -> list[str]:
        """The senders that did not come to their end, in sentences."""
        gone = "{name} was lost {at:.0f} s after the beginning, and with it what it had still to send"
        return [
            f"sender {gone.format(name=sender.name, at=self.elapsed_s if sender.lost_at is None else sender.lost_at)}"
            for worker, sender in self.senders.items()
            if not sender.over and worker not in self._explained
        ]

    def lasted_s(self) -> float | None:
        """For how long requests were sent, as the senders say that made their last report; None where none did."""
        return max((sender.lasted_s for sender in self.senders.values() if sender.lasted_s is not None), default=None)

    def _take(self, data: Mapping[str, Any], measured: Recorder | None) -> list[str]:
        if "start" in data:
            self.start = data["start"]
            self.senders = {worker: SenderState(name, share) for worker, (name, share) in data["senders"].items()}
        elif "hello" in data:
            self.workers = data["have"]
            return [f"worker {data['hello']} is there ({self.workers} of {self.awaited})"] if self.awaited else []
        elif "gone" in data:
            self.workers = data["have"]
            return [f"worker {data['gone']} is gone again ({self.workers} of {self.awaited})"] if self.awaited else []
        elif "refused" in data:
            return [f"worker {data['refused']} was turned away: {data['reason']}"]
        elif "sender" in data:
            return self._of_sender(data["sender"], data, measured)
        return []

    def _of_sender(self, worker: str, data: Mapping[str, Any], measured: Recorder | None) -> list[str]:
        name = data["name"]
        sender = self.senders.get(worker, SenderState(name))
        if measured is not None:
            sender.told.update(accounted(measured))
            sender.lasted_s = data["lasted_s"]
            sender.cpu_s += data["cpu_s"]
            sender.wall_s += data["wall_s"]
            sender.under_way = data["under_way"]
        elif "error" in data:
            self.trouble.append(f"sender {name}: {data['error']}")
            self._explained.add(worker)
        elif "status" in data and not self.trouble:
            self.trouble.append(f"sender {name} ended with status {data['status']}")
            self._explained.add(worker)
        elif "over" in data:
            sender.over, sender.under_way = True, 0
        elif "lost" in data:
            sender.lost_at = max(self.elapsed_s, 0.0) if data["lost"] else None
            return [f"sender {name} is lost: its worker does not answer" if data["lost"] else f"sender {name} is there again"]
        return []
