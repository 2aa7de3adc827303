"""Locust as a child process: which machines and processes send, its command line, its end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import site
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritongen.client.endpoint import Access
from tritongen.load.crew import HERE_VARIABLE, RUN_VARIABLE, SHARES_VARIABLE, VERSION_VARIABLE
from tritongen.load.letting_in import ACCESS_VARIABLE, written

END_S = 15.0
"""Seconds for Locust to end by itself when it is told to."""

_LOOK_S = 0.05
_REASON = re.compile(r"[A-Za-z_.]*(?:Error|Exception): ")
"""How the last line of a traceback begins."""
_TABLE = re.compile(r"Type +Name|.*\||Response time percentiles")
"""Lines of the statistics that Locust prints at its end, which are empty where nothing was sent."""


@dataclass(frozen=True)
class Machines:
    """Where requests are sent from.

    Attributes:
        processes: sender processes on this machine; more than one are workers of a master of Locust's.
        workers: how many workers a master waits for that others start, on any machine; 0 where this machine sends.
        bind_host, bind_port: where the master listens for them.
        max_wait_s: how long it waits for the last of them.
        web_host, web_port: where Locust's own page with its statistics is; port 0 for none.
    """

    processes: int = 1
    workers: int = 0
    bind_host: str = "*"
    bind_port: int = 5557
    max_wait_s: float = 60.0
    web_host: str = "127.0.0.1"
    web_port: int = 0

    @property
    def shares(self) -> int:
        """How many parts the schedule is cut into."""
        return self.workers or self.processes

    def options(self) -> Sequence[str]:
        """Locust's options for them."""
        page = ["--autostart", "--web-host", self.web_host, "--web-port", str(self.web_port)] if self.web_port else ["--headless"]
        users = [*page, "-u", str(self.shares), "-r", str(self.shares)]
        wait = ["--expect-workers-max-wait", str(max(round(self.max_wait_s), 1))]
        if self.workers:
            listen = ["--master-bind-host", self.bind_host, "--master-bind-port", str(self.bind_port)]
            return [*users, "--master", "--expect-workers", str(self.workers), *wait, *listen]
        if self.processes > 1:
            port = str(free_port())
            listen = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--master-host", "127.0.0.1", "--master-port", port]
            return [*users, "--processes", str(self.processes), *wait, *listen]
        return users


NO_ACCESS = Access()
"""A server that lets everybody in."""

HERE = Machines()
"""One process of this machine."""


@contextlib.contextmanager
def locust(folder: Path, options: Sequence[str], shares: int | None, tool_version: str, access: Access = NO_ACCESS) -> Iterator[subprocess.Popen[bytes]]:
    """Locust on our locustfile, in a session of its own, so that Ctrl-C reaches only us; gone when the block is left, and when this process dies.

    `shares`: how many workers the master waits for; None for what is a worker itself. `tool_version`: what master and workers must have in common.
    `access`: what requests of this machine's senders carry.
    """
    command = [sys.executable, "-m", "locust", "-f", str(Path(__file__).with_name("locustfile.py")), *options]
    command += ["--only-summary", "--loglevel", "ERROR", "--host", "tritongen"]
    environment = {**_surroundings(folder), RUN_VARIABLE: str(folder), VERSION_VARIABLE: tool_version, ACCESS_VARIABLE: written(access)}
    if shares is not None:
        environment[SHARES_VARIABLE] = str(shares)
    with (folder / "locust.log").open("wb") as log:
        # Its input says nothing: that it is closed tells Locust that this process is no more.
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
    finally:
        end(process)
        if process.stdin is not None:
            process.stdin.close()


def _surroundings(folder: Path) -> Mapping[str, str]:
    """Environment variables in which Locust has no settings but ours, and finds the modules that this process finds.

    Locust also takes options from variables, from `locust.conf` and `pyproject.toml` in the current folder and from `.locust.conf` in the user's: one for other
    load tests, such as a run time or tags, would break ours. Both folders are the run's own.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    modules = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    return {**kept, "HOME": str(folder), "PYTHONUSERBASE": site.getuserbase(), "PYTHONPATH": modules, HERE_VARIABLE: str(_here(folder))}


def _here(folder: Path) -> Path:
    """The current folder; the run's own where it was removed, so that no relative path leads anywhere."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return folder


def end(process: subprocess.Popen[bytes], hurry: Callable[[], bool] = lambda: False) -> None:
    """Let it end, and then kill whatever is left of it: senders that are stopped or lost are in its group, and would send on or wait for ever.

    `hurry`: asked while it is waited for; True ends that.
    """
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    limit = time.monotonic() + END_S
    while process.poll() is None and time.monotonic() < limit and not hurry():
        time.sleep(_LOOK_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_words(folder: Path) -> str:
    """Why Locust ended: the exception that it wrote last, else the end of what it wrote."""
    log = (folder / "locust.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    reasons = [line for line in log if _REASON.match(line)]
    others = [line for line in log if line.strip() and not _TABLE.match(line)]
    return (reasons[-1] if reasons else " ".join(others[-3:]))[:500]


def free_port() -> int:
    """A port of this machine that nothing listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
