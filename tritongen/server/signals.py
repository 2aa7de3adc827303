"""Ending on Ctrl-C, SIGTERM and SIGHUP: cleanly once, at once when asked again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tritongen.server.embedded import EmbeddedServer


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise KeyboardInterrupt like Ctrl-C, so that a server is stopped on the way out, even while it starts.

    A signal that this process ignores (`nohup`), or handles in a way of its own, is left alone.
    Does nothing in a thread other than the main one, where Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    earlier = {number: handler for number in asked if (handler := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler)}
    for number in earlier:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def run_until_stopped(server: EmbeddedServer) -> int | None:
    """Wait until the server ends or a signal asks for its end, and stop it; the server's exit status, or None where a signal ended it.

    A second signal does not wait for requests in flight.
    """
    try:
        status = server.wait()
    except KeyboardInterrupt:
        try:
            server.stop()
        except KeyboardInterrupt:
            server.stop(grace_s=0.0)
        return None
    server.stop()
    return status


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
