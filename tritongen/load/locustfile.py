"""The locustfile of `tritongen load`: Locust starts, stops, distributes and shows the run; asyncio processes of ours send its requests.

Every worker's one user runs one sender process with the worker's share of the schedule; what it measures travels with Locust's own worker messages, and goes
into Locust's statistics too, rounded as those are. Without workers the only process is master and worker at once.

`crew.RUN_VARIABLE` names a folder: there the master finds `plan.json`, and ends the run when there is a file `stop`; it and the workers of
`tritongen load --worker` append to its `reports.jsonl` what their parent process has to know, a line each.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gevent
from gevent import select, subprocess
from gevent.event import AsyncResult
from locust import User, events, task
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.runners import STATE_MISSING, MasterRunner, WorkerRunner

from tritongen.load import crew
from tritongen.load.histogram import Samples
from tritongen.load.recorder import Recorder

_LAST_WORDS_S = 5.0
_LOOK_S = 0.1
_SHARE_S = 60.0

folder = Path(os.environ[crew.RUN_VARIABLE])


class OneEach(UsersDispatcher):
    """Gives every worker its one user, and takes none away: Locust's own dispatcher would move users when a worker comes or goes, and ours have begun."""

    def __init__(self, worker_nodes: list[Any], user_classes: list[type[User]]) -> None:
        super().__init__(worker_nodes=worker_nodes, user_classes=user_classes)
        self._nodes, self._told = list(worker_nodes), True

    @property
    def dispatch_in_progress(self) -> bool:
        """Never for longer than a message takes."""
        return False

    def new_dispatch(self, target_user_count: int, spawn_rate: float, user_classes: list[type[User]] | None = None) -> None:
        """The next iteration tells all."""
        self._told = False

    def __next__(self) -> dict[str, dict[str, int]]:
        if self._told:
            raise StopIteration
        self._told = True
        return {node.id: {Sender.__name__: 1} for node in self._nodes}

    def add_worker(self, worker_node: Any) -> None:
        """It gets a user at the next dispatch."""
        self._nodes.append(worker_node)

    def remove_worker(self, worker_node: Any) -> None:
        """It is not told any longer."""
        self._nodes = [node for node in self._nodes if node.id != worker_node.id]


class Hand:
    """What a worker does: it takes a share from the master, runs one sender with it, and says what that one says."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._share: AsyncResult = AsyncResult()
        self._process: Any = None
        self._stopped = False

    def take(self, share: Mapping[str, Any]) -> None:
        """The master's answer to hello."""
        if "refused" in share:
            own({"refused": share["refused"]})
            self._share.set(None)
            gevent.spawn(self._runner.quit)
        else:
            own({"share": share["share"], "shares": share["shares"]})
            self._share.set(json.dumps(dict(share)))

    def go(self, data: Mapping[str, Any]) -> None:
        """The instant of the first request."""
        own({"begun": True})
        self._write(repr(crew.instant_of(data)))

    def stop(self) -> None:
        """End early. Closed input ends a sender, which has its last report still to make."""
        self._stopped = True
        if self._process is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def work(self, environment: Environment) -> None:
        """Run the sender, once; a second user of the same worker has nothing to do."""
        self._share.wait(_SHARE_S)
        if self._share.value is not None and self._process is None and not self._stopped:
            self._send(environment, self._share.value)

    def _send(self, environment: Environment, share: str) -> None:
        self._process = process = subprocess.Popen([sys.executable, "-m", "tritongen.load.sender"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self._write(share)
            self._read(environment)
            status = process.wait()
            if status:
                self._say(json.dumps({"status": status}))
        finally:
            self.stop()
            with gevent.Timeout(_LAST_WORDS_S, False):
                self._read(environment)
                process.wait()
            process.kill()
            process.wait()
            self._say(json.dumps({"over": True}))
            own({"over": True})

    def _read(self, environment: Environment) -> None:
        """What the sender writes, until it ends."""
        for line in iter(self._process.stdout.readline, b""):
            self._say(line.decode())
            report = json.loads(line)
            if "recorder" in report:
                into_locust(environment, Recorder.from_json(report["recorder"]))

    def _say(self, line: str) -> None:
        self._runner.send_message(crew.LINE, {"line": line})

    def _write(self, line: str) -> None:
        # A sender that died is noticed by what reads from it.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()


class Sender(User):
    """The user of each worker, for as long as its sender runs."""

    @task
    def send(self) -> None:
        """All of it."""
        hands[self.environment].work(self.environment)
        self.stop(force=True)


hands: dict[Environment, Hand] = {}


@events.init.add_listener
def _begin(environment: Environment, **_: Any) -> None:
    """Here Locust has connected to its master, or waits for workers."""
    gevent.spawn(_outlive_nobody)
    runner: Any = environment.runner
    if not isinstance(runner, WorkerRunner):
        _lead(environment, runner)
    if not isinstance(runner, MasterRunner):
        hand = hands[environment] = Hand(runner)
        for kind, heed in ((crew.SHARE, hand.take), (crew.GO, hand.go)):
            runner.register_message(kind, lambda environment, msg, heed=heed: heed(msg.data))
        runner.register_message(crew.STOP, lambda environment, msg: hand.stop())
        name = f"{socket.gethostname()} {os.getpid()}"
        own({"connected": name})
        runner.send_message(crew.HELLO, {"name": name, "version": os.environ[crew.VERSION_VARIABLE]})


def _outlive_nobody() -> None:
    """End with the process that started Locust, also where that was killed: its end of our input is closed then. Nobody is left who would read a report."""
    select.select([sys.stdin], [], [])
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _lead(environment: Environment, runner: Any) -> None:
    """What the master does, or the only process."""

    def tell(worker: str, kind: str, data: Mapping[str, Any]) -> None:
        runner.send_message(kind, dict(data), client_id=worker)

    many = isinstance(runner, MasterRunner)
    if many:
        environment.dispatcher_class = OneEach
    leader = crew.Crew(
        (folder / "plan.json").read_text(encoding="utf-8"), int(os.environ[crew.SHARES_VARIABLE]), os.environ[crew.VERSION_VARIABLE], tell, write
    )
    runner.register_message(crew.HELLO, lambda environment, msg: leader.hello(msg.node_id, msg.data))
    runner.register_message(crew.LINE, lambda environment, msg: leader.line(msg.node_id, msg.data["line"]))

    def watch() -> None:
        while not leader.done:
            gevent.sleep(_LOOK_S)
            if (folder / "stop").exists():
                leader.stop()
            leader.look({worker: node.state != STATE_MISSING for worker, node in runner.clients.items()} if many else {"local": True})
        runner.quit()
        page: Any = environment.web_ui  # Locust types none of its methods
        if page is not None:
            page.stop()

    gevent.spawn(watch)


def own(data: Mapping[str, Any]) -> None:
    """What the parent process of a worker has to know; on the master's machine that one hears it from the master."""
    if crew.SHARES_VARIABLE not in os.environ:
        write(data)


def write(data: Mapping[str, Any]) -> None:
    """Append a line to the run's file, whole."""
    with (folder / "reports.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(data)}\n")


def into_locust(environment: Environment, recorder: Recorder) -> None:
    """The same requests in Locust's own statistics."""
    for key, histogram in recorder.histograms.items():
        samples = Samples.of(histogram)
        for value_us, count in zip(samples.lowest.tolist(), samples.counts.tolist(), strict=True):
            for _ in range(count):
                environment.stats.log_request(key.protocol, key.model, value_us / 1000, 0)
                if key.outcome != "ok":
                    environment.stats.log_error(key.protocol, key.model, key.outcome)
