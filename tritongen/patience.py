"""Work that signals must not break off in the middle: what was measured is kept, and a model is put in place whole, however often Ctrl-C is pressed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Patience:
    """While its block runs, signals that ask for the end raise nothing; `hurry` says whether one came. `came`: the first of them."""

    def __init__(self) -> None:
        self.came: int | None = None
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
        return self.came is not None

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.came = self.came or number


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals that ask for the end take effect where the block ends."""
    patience = Patience()
    try:
        with patience:
            yield
    finally:
        if patience.came is not None:
            signal.raise_signal(patience.came)


@contextlib.contextmanager
def all_or_nothing() -> Iterator[contextlib.ExitStack]:
    """Collects what takes each step back; it is done, the last step first, where a later one fails. Signals come before all of them or after."""
    with uninterrupted(), contextlib.ExitStack() as undo:
        yield undo
        undo.pop_all()
