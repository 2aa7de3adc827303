"""Locust over several processes, by the command lines of a rendered deployment: a worker dies in the middle, and another takes its place."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compose
import networks
import pytest

from tritongen.server import ServerOptions, ports
from tritongen.workflow import render
from tritongen.workflow.serving import serving

# Half a minute of waiting for heartbeats: not for every run.
pytestmark = [pytest.mark.server, pytest.mark.system]
ROOT = Path(__file__).parents[2]
USERS = 4
SOON_S = 240
"""Within which Locust has noticed what happened, on a busy machine: it looks once a second, and calls a worker missing after three."""

SPEC = """\
version: 1
models:
  - {name: one, source: m.onnx, instances: [{kind: cpu}]}
  - {name: t_w.o, source: m.onnx, instances: [{kind: cpu}]}
"""


class Fleet:
    """The services `locust-master` and `locust-worker` as processes of this machine: their commands with paths, names of hosts and ports remapped."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._services = compose.read((folder / "docker-compose.yml").read_text())["services"]
        self._url = url
        taken: set[int] = set()
        self._web, self._bind = (str(ports._any_free("127.0.0.1", taken)) for _ in range(2))
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, service: str) -> subprocess.Popen[bytes]:
        """One more container of a service."""
        described = self._services[service]
        program, *words = described["command"]
        assert program == "locust"
        places = {"/loadtests/": f"{self.folder}/loadtests/", "locust-master": "127.0.0.1"}
        remapped = [self._remapped(word, places) for word in words]
        remapped += (
            ["--web-host", "127.0.0.1", "--web-port", self._web, "--master-bind-port", self._bind]
            if service == "locust-master"
            else ["--master-port", self._bind]
        )
        assert described["environment"]["GRPC_URL"] == "grpc://tritonserver:8001"
        # A variable without a value is passed on where docker compose has it.
        stated = {name: value for name, value in described["environment"].items() if value is not None}
        with (self.folder / "locust.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "locust", *remapped],
                env={**os.environ, "PYTHONPATH": str(ROOT), **stated, "GRPC_URL": self._url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    @staticmethod
    def _remapped(word: str, places: dict[str, str]) -> str:
        for container, here in places.items():
            word = word.replace(container, here)
        return word

    def ask(self, path: str, **form: object) -> dict[str, Any]:
        """What the master's page answers; a form is posted."""
        data = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(f"http://127.0.0.1:{self._web}{path}", data, timeout=10) as answer:
            return dict(json.loads(answer.read()))

    def until(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the statistics look so."""
        deadline = time.monotonic() + SOON_S
        stats: dict[str, Any] = {}
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                stats = self.ask("/stats/requests")
                if holds(stats):
                    return stats
            time.sleep(0.2)
        raise AssertionError(f"not within {SOON_S} s: {what}; {stats}\n{(self.folder / 'locust.log').read_text()[-3000:]}")

    def end(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(SOON_S)


def states(stats: dict[str, Any]) -> list[tuple[str, int]]:
    return sorted((worker["state"], worker["user_count"]) for worker in stats.get("workers", ()))


def answered(stats: dict[str, Any]) -> dict[str, int]:
    return {row["name"]: row["num_requests"] for row in stats["stats"] if row["name"] != "Aggregated"}


def test_a_worker_that_dies_is_replaced_while_the_others_go_on(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "spec.yaml").write_text(SPEC)
    render(tmp_path / "spec.yaml", cpu=True, deploy=True)
    with serving(tmp_path / "model_repository.cpu", ServerOptions(http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True)) as served:
        fleet = Fleet(tmp_path, served.server.grpc_url)
        try:
            fleet.start("locust-master")
            doomed, _ = fleet.start("locust-worker"), fleet.start("locust-worker")
            fleet.until("two workers", lambda stats: [state for state, _ in states(stats)] == ["ready", "ready"])
            fleet.ask("/swarm", user_count=USERS, spawn_rate=USERS)
            fleet.until("all users on two workers", lambda stats: states(stats) == [("running", 2), ("running", 2)] and len(answered(stats)) == 2)
            doomed.send_signal(signal.SIGKILL)
            stats = fleet.until("all users on the worker that is left", lambda stats: ("running", USERS) in states(stats))
            before = answered(stats)
            fleet.start("locust-worker")
            fleet.until("a new worker takes its share", lambda stats: states(stats).count(("running", 2)) == 2)
            stats = fleet.until("both models are asked on", lambda stats: all(answered(stats)[name] > count for name, count in before.items()))
            assert set(before) == {"one", "t_w.o"}
            assert [row["num_failures"] for row in stats["stats"]] == [0, 0, 0]
        finally:
            fleet.end()
