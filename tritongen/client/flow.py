"""Logic without waiting: a flow is a generator that yields what must be waited for, and is written once for blocking and asyncio clients.

`run` and `run_async` are the only places that wait. A flow never sees which of them runs it.
"""

from __future__ import annotations

import asyncio
import enum
import threading
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from tritongen.client.calls import Call, Infer
from tritongen.client.policy import Deadline

T = TypeVar("T")
Headers = Mapping[str, str]
NO_HEADERS: Headers = MappingProxyType({})


@dataclass(slots=True)
class Send:
    """Send a call to the server of this index. Brings the answer, or raises CallFailed into the flow."""

    call: Call
    endpoint: int
    timeout_s: float
    headers: Headers


@dataclass(frozen=True)
class Pause:
    """Wait, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Together:
    """Run flows side by side, at most `limit` at once. Brings a list with each flow's result, or the error that it ended with, in order.

    A flow whose turn has not come when the time is over is never begun, and has NOT_BEGUN there.
    """

    flows: Sequence[Flow[Any]]
    limit: int
    deadline: Deadline


class _NotBegun(enum.Enum):
    NOT_BEGUN = enum.auto()


NOT_BEGUN = _NotBegun.NOT_BEGUN


Effect = Send | Pause | Together
Flow = Generator[Effect, Any, T]


class Transport(Protocol):
    """One protocol's way to one server."""

    def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """The answer to a call. Ends within `timeout_s` seconds; raises CallFailed."""
        ...

    def stream(self, call: Infer, timeout_s: float, headers: Headers) -> Any:
        """A generator of the replies to one request, which is cancelled when it is closed. Ends within `timeout_s` seconds; raises CallFailed."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


class AsyncTransport(Protocol):
    """`Transport` for asyncio."""

    async def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """See `Transport`."""
        ...

    def stream(self, call: Infer, timeout_s: float, headers: Headers) -> Any:
        """See `Transport`; an asynchronous iterator."""
        ...

    async def close(self) -> None:
        """See `Transport`."""
        ...


def run(flow: Flow[T], transports: Sequence[Transport]) -> T:
    """Run a flow to its end in this thread; what goes side by side runs in threads of its own."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            effect = flow.throw(error) if error is not None else flow.send(value)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        value, error = None, None
        try:
            if isinstance(effect, Send):
                value = transports[effect.endpoint].send(effect.call, effect.timeout_s, effect.headers)
            elif isinstance(effect, Pause):
                time.sleep(effect.seconds)
            else:
                value = _together(effect, transports)
        except BaseException as raised:  # noqa: BLE001 - the flow decides, and raises again what is not its own
            error = raised


def _together(effect: Together, transports: Sequence[Transport]) -> list[Any]:
    """The threads belong to this one call: it never waits for another's. Whoever interrupts it waits for none of them, and neither does Python's end."""
    outcomes: list[Any] = [NOT_BEGUN] * len(effect.flows)
    todo = deque(enumerate(effect.flows))

    def work() -> None:
        while (turn := _next_turn(todo, effect.deadline)) is not None:
            place, flow = turn
            try:
                outcomes[place] = run(flow, transports)
            except BaseException as raised:  # noqa: BLE001 - whoever asked for the flow decides
                outcomes[place] = raised

    threads = [threading.Thread(target=work, name="tritongen-parts", daemon=True) for _ in range(min(effect.limit, len(todo)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        todo.clear()
    return outcomes


def _next_turn(todo: deque[tuple[int, Flow[Any]]], deadline: Deadline) -> tuple[int, Flow[Any]] | None:
    """The next flow to run and its place; None where there is no more, or no more time."""
    if deadline.left <= 0:
        return None
    try:
        return todo.popleft()
    except IndexError:
        return None


async def run_async(flow: Flow[T], transports: Sequence[AsyncTransport]) -> T:
    """`run` for asyncio: a cancelled task cancels what it waits for."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            effect = flow.throw(error) if error is not None else flow.send(value)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        value, error = None, None
        try:
            if isinstance(effect, Send):
                value = await transports[effect.endpoint].send(effect.call, effect.timeout_s, effect.headers)
            elif isinstance(effect, Pause):
                await asyncio.sleep(effect.seconds)
            else:
                value = await _together_async(effect, transports)
        except BaseException as raised:  # noqa: BLE001 - as in `run`
            error = raised


async def _together_async(effect: Together, transports: Sequence[AsyncTransport]) -> list[Any]:
    outcomes: list[Any] = [NOT_BEGUN] * len(effect.flows)
    todo = deque(enumerate(effect.flows))

    async def work() -> None:
        while (turn := _next_turn(todo, effect.deadline)) is not None:
            place, flow = turn
            try:
                outcomes[place] = await run_async(flow, transports)
            except asyncio.CancelledError:
                raise
            except BaseException as raised:  # noqa: BLE001 - as in `_together`
                outcomes[place] = raised

    tasks = [asyncio.ensure_future(work()) for _ in range(min(effect.limit, len(todo)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return outcomes
