"""Logic without waiting: a flow is a generator that yields what must be waited for, and is written once for blocking and asyncio clients.

`run` and `run_async` are the only places that wait. A flow never sees which of them runs it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from tritongen.client.calls import Call, Infer, Reply

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
    """Run flows side by side, at most `limit` at once. Brings a list with each flow's result, or the error that it ended with, in order."""

    flows: Sequence[Flow[Any]]
    limit: int


Effect = Send | Pause | Together
Flow = Generator[Effect, Any, T]


class Transport(Protocol):
    """One protocol's way to one server."""

    def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """The answer to a call. Ends within `timeout_s` seconds; raises CallFailed."""
        ...

    def stream(self, call: Infer, timeout_s: float, headers: Headers) -> Any:
        """An iterator over the replies to one request. Ends within `timeout_s` seconds; raises CallFailed."""
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
    """The threads belong to this one call: it never waits for another's."""
    with ThreadPoolExecutor(min(effect.limit, len(effect.flows)), thread_name_prefix="tritongen-parts") as pool:
        futures = [pool.submit(run, flow, transports) for flow in effect.flows]
        return [_outcome(future) for future in futures]


def _outcome(future: Future[Any]) -> Any:
    error = future.exception()
    if error is not None and not isinstance(error, Exception):
        raise error
    return future.result() if error is None else error


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
    places = asyncio.Semaphore(effect.limit)

    async def one(flow: Flow[Any]) -> Any:
        async with places:
            return await run_async(flow, transports)

    tasks = [asyncio.ensure_future(one(flow)) for flow in effect.flows]
    try:
        return await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for task in tasks:
            task.cancel()


__all__ = ["AsyncTransport", "Effect", "Flow", "Pause", "Reply", "Send", "Together", "Transport", "run", "run_async"]
