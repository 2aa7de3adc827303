"""Plain Locust in processes of its own, as a user runs it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOON_S = 120
"""Within which a process has ended that has nothing to wait for, on a machine that does other things too."""
LONGEST_S = 60
"""For a test that ends when there were enough requests in each row of Locust's table: on a slow machine, preparing alone may take seconds."""


@dataclass
class Ran:
    """What Locust left: its exit code, the rows of its table by type and name, and what it said."""

    code: int
    rows: dict[tuple[str, str], dict[str, float]]
    said: str

    def requests(self, kind: str, name: str) -> tuple[int, int]:
        """How many requests there were, and how many failed."""
        row = self.rows[kind, name]
        return row["num_requests"], row["num_failures"]

    def size(self, kind: str, name: str) -> float:
        """Bytes of an answer, on average."""
        row = self.rows[kind, name]
        return row["total_content_length"] / row["num_requests"]


class Locust:
    """Locust in a process of its own, without a web page."""

    def __init__(self, folder: Path, files: str, *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-m", "locust", "-f", files, "--headless", "--json-file", str(folder / "out"), *map(str, arguments)]
        plain = {name: value for name, value in os.environ.items() if name not in ("MODEL", "ROWS", "SHAPES")}
        self.folder = folder
        self.process = subprocess.Popen(
            command,
            env={**plain, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self, seconds: float) -> Ran:
        try:
            said, _ = self.process.communicate(timeout=seconds)
        finally:
            self.process.kill()
            self.process.wait()
        table = self.folder / "out.json"
        rows = json.loads(table.read_text()) if table.exists() else []
        return Ran(self.process.returncode, {(row["method"], row["name"]): row for row in rows}, said)


ENOUGH = """
import gevent
from locust import events

stopped = []


@events.init.add_listener
def count(environment, **_):
    @environment.events.request.add_listener
    def enough(**_):
        rows = environment.stats.entries.values()
        if not stopped and len(rows) == {rows} and min(row.num_requests for row in rows) >= {requests}:
            stopped.append(gevent.spawn(environment.runner.quit))
"""
