"""One load test from its plan to its result: Locust in a child process, the server's own counters before and after."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import urllib3

from tritongen.client import Client
from tritongen.client.endpoint import parse_url
from tritongen.errors import EnvironmentProblem, InferenceError, InputError, MissingExtra
from tritongen.load.payloads import make_pool
from tritongen.load.plan import LoadPlan
from tritongen.load.recorder import Recorder
from tritongen.load.result import LoadResult, SenderUse
from tritongen.load.serverside import ServerSide, difference, gauges_of

_POLL_S = 0.1
_START_S = 30.0
_END_S = 15.0


@dataclass
class Progress:
    """What is known while a run goes on.

    Attributes:
        elapsed_s: seconds since the first request was due; below 0 before.
        recorder: what was measured so far.
        latest: what was measured in the last half second or so.
        under_way: requests without an answer.
    """

    elapsed_s: float
    recorder: Recorder
    latest: Recorder
    under_way: int


@dataclass
class _State:
    """What the senders have said so far."""

    recorder: Recorder = field(default_factory=Recorder)
    senders: dict[str, dict[str, Any]] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)
    start: float | None = None

    def take(self, line: str) -> Recorder:
        """One line of the run's file; what it adds."""
        data = json.loads(line)
        sender = self.senders.setdefault(data["sender"], {"cpu_s": 0.0, "wall_s": 0.0, "under_way": 0, "over": False, "done": False})
        latest = Recorder()
        if "start" in data:
            self.start = data["start"] if self.start is None else min(self.start, data["start"])
        elif "recorder" in data:
            latest = Recorder.from_json(data["recorder"])
            self.recorder.merge(latest)
            sender["cpu_s"] += data["cpu_s"]
            sender["wall_s"] += data["wall_s"]
            sender["under_way"], sender["done"] = data["under_way"], data["done"]
        elif "error" in data:
            self.trouble.append(f"sender {data['sender']}: {data['error']}")
        elif "status" in data and not self.trouble:
            self.trouble.append(f"sender {data['sender']} ended with status {data['status']}")
        elif data.get("over"):
            sender["over"] = True
        return latest


def run_load(
    plan: LoadPlan, *, processes: int = 1, metrics_url: str = "", tool_version: str = "", progress: Callable[[Progress], None] = lambda progress: None
) -> LoadResult:
    """Run a load test and return what it found; on Ctrl-C what was found until then.

    Args:
        plan: what to do.
        processes: sender processes on this machine; more than one run under a master of Locust's.
        metrics_url: the server's metrics page; by default port 8002 of its host.
        tool_version: tritongen's own version, for the result.
        progress: called several times a second.

    Raises MissingExtra without Locust, InputError for a request that cannot be made, InferenceError where the server or the model is not there.
    """
    if importlib.util.find_spec("locust") is None:
        raise MissingExtra("load", "load tests")
    with Client(plan.url, deadline_s=10) as client, tempfile.TemporaryDirectory(prefix="tritongen-load-") as name:
        folder = Path(name)
        meta = client.meta(plan.model, plan.version)
        make_pool(plan, meta, meta.warmup_shapes, meta.samples)
        (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
        (folder / "reports.jsonl").touch()
        state = _State()
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        watch = _ServerWatch(client, plan, metrics_url or f"http://{_metrics_host(plan)}:8002/metrics")
        complete = True
        with _locust(folder, processes) as process:
            try:
                _follow(process, folder / "reports.jsonl", state, watch, plan, processes, progress)
            except KeyboardInterrupt:
                complete = False
                _end(process)
                _read(folder / "reports.jsonl", 0, state, fresh=True)
        server = watch.result()
        return LoadResult(
            plan,
            state.recorder,
            tuple(SenderUse(name, sender["cpu_s"], sender["wall_s"]) for name, sender in sorted(state.senders.items())),
            server,
            {**({"tritongen": tool_version} if tool_version else {}), "locust": importlib.metadata.version("locust"), **_server_version(client)},
            complete and not state.trouble,
            tuple(state.trouble),
            started,
        )


def _metrics_host(plan: LoadPlan) -> str:
    host = parse_url(plan.url).host
    return f"[{host}]" if ":" in host else host


def _server_version(client: Client) -> Mapping[str, str]:
    try:
        return {"triton": str(client.metadata(deadline_s=2).get("version", "?"))}
    except InferenceError:
        return {}


@contextlib.contextmanager
def _locust(folder: Path, processes: int) -> Iterator[subprocess.Popen[bytes]]:
    """Locust on our locustfile, in a session of its own, so that Ctrl-C reaches only us; gone when the block is left."""
    command = [sys.executable, "-m", "locust", "-f", str(Path(__file__).with_name("locustfile.py")), "--headless", "-u", str(processes), "-r", str(processes)]
    command += ["--only-summary", "--loglevel", "ERROR", "--host", "tritongen"]
    if processes > 1:
        port = str(_free_port())
        command += ["--processes", str(processes), "--master-bind-host", "127.0.0.1", "--master-bind-port", port]
        command += ["--master-host", "127.0.0.1", "--master-port", port]
    environment = {**os.environ, "TRITONGEN_LOAD_RUN": str(folder), "TRITONGEN_LOAD_SHARES": str(processes)}
    with (folder / "locust.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
    finally:
        _end(process)


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _follow(
    process: subprocess.Popen[bytes], reports: Path, state: _State, watch: _ServerWatch, plan: LoadPlan, processes: int, progress: Callable[[Progress], None]
) -> None:
    """Read what the senders say until they are done, and look at the server at the right moments."""
    place, begin = 0, time.monotonic()
    while True:
        over = process.poll() is not None
        place, latest = _read(reports, place, state)
        elapsed = time.perf_counter() - state.start if state.start is not None else -1.0
        watch.look(elapsed)
        progress(Progress(elapsed, state.recorder, latest, sum(sender["under_way"] for sender in state.senders.values())))
        if over or (len(state.senders) == processes and all(sender["over"] for sender in state.senders.values())):
            break
        if state.start is None and time.monotonic() - begin > _START_S:
            state.trouble.append(f"Locust did not start within {_START_S:.0f} s")
            return
        if elapsed > plan.length_s + plan.deadline_s + _END_S:
            state.trouble.append("the run did not end in time")
            return
        time.sleep(_POLL_S)
    if not state.senders:
        log = (reports.parent / "locust.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise EnvironmentProblem(f"Locust ended with status {process.returncode} before the run began: {' '.join(log[-3:])[:500]}")
    for name, sender in state.senders.items():
        if not sender["over"] and not any(name in trouble for trouble in state.trouble):
            state.trouble.append(f"sender {name} died in the middle of the run")


def _read(reports: Path, place: int, state: _State, *, fresh: bool = False) -> tuple[int, Recorder]:
    """The lines from `place` on; `fresh` forgets what was read before."""
    if fresh:
        start = state.start
        state.__init__()  # type: ignore[misc]
        state.start = start
    latest = Recorder()
    with reports.open("rb") as file:
        file.seek(place)
        for line in file:
            if not line.endswith(b"\n"):
                break  # the rest is still being written
            place += len(line)
            latest.merge(state.take(line.decode()))
    return place, latest


class _ServerWatch:
    """The server's statistics at the beginning and the end of the measured time, and its gauges in between."""

    def __init__(self, client: Client, plan: LoadPlan, metrics_url: str) -> None:
        self._client, self._plan, self._metrics_url = client, plan, metrics_url
        self._before: Any = None
        self._after: Any = None
        self._gauges: dict[str, float] = {}
        self._looking: threading.Thread | None = None
        self._next_look = 0.0
        self._warmup_s = plan.warmup_s if plan.users else sum(stage.seconds for stage in plan.stages if not stage.measured)
        self._http = urllib3.PoolManager(retries=False, timeout=2.0)

    def look(self, elapsed_s: float) -> None:
        """Take what is due at this moment."""
        if elapsed_s >= self._warmup_s and self._before is None:
            self._before = self._statistics()
        if elapsed_s >= self._warmup_s and elapsed_s >= self._next_look and (self._looking is None or not self._looking.is_alive()):
            self._next_look = elapsed_s + 1.0
            self._looking = threading.Thread(target=self._look_at_gauges, daemon=True)
            self._looking.start()

    def result(self) -> ServerSide | None:
        """What changed; None where the server did not say."""
        after = self._statistics() if self._before is not None else None
        self._http.clear()
        if self._before is None or after is None:
            return None
        return difference(self._before, after, self._gauges)

    def _statistics(self) -> Any:
        try:
            return self._client.statistics(self._plan.model, self._plan.version, deadline_s=5)
        except (InferenceError, InputError):
            return None

    def _look_at_gauges(self) -> None:
        try:
            page = self._http.request("GET", self._metrics_url).data.decode("utf-8", "replace")
        except urllib3.exceptions.HTTPError:
            return
        for name, value in gauges_of(page, self._plan.model).items():
            self._gauges[name] = max(self._gauges.get(name, 0.0), value)
