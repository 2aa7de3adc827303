"""When an answer reached this machine, which is before this process came to read it: Linux writes it down for each packet, and tells it on request.

In between, the answer waits for a core that wakes up, for the event loop, and for answers that are read before it: that is no part of the server's time.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

_TIMESTAMPNS = 35
"""`SO_TIMESTAMPNS`, and the type of what is told for it (Linux's `asm-generic/socket.h`): Python has no name for it."""
_STAMP = struct.Struct("qq")
"""`struct timespec`: seconds and nanoseconds since 1970."""
_ROOM = socket.CMSG_SPACE(_STAMP.size)


class StampedSocket(socket.socket):
    """A socket that knows when the last byte that was read from it had come.

    Attributes:
        arrived_s: `time.perf_counter` at that instant; that of the reading where the system does not tell it.
        unread_s: seconds from then to the reading; None where the system does not tell it.
    """

    def __init__(self, family: int, kind: int, proto: int) -> None:
        super().__init__(family, kind, proto)
        self.arrived_s = 0.0
        self.unread_s: float | None = None
        # Where there is no such option the instant of the reading stands for it, and the load test's report says so.
        with contextlib.suppress(OSError):
            self.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As any socket's."""
        data, told, _, _ = self.recvmsg(size, _ROOM, flags)
        self._note(told)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """As any socket's; asyncio reads TLS by it."""
        view = memoryview(buffer)
        size, told, _, _ = self.recvmsg_into([view[:nbytes] if nbytes else view], _ROOM, flags)
        self._note(told)
        return size

    def arrival(self, sent_s: float) -> tuple[float, float | None]:
        """`arrived_s` and `unread_s` of the answer to a request that was sent at `sent_s` of `time.perf_counter`.

        An answer that came before its request did not: the wall's clock was set while it lay here, and only the reading is sure, as where nothing is told.
        """
        if self.unread_s is not None and self.arrived_s < sent_s:
            return self.arrived_s + self.unread_s, None
        return self.arrived_s, self.unread_s

    def _note(self, told: Iterable[tuple[int, int, bytes]]) -> None:
        # The stamp is of the wall's clock, which may be set: what counts is how long ago it was. That clock is read first, so that what comes between the two
        # makes the answer later, and never earlier than it was.
        wall, now = time.time_ns(), time.perf_counter()
        self.arrived_s, self.unread_s = now, None
        for level, kind, content in told:
            if level == socket.SOL_SOCKET and kind == _TIMESTAMPNS:
                seconds, nanoseconds = _STAMP.unpack(content)
                self.unread_s = max(wall - seconds * 1_000_000_000 - nanoseconds, 0) / 1e9
                self.arrived_s = now - self.unread_s
