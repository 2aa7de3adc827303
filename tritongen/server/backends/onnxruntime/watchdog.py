"""Ending a stub when its server has died: a stub whose tritonserver was killed would otherwise stay while a request runs."""

from __future__ import annotations

import os
import select
import threading


def follow_parent() -> None:
    """End this process as soon as its parent ends. The thread sleeps in the kernel until then and never takes the GIL."""
    try:
        parent = os.pidfd_open(os.getppid())
    except OSError:
        return  # the kernel or a sandbox has no pidfd; the stub's own check, three times a second, remains
    threading.Thread(target=_wait_and_exit, args=(parent,), name="tritongen-watchdog", daemon=True).start()


def _wait_and_exit(parent: int) -> None:
    poller = select.poll()
    poller.register(parent, select.POLLIN)
    poller.poll()
    os._exit(1)
