"""A worker of a run on another machine: it sends what its master tells it, from as many processes as it is given."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tritongen.client.endpoint import Access
from tritongen.errors import EnvironmentProblem
from tritongen.load.engine import NO_ACCESS, last_words, locust

_POLL_S = 0.1


@dataclass
class _Seen:
    """What this machine's processes did so far."""

    connected: int = 0
    shares: int = 0
    over: int = 0
    refused: str = ""

    def take(self, line: str) -> str:
        """One line of theirs; what people should know of it."""
        data = json.loads(line)
        if "connected" in data:
            self.connected += 1
        elif "share" in data:
            self.shares += 1
            return f"takes part {data['share'] + 1} of {data['shares']}"
        elif "begun" in data:
            return "the run begins"
        elif "over" in data:
            self.over += 1
            return "the run is over here"
        elif "refused" in data:
            self.refused = data["refused"]
        return ""


def run_worker(
    host: str, port: int, *, tool_version: str, processes: int = 1, access: Access = NO_ACCESS, max_wait_s: float = 60.0, say: Callable[[str], None]
) -> None:
    """Work for the master at this address until its run is over.

    Args:
        host: the master's.
        port: the master's.
        tool_version: tritongen's own version, which must be the master's.
        processes: workers on this machine.
        access: what their requests carry to be let in.
        max_wait_s: how long a master is waited for.
        say: called with what happens, a sentence each.

    Raises EnvironmentProblem where no master answers in time, turns this worker away, or is gone before the run is over.
    """
    options = ["--headless", "--worker", "--master-host", host, "--master-port", str(port), *(["--processes", str(processes)] if processes > 1 else [])]
    with tempfile.TemporaryDirectory(prefix="tritongen-load-") as name:
        folder = Path(name)
        reports = folder / "reports.jsonl"
        reports.touch()
        say(f"waits for a master at {host}:{port}")
        with locust(folder, options, None, tool_version, access) as process, reports.open(encoding="utf-8") as file:
            seen, end = _Seen(), time.monotonic() + max_wait_s
            while True:
                ended = process.poll() is not None
                for line in file:
                    if text := seen.take(line):
                        say(text)
                if ended or (seen.connected < processes and time.monotonic() > end):
                    break
                time.sleep(_POLL_S)
            _judge(seen, process, f"{host}:{port}", processes, folder)


def _judge(seen: _Seen, process: subprocess.Popen[bytes], master: str, processes: int, folder: Path) -> None:
    """Raise what stands against calling it done."""
    if seen.refused:
        raise EnvironmentProblem(f"the master at {master} turned this worker away: {seen.refused}", hint="start the master's next run first, then its workers")
    if seen.connected < processes and process.returncode is None:
        raise EnvironmentProblem(
            f"no master answers at {master}", hint="start one with `tritongen load MODEL -u URL --master --expect-workers N`, and look whether its port is open"
        )
    if seen.connected < processes or process.returncode not in (0, None):
        raise EnvironmentProblem(f"Locust ended with status {process.returncode}: {last_words(folder)}")
    if seen.over < processes:
        raise EnvironmentProblem(f"the master at {master} ended before the run was over")
