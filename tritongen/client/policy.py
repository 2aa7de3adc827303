"""When to stop, when to try again, and where: the deadline of a call, the retry budget, the choice among several servers. No I/O."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection
from numbers import Real

from tritongen.diagnostics import Diagnostic, shown
from tritongen.errors import InputError

LONGEST_S = 1_000_000.0
"""Eleven days: a limit that means none, and that every clock underneath can count."""

PROBE_S = 2.0
"""Seconds for a question of the client's own. A server that says nothing about its health for so long is taken for one that hangs, where there are others."""

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_BUDGET = 10.0
_EARNED = 0.1
_REST_S = 1.0
_LONGEST_REST_S = 30.0
_LACKING_S = 5.0


class Deadline:
    """The moment when a call must be over, with all its retries.

    Attributes:
        seconds: how long it was given.
        end: that moment, on `time.monotonic`.
    """

    __slots__ = ("end", "seconds")

    def __init__(self, seconds: float) -> None:
        """`seconds` from now. Raises InputError (TG067) for a limit that cannot be kept."""
        is_number = type(seconds) in (float, int) or (isinstance(seconds, Real) and not isinstance(seconds, bool))
        if not is_number or not 0 < seconds <= LONGEST_S:
            hint = f"give a number of seconds above 0 and up to {LONGEST_S:.0f}"
            raise InputError([Diagnostic("TG067", f"a time limit of {shown(seconds)} s cannot be kept", hint=hint)])
        self.seconds: float = float(seconds)
        self.end: float = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds until then; 0 or less afterwards."""
        return self.end - time.monotonic()

    def left_at(self, moment: float) -> float:
        """Seconds between a moment on `time.monotonic` and then."""
        return self.end - moment


def pause_before(attempt: int) -> float:
    """Seconds before the retry with this number, from 1: growing by two, with full jitter, so that many clients do not come back at once."""
    return random.uniform(0, min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S))  # noqa: S311 - no secret


class Budget:
    """Limits retries to a tenth of the requests that succeed, beside a first ten: a server that fails is not stormed by those who ask again.

    Attributes:
        is_full: nothing more can be earned.
    """

    def __init__(self) -> None:
        self.is_full = True
        self._tokens = _BUDGET
        self._lock = threading.Lock()

    def earn(self) -> None:
        """A request succeeded."""
        with self._lock:
            self._tokens = min(self._tokens + _EARNED, _BUDGET)
            self.is_full = self._tokens == _BUDGET

    def take(self) -> bool:
        """Whether one more retry may be made; it is counted then."""
        with self._lock:
            if self._tokens < 1:
                return False
            self._tokens -= 1
            self.is_full = False
            return True


class Balancer:
    """Which of several equal servers is asked next: one after another, leaving out for a while those that could not be reached.

    A server is trusted while it answers. One that was lost rests, longer each time; afterwards it is asked whether it lives before a request is sent to it.
    One that had not got a model ready is left out for that model's requests for five seconds, since models come and go.

    Attributes:
        trusted: of each server, whether it answered the last time.
    """

    def __init__(self, count: int) -> None:
        self.trusted = [False] * count
        self._resting_until = [0.0] * count
        self._rests = [0] * count
        self._answered = [False] * count
        self._lacking_until: dict[tuple[int, str, str], float] = {}
        self._next = 0
        self._lock = threading.Lock()

    def pick(self, model: str = "", version: str = "", refused: Collection[int] = ()) -> int:
        """The index of the server to ask, for a request to a model: none of those that `refused` it, as long as there are others."""
        count = len(self._resting_until)
        if count == 1:
            return 0
        now = time.monotonic()
        with self._lock:
            order = [(self._next + step) % count for step in range(count)]
            order = [index for index in order if index not in refused] or order
            if self._lacking_until:
                self._lacking_until = {key: until for key, until in self._lacking_until.items() if until > now}
                order = [index for index in order if (index, model, version) not in self._lacking_until] or order
            chosen = next((index for index in order if self._resting_until[index] <= now), min(order, key=self._resting_until.__getitem__))
            self._next = chosen + 1
            return chosen

    def answered(self, index: int) -> None:
        """A Triton answered there."""
        self._answered[index] = self.trusted[index] = True
        self._resting_until[index] = 0.0
        self._rests[index] = 0

    def doubt(self, index: int) -> None:
        """It did not answer in time: ask whether it lives before the next request."""
        self.trusted[index] = False

    def lost(self, index: int) -> None:
        """It could not be reached. What else was under way there is lost with it, and makes its rest no longer."""
        now = time.monotonic()
        with self._lock:
            self.trusted[index] = False
            if self._resting_until[index] > now:
                return
            rest_s = min(_REST_S * 2 ** self._rests[index], _LONGEST_REST_S)
            self._resting_until[index] = now + rest_s
            self._rests[index] += rest_s < _LONGEST_REST_S

    def lacks(self, index: int, model: str, version: str) -> None:
        """It has not got the model, or not ready."""
        with self._lock:
            self._lacking_until[index, model, version] = time.monotonic() + _LACKING_S

    def found(self, model: str) -> None:
        """The model may be wherever it was not."""
        with self._lock:
            self._lacking_until = {key: until for key, until in self._lacking_until.items() if key[1] != model}

    def is_triton(self, index: int) -> bool:
        """Whether a Triton ever answered there."""
        return self._answered[index]
