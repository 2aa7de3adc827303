"""The server's own counters over the measured time of a run, and its gauges in between: asked beside the run, and kept when the server dies."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import urllib3

from tritongen.client import Client
from tritongen.client.endpoint import parse_url
from tritongen.errors import InferenceError, InputError
from tritongen.load.crew import LEAD_S
from tritongen.load.plan import LoadPlan
from tritongen.load.serverside import ServerSide, Window, difference, gauges_of, parse_metrics

_EVERY_S = 1.0
_PATIENCE_S = 2.0


_Said = Sequence[Mapping[str, Any]]
"""The statistics of a model's versions."""


@dataclass(frozen=True)
class _Moment:
    """What the server said of one model, and when, in seconds from the run's beginning."""

    at_s: float
    said: _Said


class ServerWatch:
    """Statistics when the measured time begins, each second, and when the last answer is there; the largest of the gauges.

    Without a warmup they are taken as soon as it is known when the first request is due, which is `LEAD_S` before: later, some would have been answered.

    Args:
        client: what asks; from a thread of its own too.
        plan: the run.
        metrics_url: the metrics page, where people gave one: then it is said when it cannot be read. Empty for port 8002 of the server's host.
    """

    def __init__(self, client: Client, plan: LoadPlan, metrics_url: str) -> None:
        self._client, self._plan, self._given = client, plan, metrics_url
        self.metrics_url = metrics_url or f"http://{dataclasses.replace(parse_url(plan.url), port=8002).authority}/metrics"
        self._before: dict[str, _Moment] | None = None
        self._latest: dict[str, _Moment] = {}
        self._ended: set[str] = set()
        self._gauges: dict[str, dict[str, float]] = {load.model: {} for load in plan.models}
        self._looking: threading.Thread | None = None
        self._first_look = plan.begin_s or -LEAD_S
        self._next_look = plan.begin_s
        self._page_was_read, self._page_trouble = False, "the run was over before it was asked for"
        self._http = urllib3.PoolManager(retries=False, timeout=_PATIENCE_S)

    def pause(self, elapsed_s: float, longest_s: float) -> float:
        """Seconds until there is something to look at, at most `longest_s`: the beginning of the measured time is not missed."""
        wait = self._plan.begin_s - elapsed_s
        return min(longest_s, wait) if elapsed_s >= 0 and wait > 0 else longest_s

    def look(self, elapsed_s: float) -> None:
        """Take what is due at this moment, in seconds from the first request's instant on; -1 as long as that is not known."""
        if elapsed_s < self._first_look:
            return
        if self._before is None:
            self._before = {model: _Moment(elapsed_s, said) for model, said in self._statistics().items()}
        if elapsed_s >= self._next_look and (self._looking is None or not self._looking.is_alive()):
            self._next_look = elapsed_s + _EVERY_S
            self._looking = threading.Thread(target=self._look_aside, args=(elapsed_s,), daemon=True)
            self._looking.start()

    def finish(self, elapsed_s: float) -> None:
        """The last look, when all answers are there."""
        if self._looking is not None:
            self._looking.join(_PATIENCE_S * (len(self._plan.models) + 2))
        if self._before is not None:
            self._note(elapsed_s, self._statistics())
            self._ended = {model for model, moment in self._latest.items() if moment.at_s == elapsed_s}
        self._http.clear()

    def result(self) -> dict[str, ServerSide]:
        """What changed, by model, over the time for which it is known; without those of which the server said nothing."""
        return {
            model: difference(first.said, last.said, self._gauges[model], Window(first.at_s, last.at_s, model in self._ended))
            for model, first in (self._before or {}).items()
            if (last := self._latest.get(model)) is not None
        }

    def notes(self) -> tuple[str, ...]:
        """What people asked for and did not get, in sentences."""
        if not self._given or self._page_was_read:
            return ()
        return (f"the metrics page {self.metrics_url} could not be read ({self._page_trouble}): pending requests and GPUs are not in the report",)

    def _statistics(self) -> dict[str, _Said]:
        found: dict[str, _Said] = {}
        for load in self._plan.models:
            with contextlib.suppress(InferenceError, InputError):
                found[load.model] = self._client.statistics(load.model, load.version, deadline_s=_PATIENCE_S)
        return found

    def _note(self, at_s: float, said: Mapping[str, _Said]) -> None:
        for model, each in said.items():
            if model not in self._latest or self._latest[model].at_s <= at_s:
                self._latest[model] = _Moment(at_s, each)

    def _look_aside(self, elapsed_s: float) -> None:
        self._note(elapsed_s, self._statistics())
        try:
            answer = self._http.request("GET", self.metrics_url)
        except urllib3.exceptions.HTTPError as error:
            self._page_trouble = str(error)[:200]
            return
        page = answer.data.decode("utf-8", "replace")
        if answer.status != 200 or not parse_metrics(page):
            self._page_trouble = f"HTTP status {answer.status}" if answer.status != 200 else "it holds no metrics"
            return
        self._page_was_read = True
        for model, gauges in self._gauges.items():
            for name, value in gauges_of(page, model).items():
                gauges[name] = max(gauges.get(name, 0.0), value)
