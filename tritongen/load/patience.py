"""Ctrl-C while a run is being put away: what was measured is kept, however often it is pressed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Patience:
    """While its block runs, signals that ask for the end raise nothing; `hurry` says whether one came."""

    def __init__(self) -> None:
        self._came = False
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | None] = {}

    def __enter__(self) -> Patience:
        if threading.current_thread() is threading.main_thread():  # Python delivers signals to no other
            self._before = {number: signal.signal(number, self._note) for number in _ASKED if signal.getsignal(number) is not signal.SIG_IGN}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hurry(self) -> bool:
        """Whether the end was asked for again."""
        return self._came

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True
