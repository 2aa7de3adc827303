"""tritonserver as a process: started under the supervisor, ended through it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import weakref
from pathlib import Path

from tritongen.errors import EnvironmentProblem
from tritongen.server.runtime import Runtime

STOP_GRACE_S = 10.0
"""Seconds that a server gets to finish what it is doing before it is killed."""

_START_TIMEOUT_S = 20.0


class ServerProcess:
    """A running tritonserver and its supervisor. The server ends when this process does, however it does."""

    def __init__(self, argv: list[str], variables: dict[str, str], runtime: Runtime) -> None:
        spec = {
            "argv": argv,
            "cwd": str(runtime.cwd),
            "log": str(runtime.log),
            "shm_prefix": runtime.shm_prefix,
            "folder": str(runtime.folder),
            "owner": os.getpid(),
        }
        script = Path(__file__).with_name("supervisor.py")
        with runtime.log.open("ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(script), json.dumps(spec)],
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal goes to the whole foreground group; the server is stopped by us, once
            )
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _abandon, self._supervisor, self._owner, runtime)
        self.pid = self._read_pid(runtime)

    def _read_pid(self, runtime: Runtime) -> int:
        assert self._supervisor.stdout is not None
        ready, _, _ = select.select([self._supervisor.stdout], [], [], _START_TIMEOUT_S)
        line = self._supervisor.stdout.readline() if ready else b""
        if not line:
            detail = runtime.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            self._finalizer()
            raise EnvironmentProblem(f"the server's supervisor did not start: {detail[-1] if detail else 'no message'}")
        return int(json.loads(line)["pid"])

    def note_ready(self) -> None:
        """Tell the supervisor that all models are loaded: it can find out now what the server has made outside its folder."""
        assert self._supervisor.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._supervisor.stdin.write(b"ready\n")
            self._supervisor.stdin.flush()

    def poll(self) -> int | None:
        """The server's exit status, or None while it runs."""
        return self._supervisor.poll()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the server's end; its exit status, or None where the time went by first."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._supervisor.wait(timeout_s)
        return None

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """End the server: SIGTERM, and SIGKILL after `grace_s`. Stopping twice is fine; a forked copy of the process that started it stops nothing."""
        self._finalizer.detach()
        _end(self._supervisor, self._owner, grace_s)


def _abandon(supervisor: subprocess.Popen[bytes], owner: int, runtime: Runtime) -> None:
    """End a server that nobody has stopped, when its handle is forgotten or the interpreter ends."""
    _end(supervisor, owner, STOP_GRACE_S)
    if os.getpid() == owner:
        runtime.remove()


def _end(supervisor: subprocess.Popen[bytes], owner: int, grace_s: float) -> None:
    """Ask the supervisor to end the server, and wait for it."""
    if os.getpid() != owner:
        return
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    if supervisor.stdin.closed:
        return
    with contextlib.suppress(BrokenPipeError):
        supervisor.stdin.write(f"stop {grace_s}\n".encode())
        supervisor.stdin.flush()
    supervisor.wait()
    with contextlib.suppress(BrokenPipeError):
        supervisor.stdin.close()
    supervisor.stdout.close()
