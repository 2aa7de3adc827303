"""A small process between tritongen and tritonserver, so that no server outlives the one who started it.

Run as `python -I -S supervisor.py <spec>`, where the spec is JSON: `argv`, `cwd`, `log`, `shm_prefix`, `folder`, `owner` (a pid). It is no part of the
package's import graph: standard library only, nothing from tritongen, since it must start in milliseconds and hold on when everything else has gone.

- Standard input is the owner's lifeline: a line `ready` says that all models are loaded, a line `stop <seconds>` ends the server with that much patience; end
  of file means that the owner is gone. A pidfd on the owner says the same where a forked child still holds the other end of the pipe.
- Standard output carries one JSON line `{"pid": ...}` once tritonserver runs.
- It is a child subreaper: Triton's stubs come to it when tritonserver dies, and are killed here.
- At the end the server's /dev/shm regions are removed, what it made in /tmp, and its folder too where the owner cannot do that any
  more. The exit status is tritonserver's (128 + the signal's number where a signal ended it).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
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


MADE = "made"
"""File in the server's folder that names what the server has made elsewhere, a path on each line; `runtime.sweep` reads it where this process was killed."""

EXTRACTED = re.compile(rb"/tmp/python_env_[A-Za-z0-9]{6}")
"""Where Triton's Python backend unpacks environments of models: always in /tmp, made when it is loaded, removed only when tritonserver ends by itself."""

ARENA = 64 * 2**20
"""glibc's malloc gives every thread an arena that begins at a multiple of this."""

LOOKED_AT = 2**20
"""Bytes of an arena that are searched: the backend writes the path there among the first things."""


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
        self.made: set[str] = set()
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
                    patience = self._hear()
                    if patience is not None:
                        return patience
                else:
                    self.owner_gone = True
                    return ORPHAN_GRACE_S
        return 0.0

    def _hear(self) -> float | None:
        """What the owner has to say: seconds of patience where the server is to be ended, else None."""
        lines = os.read(0, 4096).decode().splitlines()
        self.owner_gone = not lines
        for line in lines:
            if line == "ready":
                self.note_made()
            else:
                return float(line.removeprefix("stop "))
        return ORPHAN_GRACE_S if self.owner_gone else None

    def note_made(self) -> bool:
        """Find out which folder in /tmp is this server's, and write it down; whether that is known, or there is none.

        Its name is random and says nothing; the one place that tells it from those of other servers is the server's own memory.
        """
        if not self.made:
            try:
                self.made = _extraction_folders(self.child)
            except LookupError:
                return True
            except OSError:  # gone, or a sandbox forbids to look
                return False
            with open(os.path.join(self.spec["folder"], MADE), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123
                file.writelines(f"{path}\n" for path in sorted(self.made))
        return bool(self.made)

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
            self.note_made()
            os.kill(self.child, signal.SIGKILL)
        self._kill_children()
        if unloaded:
            self.status = 0

    def _wait_until_unloaded(self, grace_s: float) -> bool:
        """Wait up to `grace_s` until tritonserver has ended or all its stubs have; a further `stop` line, or the owner's end, shortens it.

        True where the stubs were gone first: every model is finalised then (this Triton has no backend but Python's), and what follows in tritonserver is only
        a look once a second whether it may go, and the removal of its folder in /tmp, which it is left to do itself where that folder is not known here.
        """
        deadline = time.monotonic() + grace_s
        while not self.reap() and time.monotonic() < deadline:
            if not _children(self.child) and self.note_made():
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
        """Remove the server's shared-memory regions, what it made in /tmp, and its folder where the owner is gone."""
        prefix = self.spec["shm_prefix"]
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir("/dev/shm"):  # noqa: S108 - where shm_open keeps its regions; not a temporary file of ours
                if entry.name.startswith(prefix):
                    with contextlib.suppress(OSError):
                        os.unlink(entry.path)  # noqa: PTH108 - pathlib takes as long to import as the rest of this script
        for path in self.made:
            _remove_own_folder(path)
        if self.owner_gone or os.getppid() != self.spec["owner"]:
            import shutil

            shutil.rmtree(self.spec["folder"], ignore_errors=True)


def _extraction_folders(pid: int) -> set[str]:
    """Paths that the Python backend holds in the memory of a server; empty where none is found. Raises LookupError where it is not loaded, OSError."""
    found: set[bytes] = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        lines = file.readlines()
    if not any(line.rstrip().endswith("/libtriton_python.so") for line in lines):
        raise LookupError
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for line in lines:
            place, rights, _offset, _device, _inode, *name = line.split()
            start, end = (int(part, 16) for part in place.split("-"))
            if rights != "rw-p" or name not in ([], ["[heap]"]):
                continue
            for first in [start] if name else range(-(-start // ARENA) * ARENA, end, ARENA):
                with contextlib.suppress(OSError):  # unmapped in the meantime
                    found.update(EXTRACTED.findall(os.pread(memory, min(LOOKED_AT, end - first), first)))
    finally:
        os.close(memory)
    return {path.decode() for path in found if os.path.isdir(path)}  # noqa: PTH112


def _remove_own_folder(path: str) -> None:
    """Remove a folder of this user's, where it is still there."""
    try:
        if os.lstat(path).st_uid == os.getuid():
            os.rmdir(path)  # noqa: PTH106
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:  # a model had its own environment unpacked there
            import shutil

            shutil.rmtree(path, ignore_errors=True)


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
