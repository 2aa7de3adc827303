"""A small process between tritongen and tritonserver, so that no server outlives the one who started it.

Run as `python -I -S supervisor.py <spec>`, where the spec is JSON: `argv`, `cwd`, `log`, `shm_prefix`, `folder`, `owner` (a pid). It is no part of the
package's import graph: standard library only, nothing from tritongen, since it must start in milliseconds and hold on when everything else has gone.

- Standard input is the owner's lifeline: a line `stop <seconds>` ends the server with that much patience; end of file means that the owner is gone. A pidfd on
  the owner says the same where a forked child still holds the other end of the pipe.
- Standard output carries one JSON line `{"pid": ...}` once tritonserver runs.
- It is a child subreaper: Triton's stubs come to it when tritonserver dies, and are killed here.
- At the end the server's /dev/shm regions are removed, and its folder too where the owner cannot do that any more. The exit status is tritonserver's (128 + the
  signal's number where a signal ended it).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

ORPHAN_GRACE_S = 5.0
"""Patience with a server whose owner is gone: nobody waits for its answers."""

TERM_GRACE_S = 30.0
"""Patience where the supervisor itself is asked to end; tritonserver's own `--exit-timeout-secs` is 30."""


class Supervisor:
    """One tritonserver process, watched from start to end."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.owner_gone = False
        self.child = 0
        self.status: int | None = None
        self.wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        self.asked_to_end = False
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.asked_to_end = True

    def start(self) -> None:
        """Fork and execute tritonserver in a process group of its own."""
        log = os.open(self.spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        parent = os.getpid()
        self.child = os.fork()
        if self.child == 0:
            self._become_server(log, parent)
        os.close(log)
        with contextlib.suppress(BrokenPipeError):  # the owner may be gone already; `watch` finds out
            os.write(1, json.dumps({"pid": self.child}).encode() + b"\n")

    def _become_server(self, log: int, parent: int) -> NoReturn:
        try:
            self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(125)
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(self.spec["cwd"])
            os.execv(self.spec["argv"][0], self.spec["argv"])  # noqa: S606 - an argument list of our own making
        except OSError as error:
            os.write(log, f"cannot execute {self.spec['argv'][0]}: {error}\n".encode())
        os._exit(126)

    def watch(self) -> float:
        """Wait until the server ends or must be ended; seconds of patience to end it with (0 where it ended by itself)."""
        poller = select.poll()
        poller.register(0, select.POLLIN | select.POLLHUP)
        poller.register(self.wake_read, select.POLLIN)
        owner = _pidfd(self.spec["owner"])
        if owner is not None:
            poller.register(owner, select.POLLIN)
        while not self.reap():
            if self.asked_to_end:
                return TERM_GRACE_S
            for descriptor, _event in poller.poll():
                if descriptor == self.wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self.wake_read, 4096)
                elif descriptor == 0:
                    command = os.read(0, 4096).decode().split()
                    if command[:1] == ["stop"]:
                        return float(command[1])
                    self.owner_gone = not command
                    return ORPHAN_GRACE_S
                else:
                    self.owner_gone = True
                    return ORPHAN_GRACE_S
        return 0.0

    def reap(self) -> bool:
        """Collect ended children; whether tritonserver is among those collected so far."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self.child:
                    code = os.waitstatus_to_exitcode(status)
                    self.status = code if code >= 0 else 128 - code
        return self.status is not None

    def end(self, grace_s: float) -> None:
        """End the server, softly and then hard, and everything that it started."""
        unloaded = False
        if not self.reap() and grace_s > 0:
            os.kill(self.child, signal.SIGTERM)
            unloaded = self._wait_until_unloaded(grace_s)
        if not self.reap():
            os.kill(self.child, signal.SIGKILL)
        self._kill_children()
        if unloaded:
            self.status = 0

    def _wait_until_unloaded(self, grace_s: float) -> bool:
        """Wait up to `grace_s` until tritonserver has ended or all its stubs have; a further `stop` line, or the owner's end, shortens it.

        True where the stubs were gone first: every model is finalised then (this Triton has no backend but Python's), and what follows in tritonserver is only
        a look once a second whether it may go.
        """
        deadline = time.monotonic() + grace_s
        while not self.reap() and time.monotonic() < deadline:
            if not _children(self.child):
                return True
            watched = [self.wake_read] if self.owner_gone else [self.wake_read, 0]
            ready, _, _ = select.select(watched, [], [], min(0.05, max(0.0, deadline - time.monotonic())))
            if self.wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake_read, 4096)
            if 0 in ready:
                command = os.read(0, 4096).decode().split()
                self.owner_gone = not command
                patience = float(command[-1]) if command else ORPHAN_GRACE_S
                deadline = min(deadline, time.monotonic() + patience)
        return False

    def _kill_children(self) -> None:
        """Kill what is left below this process until nothing is; stubs arrive here when tritonserver has died."""
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            self.reap()
            children = _children(os.getpid())
            if not children:
                return
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.005)

    def clean(self) -> None:
        """Remove the server's shared-memory regions, and its folder where the owner is gone."""
        prefix = self.spec["shm_prefix"]
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir("/dev/shm"):  # noqa: S108 - where shm_open keeps its regions; not a temporary file of ours
                if entry.name.startswith(prefix):
                    with contextlib.suppress(OSError):
                        os.unlink(entry.path)  # noqa: PTH108 - pathlib takes as long to import as the rest of this script
        if self.owner_gone or os.getppid() != self.spec["owner"]:
            import shutil

            shutil.rmtree(self.spec["folder"], ignore_errors=True)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the kernel or a sandbox refuses (the pipe alone tells then)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _children(pid: int) -> list[int]:
    """Process ids of the direct children of `pid`, zombies left out."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(name))
    return found


def main() -> int:
    """Start, watch, end, clean; the exit status of tritonserver."""
    supervisor = Supervisor(json.loads(sys.argv[1]))
    supervisor.start()
    grace_s = supervisor.watch()
    supervisor.end(grace_s)
    supervisor.clean()
    return 0 if supervisor.status is None else supervisor.status


if __name__ == "__main__":
    sys.exit(main())
