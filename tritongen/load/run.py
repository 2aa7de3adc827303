"""One load test from its plan to its result: Locust in a child process, the server's own counters before and after."""

from __future__ import annotations

import contextlib
import importlib.metadata
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import urllib3

from tritongen.client import Client
from tritongen.client.endpoint import parse_url
from tritongen.client.requests import array_bytes
from tritongen.diagnostics import Diagnostic
from tritongen.errors import EnvironmentProblem, InferenceError, InputError, MissingExtra
from tritongen.load.engine import END_S, HERE, Machines, last_words, locust
from tritongen.load.follow import Follower
from tritongen.load.limits import ModelFacts
from tritongen.load.payloads import make_pool
from tritongen.load.plan import LoadPlan, arrivals_of
from tritongen.load.recorder import Recorder
from tritongen.load.result import LoadResult, SenderUse
from tritongen.load.serverside import ServerSide, difference, gauges_of

_POLL_S = 0.1
_PATIENCE = 4.0
"""How much longer a sender may take to prepare than this process, beside others and on a busy machine."""
_START_S = 30.0
"""Seconds for processes to start, beside what they wait for and prepare."""


@dataclass
class Progress:
    """What is known while a run goes on.

    Attributes:
        elapsed_s: seconds since the first request was due; below 0 before.
        recorder: what was measured so far.
        latest: what was measured in the last half second or so.
        under_way: requests without an answer.
        news: what happened to workers since the last time, in sentences.
    """

    elapsed_s: float
    recorder: Recorder
    latest: Recorder
    under_way: int
    news: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Limits:
    """Seconds until the run must have begun, and until it must be over, from its beginning."""

    start_s: float
    end_s: float


def run_load(
    plan: LoadPlan,
    *,
    machines: Machines = HERE,
    metrics_url: str = "",
    tool_version: str = "",
    progress: Callable[[Progress], None] = lambda progress: None,
) -> LoadResult:
    """Run a load test and return what it found; on Ctrl-C what was found until then.

    Args:
        plan: what to do.
        machines: where it is sent from.
        metrics_url: the server's metrics page; by default port 8002 of its host.
        tool_version: tritongen's own version, for the result and for workers on other machines, which must have it too.
        progress: called several times a second.

    Raises MissingExtra without Locust, InputError for a request that cannot be made, InferenceError where the server or the model is not there, and
    EnvironmentProblem where the run cannot begin, also where a worker does not come.
    """
    if importlib.util.find_spec("locust") is None:
        raise MissingExtra("load", "load tests")
    with Client(plan.url, deadline_s=10) as client, tempfile.TemporaryDirectory(prefix="tritongen-load-") as name:
        folder = Path(name)
        # Senders prepare the same, some of them on slower machines.
        begin = time.perf_counter()
        facts = _prepared(client, plan)
        limits = _Limits(machines.max_wait_s + _START_S + _PATIENCE * (time.perf_counter() - begin), plan.length_s + plan.deadline_s + END_S)
        (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
        follower = Follower(folder / "reports.jsonl", machines.workers)
        follower.reports.touch()
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        watch = _ServerWatch(client, plan, metrics_url or f"http://{_metrics_host(plan)}:8002/metrics")
        complete = True
        with locust(folder, machines.options(), machines.shares, tool_version) as process:
            try:
                _follow(process, follower, watch, limits, progress)
            except KeyboardInterrupt:
                complete = False
                follower = _break_off(process, folder)
        if complete and follower.start is None and not follower.trouble:
            raise _never_begun(process, follower, machines)
        trouble = (*follower.trouble, *follower.lost())
        return LoadResult(
            plan,
            follower.recorder,
            tuple(SenderUse(name, sender.cpu_s, sender.wall_s) for name, sender in sorted(follower.senders.items())),
            watch.result(),
            {**({"tritongen": tool_version} if tool_version else {}), "locust": importlib.metadata.version("locust"), **_server_version(client)},
            complete and not trouble,
            trouble,
            started,
            facts,
        )


def _prepared(client: Client, plan: LoadPlan) -> dict[str, ModelFacts]:
    """Make what senders will make, so that everything that is wrong is said at once and before the run; what is known of it, by model. Raises InputError."""
    found: dict[str, ModelFacts] = {}
    problems: list[Diagnostic] = []
    try:
        arrivals_of(plan)
    except InputError as error:
        problems += error.diagnostics
    for load in plan.models:
        try:
            meta = client.meta(load.model, load.version)
            pool = make_pool(plan, load, meta)
            found[load.model] = ModelFacts(meta.max_batch_size, sum(array_bytes(array) for arrays in pool for array in arrays.values()) / len(pool))
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(problems)
    return found


def _metrics_host(plan: LoadPlan) -> str:
    host = parse_url(plan.url).host
    return f"[{host}]" if ":" in host else host


def _server_version(client: Client) -> Mapping[str, str]:
    try:
        return {"triton": str(client.metadata(deadline_s=2).get("version", "?"))}
    except InferenceError:
        return {}


def _follow(process: subprocess.Popen[bytes], follower: Follower, watch: _ServerWatch, limits: _Limits, progress: Callable[[Progress], None]) -> None:
    """Read what the senders say until they are done, and look at the server at the right moments. What does not end in time is in the follower's trouble."""
    begin = time.monotonic()
    while True:
        ended = process.poll() is not None
        latest, news = follower.read()
        watch.look(follower.elapsed_s)
        under_way = sum(sender.under_way for sender in follower.senders.values())
        progress(Progress(follower.elapsed_s, follower.recorder, latest, under_way, tuple(news)))
        if ended or follower.over:
            return
        if follower.start is None and time.monotonic() - begin > limits.start_s:
            follower.trouble.append(f"the run did not begin within {limits.start_s:.0f} s")
            return
        if follower.elapsed_s > limits.end_s:
            follower.trouble.append("the run did not end in time")
            return
        time.sleep(_POLL_S)


def _break_off(process: subprocess.Popen[bytes], folder: Path) -> Follower:
    """End a run early, with the last reports of its senders; everything is read again, since what was being read may have been read in half."""
    (folder / "stop").touch()
    end, follower = time.monotonic() + END_S, Follower(folder / "reports.jsonl")
    while True:
        ended = process.poll() is not None
        follower.read()
        if ended or follower.over or follower.start is None or time.monotonic() > end:
            return follower
        time.sleep(_POLL_S)


def _never_begun(process: subprocess.Popen[bytes], follower: Follower, machines: Machines) -> EnvironmentProblem:
    """Why there is no run."""
    if machines.workers and follower.workers < machines.workers:
        port = machines.bind_port
        return EnvironmentProblem(
            f"{follower.workers} of {machines.workers} workers came within {machines.max_wait_s:g} s",
            hint=f"start each with `tritongen load --worker --master-host HOST --master-port {port}`, where HOST is this machine; port {port} must be open",
        )
    return EnvironmentProblem(f"Locust ended with status {process.returncode} before the run began: {last_words(follower.reports.parent)}")


class _ServerWatch:
    """The server's statistics at the beginning and the end of the measured time, and its gauges in between."""

    def __init__(self, client: Client, plan: LoadPlan, metrics_url: str) -> None:
        self._client, self._plan, self._metrics_url = client, plan, metrics_url
        self._before: dict[str, Any] | None = None
        self._gauges: dict[str, dict[str, float]] = {load.model: {} for load in plan.models}
        self._looking: threading.Thread | None = None
        self._next_look = 0.0
        self._http = urllib3.PoolManager(retries=False, timeout=2.0)

    def look(self, elapsed_s: float) -> None:
        """Take what is due at this moment."""
        if elapsed_s >= self._plan.begin_s and self._before is None:
            self._before = self._statistics()
        if elapsed_s >= self._plan.begin_s and elapsed_s >= self._next_look and (self._looking is None or not self._looking.is_alive()):
            self._next_look = elapsed_s + 1.0
            self._looking = threading.Thread(target=self._look_at_gauges, daemon=True)
            self._looking.start()

    def result(self) -> dict[str, ServerSide]:
        """What changed, by model; without those of which the server did not say it."""
        before, after = self._before or {}, self._statistics() if self._before else {}
        self._http.clear()
        return {model: difference(before[model], after[model], self._gauges[model]) for model in before if model in after}

    def _statistics(self) -> dict[str, Any]:
        found = {}
        for load in self._plan.models:
            with contextlib.suppress(InferenceError, InputError):
                found[load.model] = self._client.statistics(load.model, load.version, deadline_s=5)
        return found

    def _look_at_gauges(self) -> None:
        try:
            page = self._http.request("GET", self._metrics_url).data.decode("utf-8", "replace")
        except urllib3.exceptions.HTTPError:
            return
        for model, gauges in self._gauges.items():
            for name, value in gauges_of(page, model).items():
                gauges[name] = max(gauges.get(name, 0.0), value)
