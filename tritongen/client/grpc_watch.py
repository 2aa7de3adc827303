"""What a blocking channel says of its connection: whether there is one, and whether one was lost meanwhile; and its end.

gRPC gives a call that found no connection, one that lost its own and one that Triton answered with UNAVAILABLE the same status.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import grpc

NOTICED_S = 0.02
"""Seconds within which a channel says that its connection is gone, after a call said so: measured as 0 to 5 ms."""

_ENOUGH_S = 1.0


class Watch:
    """Follows a channel's state once `start` was called. `ready` and `losses` may be read at any time: reading them costs a request nothing.

    Attributes:
        ready: there is a connection, as far as the channel knows.
        losses: how many connections were lost since the start.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self.ready = False
        self.losses = 0
        self._channel = channel
        self._changed = threading.Condition()
        self._is_started = False
        self._is_stopped = False
        self._is_failing = False
        self._is_blind = False

    def start(self) -> None:
        """Listen to the channel; once is enough. Raises ValueError where it was closed."""
        with self._changed:
            if self._is_started:
                return
            self._is_started = True
            self._is_blind = _would_stop_greenlets()
        if not self._is_blind:
            self._channel.subscribe(self._listen)

    def stop(self) -> None:
        """Close the channel: its calls end at once. gRPC then waits, for up to 0.2 s, until it looks for no more news, which nobody else needs to wait for."""
        with self._changed:
            is_started, self._is_started = self._is_started, True
            self._is_stopped, self.ready = True, False
        if is_started:
            threading.Thread(target=self._channel.close, name="tritongen-close", daemon=True).start()
        else:
            self._channel.close()

    def wait_ready(self, seconds: float) -> None:
        """Wait for the news of a connection that was just made, which another thread brings."""
        with self._changed:
            self.ready |= self._is_blind
            self._changed.wait_for(lambda: self.ready, min(max(seconds, 0.0), _ENOUGH_S))

    def lost_since(self, losses: int) -> bool:
        """Whether a call that began when `losses` were counted, and ended now, may have ended since its connection did, or since none could be made."""
        if self._is_blind:
            self.ready = False  # the next call finds out
            return True
        with self._changed:
            return self._changed.wait_for(lambda: self.losses != losses or self._is_failing, NOTICED_S) or not self.ready

    def _listen(self, state: Any) -> None:
        with self._changed:
            is_ready = state is grpc.ChannelConnectivity.READY and not self._is_stopped
            self.losses += self.ready and not is_ready
            self.ready = is_ready
            self._is_failing = state is grpc.ChannelConnectivity.TRANSIENT_FAILURE
            self._changed.notify_all()


def _would_stop_greenlets() -> bool:
    """Whether the thread that gRPC waits for news in would be a greenlet that never gives way: gevent has patched threads, and gRPC was not told of it."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        return False
    from grpc._cython import cygrpc  # nothing public says whether it was told

    return not cygrpc.g_gevent_activated
