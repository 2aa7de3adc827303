"""Waking up on time: asyncio's own timers are rounded up to milliseconds, which is more than many requests take.

Linux's timerfd wakes an event loop within some 50 microseconds. Python has it from 3.13 on; before, it is called through the C library.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_CLOCK_MONOTONIC = 1
_NONBLOCK, _CLOEXEC, _ABSTIME = 0o4000, 0o2000000, 1
_SPEC = struct.Struct("qqqq")
"""`struct itimerspec`: the interval, then the time, each in seconds and nanoseconds."""


class Timer:
    """A timer on `time.perf_counter`'s clock (CLOCK_MONOTONIC), as a descriptor that becomes readable when it is over."""

    def __init__(self) -> None:
        """Raises OSError where the system has no timerfd."""
        if sys.version_info >= (3, 13):
            self._fd = os.timerfd_create(_CLOCK_MONOTONIC, flags=os.TFD_NONBLOCK | os.TFD_CLOEXEC)
        else:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK | _CLOEXEC)
            if self._fd < 0:
                raise OSError(ctypes.get_errno(), "there is no timerfd")

    def fileno(self) -> int:
        """The descriptor."""
        return int(self._fd)

    def set(self, instant: float) -> None:
        """Become readable at this instant of `time.perf_counter`; at once where it has passed."""
        nanoseconds = max(int(instant * 1e9), 1)
        if sys.version_info >= (3, 13):
            os.timerfd_settime_ns(self._fd, flags=os.TFD_TIMER_ABSTIME, initial=nanoseconds, interval=0)
            return
        value = _SPEC.pack(0, 0, nanoseconds // 1_000_000_000, nanoseconds % 1_000_000_000)
        if self._libc.timerfd_settime(self._fd, _ABSTIME, value, None):
            raise OSError(ctypes.get_errno(), "the timer cannot be set")

    def clear(self) -> None:
        """Take note that it was over."""
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)
