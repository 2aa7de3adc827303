"""The locustfile of `tritongen load`: Locust starts, stops, distributes and shows the run; asyncio processes of ours send its requests.

The folder of the run stands in the environment: its `plan.json` is read, and what senders report is appended to its `reports.jsonl`, a line each, by the
master or the only process. A worker's one user runs one sender with the worker's share of the schedule; what it measures travels with Locust's own worker
messages, and goes into Locust's statistics too, rounded as those are.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
from gevent import subprocess
from locust import User, events, task
from locust.env import Environment
from locust.runners import WorkerRunner

from tritongen.load.histogram import Samples
from tritongen.load.plan import LoadPlan
from tritongen.load.recorder import Recorder

RUN_VARIABLE = "TRITONGEN_LOAD_RUN"
SHARES_VARIABLE = "TRITONGEN_LOAD_SHARES"
LEAD_S = 2.0
"""Seconds between the start of a sender and its first request: it imports, asks for the model and prepares payloads meanwhile."""
_LAST_WORDS_S = 5.0

folder = Path(os.environ[RUN_VARIABLE])
plan = LoadPlan.from_json((folder / "plan.json").read_text(encoding="utf-8"))
waiting: list[str] = []
"""Lines that a worker has not passed on yet."""


class Sender(User):
    """One sender process, for as long as the run takes."""

    @task
    def send(self) -> None:
        """Start the process, pass on what it says, and end with it."""
        runner = self.environment.runner
        share = runner.worker_index if isinstance(runner, WorkerRunner) else 0
        name = f"{socket.gethostname()} {share}"
        start = time.perf_counter() + LEAD_S
        pass_on(runner, json.dumps({"sender": name, "start": start}))
        command = [sys.executable, "-m", "tritongen.load.sender", str(folder / "plan.json"), str(share), os.environ.get(SHARES_VARIABLE, "1"), str(start)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            for line in lines_of(process):
                self._take(runner, name, line)
            status = process.wait()
            if status:
                pass_on(runner, json.dumps({"sender": name, "status": status}))
        finally:
            # Closed input ends the sender, which has its last report still to make.
            process.stdin.close()
            with gevent.Timeout(_LAST_WORDS_S, False):
                for line in lines_of(process):
                    self._take(runner, name, line)
                process.wait()
            process.kill()
            process.wait()
        pass_on(runner, json.dumps({"sender": name, "over": True}))
        if not isinstance(runner, WorkerRunner):
            runner.quit()
        self.stop(force=True)

    def _take(self, runner: Any, name: str, line: bytes) -> None:
        report = json.loads(line)
        pass_on(runner, json.dumps({**report, "sender": name}))
        if "recorder" in report:
            into_locust(self.environment, Recorder.from_json(report["recorder"]))


def lines_of(process: Any) -> Iterator[bytes]:
    """What a sender writes, until it ends."""
    return iter(process.stdout.readline, b"")


def pass_on(runner: Any, line: str) -> None:
    """Bring a line to the file of the run, through the master where there is one."""
    if isinstance(runner, WorkerRunner):
        waiting.append(line)
    else:
        write([line])


def write(lines: list[str]) -> None:
    """Append lines to the run's file, each whole."""
    with (folder / "reports.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


@events.report_to_master.add_listener
def _tell(client_id: str, data: dict[str, Any]) -> None:
    lines, waiting[:] = list(waiting), []
    data["tritongen"] = lines


@events.worker_report.add_listener
def _hear(client_id: str, data: dict[str, Any]) -> None:
    lines = data.pop("tritongen", [])
    write(lines)
    over.update(json.loads(line)["sender"] for line in lines if '"over": true' in line)
    if len(over) >= int(os.environ.get(SHARES_VARIABLE, "1")) and environments:
        _quit(environments[0])


def _quit(environment: Environment) -> None:
    if environment.runner is not None:
        environment.runner.quit()


over: set[str] = set()
environments: list[Environment] = []


@events.init.add_listener
def _remember(environment: Environment, **_: Any) -> None:
    environments.append(environment)


def into_locust(environment: Environment, recorder: Recorder) -> None:
    """The same requests in Locust's own statistics."""
    for key, histogram in recorder.histograms.items():
        samples = Samples.of(histogram)
        for value_us, count in zip(samples.lowest.tolist(), samples.counts.tolist(), strict=True):
            for _ in range(count):
                environment.stats.log_request(key.protocol, key.model, value_us / 1000, 0)
                if key.outcome != "ok":
                    environment.stats.log_error(key.protocol, key.model, key.outcome)
