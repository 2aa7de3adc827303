"""How long users of plain Locust wait between two requests, where Locust has no such wait itself."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary


def random_throughput(per_second: float, *, clock: Callable[[], float] = time.perf_counter) -> Callable[[object], float]:
    """A `wait_time` of as many tasks a second as Locust's `constant_throughput`, at random instants: those of all users together are a Poisson process.

    Example, in a locustfile:
        >>> class Visitor(TritonGrpcUser):  # doctest: +SKIP
        ...     wait_time = random_throughput(5.0)

    A task that takes longer than the time until the next one is due delays that one, and the ones after it come sooner, until the user is in time again.

    Args:
        per_second: tasks of one user in a second, on average.
        clock: seconds that only grow.
    """
    due: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    def wait_time(user: object) -> float:
        now = clock()
        due[user] = due.get(user, now) + random.expovariate(per_second)
        return max(0.0, due[user] - now)

    return wait_time
