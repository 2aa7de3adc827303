"""The queue of one model: what its policies are when everything is derived, and what a wait does to the time that was promised. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tritongen.spec.queue import Queue, QueuePolicy
from tritongen.spec.slo import Slo
from tritongen.spec.units import duration_text

LARGE_SHARE = 0.5
"""A queue delay that takes more than this part of the promised time leaves too little for the execution."""


@dataclass(frozen=True)
class Policy:
    """One queue policy of the config.

    Attributes:
        max_queue_size: most requests that wait at once; 0 for no limit.
        timeout_us: how long a request may wait, in microseconds; 0 for ever.
        delays: whether a request whose time is over is served after all others; else it is rejected.
        overridable: whether a request may state a shorter time.
    """

    max_queue_size: int = 0
    timeout_us: int = 0
    delays: bool = False
    overridable: bool = False

    @classmethod
    def stated(cls, policy: QueuePolicy) -> Policy:
        """What a policy of the spec says."""
        return cls(policy.max_queue_size or 0, policy.default_timeout_us or 0, policy.timeout_action == "delay", bool(policy.allow_timeout_override))

    @property
    def is_empty(self) -> bool:
        """Whether requests wait as they would without it: the rest has an effect on a time that is over only."""
        return not (self.max_queue_size or self.timeout_us)


@dataclass(frozen=True)
class Overload:
    """The limits of `overload: reject`, and how they came about.

    One full batch for each copy waits while another is executed, so that a request waits for one execution and is part of the next: both fit into the promised
    time where the execution takes half of it. A request that finds no company waits for the queue delay at least, and needs room beside it.

    Attributes:
        max_queue_size: most requests that wait at once.
        timeout_us: how long they may, in microseconds.
        waiting: what the first one is.
        lasting: what the second one is.
        is_late: whether it leaves nothing of the promised time.
    """

    max_queue_size: int
    timeout_us: int
    waiting: str
    lasting: str
    is_late: bool

    def bound(self, policy: Policy) -> Policy:
        """A policy with the limits that it does not state itself."""
        return replace(policy, max_queue_size=policy.max_queue_size or self.max_queue_size, timeout_us=policy.timeout_us or self.timeout_us)

    def describe(self, stated: QueuePolicy, place: str) -> str:
        """What waits, and for how long, under a policy of the spec that stands at `place`."""
        policy = self.bound(Policy.stated(stated))
        waiting = f"{place}.max_queue_size" if stated.max_queue_size else self.waiting
        lasting = f"{place}.default_timeout" if stated.default_timeout_us else self.lasting
        requests = "1 request waits" if policy.max_queue_size == 1 else f"{policy.max_queue_size} requests wait"
        return f"at most {requests} ({waiting}), for at most {duration_text(policy.timeout_us)} ({lasting})"


_ROOM = 2
"""A queue delay is over that much earlier than the time that a request may wait: Triton looks at both when it wakes up, and rejects first."""


def overload_limits(slo: Slo, *, rows: int, delay_us: int, copies: int) -> Overload:
    """The limits that keep the requests which are served within the slo's shortest time.

    Args:
        slo: what was promised.
        rows: the batch that is formed under load; 1 for a model that does not batch.
        delay_us: how long a batch is waited for, in microseconds.
        copies: executions that can run at once.
    """
    key, limit_us = slo.tightest
    each = f"one batch of {rows}" if rows > 1 else "one request"
    waiting = f"{each} for {'the copy' if copies == 1 else f'each of {copies} copies'}"
    half = f"half of slo.{key}: {duration_text(limit_us)}{', rounded down' if limit_us % 2 else ''}"
    timeout_us = max(1, limit_us // 2, _ROOM * delay_us)
    lasting = half if timeout_us == limit_us // 2 else f"twice batching.max_queue_delay: {duration_text(delay_us)}"
    return Overload(rows * copies, timeout_us, waiting, lasting, is_late=timeout_us >= limit_us)


@dataclass(frozen=True)
class Wait:
    """Something that makes a request wait, and what it does to the time that was promised."""

    message: str
    consequence: str
    is_late: bool


def judge_delay(delay_us: int, slo: Slo) -> Wait | None:
    """What a queue delay does to the slo's shortest time; None where it leaves enough of it."""
    key, limit_us = slo.tightest
    delay, limit = duration_text(delay_us), f"slo.{key}: {duration_text(limit_us)}"
    if delay_us >= limit_us:
        consequence = f"a request that finds no company waits {delay} before it is executed at all, and is answered too late"
        return Wait(f"max_queue_delay is {delay}, which is not below {limit}", consequence, is_late=True)
    if delay_us > LARGE_SHARE * limit_us:
        rest = duration_text(limit_us - delay_us)
        consequence = f"a request that finds no company has {rest} left for its execution and the network"
        return Wait(f"max_queue_delay is {delay}, {100 * delay_us // limit_us} % of {limit}", consequence, is_late=False)
    return None


def judge_timeout(timeout_us: int, *, delay_us: int, slo: Slo | None) -> Iterator[Wait]:
    """What is wrong with the time that a request may wait: it is longer than what was promised, or over before a batch is formed."""
    timeout = duration_text(timeout_us)
    if slo is not None and timeout_us >= slo.tightest[1]:
        key, limit_us = slo.tightest
        consequence = f"a request that waited just below {timeout} is still executed, and answered too late"
        yield Wait(f"requests may wait {timeout}, which is not below slo.{key}: {duration_text(limit_us)}", consequence, is_late=True)
    if 0 < timeout_us <= delay_us:
        consequence = "a request that finds no company is timed out before its batch is formed, however idle the server is"
        yield Wait(f"requests may wait {timeout}, which is not above max_queue_delay: {duration_text(delay_us)}", consequence, is_late=True)


def policies(queue: Queue, overload: Overload | None) -> tuple[Policy, dict[int, Policy]]:
    """The policy of all requests, and those of single priority levels, with what `overload` adds to them."""
    default, levels = Policy.stated(queue), {level: Policy.stated(policy) for level, policy in sorted(queue.priority_queue_policy.items())}
    if overload is None:
        return default, levels
    return overload.bound(default), {level: overload.bound(policy) for level, policy in levels.items()}
