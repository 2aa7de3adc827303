"""As many connections as the requests under way need, up to a limit. Knows neither protocol: each brings a `Wire`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Protocol

from tritongen.client import calls
from tritongen.client.calls import CallFailed, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.result import Result
from tritongen.errors import ConnectionFailed
from tritongen.load.wire.answer import Answer, Prepared, failed
from tritongen.load.wire.dial import Dialer, Dialled
from tritongen.load.wire.stamped import StampedSocket

OPEN_S = 10.0
"""Seconds for the first connection."""

_REST_S = 0.05
"""Seconds without another attempt after one that failed: each leaves asyncio's garbage behind, which a load test does not collect."""


class Connection(Dialled, Protocol):
    """One connection, open from when it is connected."""

    usable: bool
    """False from when it takes no more requests, for whatever reason."""

    places: int
    """Requests that it takes now; 0 when it is full or not usable."""

    def exchange(self, prepared: Prepared, timeout_s: float, keep: bool) -> asyncio.Future[Answer]:
        """Send a request. The future always gets an answer, within `timeout_s` seconds. Needs a place."""
        ...

    def cancel(self, answer: asyncio.Future[Answer]) -> None:
        """Nobody waits for this answer any longer."""
        ...


class Owner(Protocol):
    """What a connection tells the pool that it belongs to."""

    def freed(self, connection: Connection) -> None:
        """It has a place more."""
        ...

    def retired(self, connection: Connection) -> None:
        """It is not usable any longer; those under way may still be answered. May be told more than once."""
        ...

    def lost(self, connection: Connection) -> None:
        """It is closed."""
        ...


class Wire(NamedTuple):
    """A protocol on the wire.

    Attributes:
        alpn: what must be agreed on over TLS; empty where nothing need be.
        shared: a connection has places for many requests, which therefore wait for one that is being made.
        connection, prepare, decode: see `Connection` and `Sender`.
    """

    alpn: str
    shared: bool
    connection: Callable[[Owner, StampedSocket], Connection]
    prepare: Callable[[calls.Infer, Endpoint, Access], Prepared]
    decode: Callable[[Answer], Result]


class Sender(Protocol):
    """What a load test sends with; `Pool` is one."""

    async def open(self, timeout_s: float = OPEN_S) -> None:
        """Make sure that the server is there. Raises ConnectionFailed."""
        ...

    def prepare(self, call: calls.Infer) -> Prepared:
        """The bytes of a request. Raises InvalidInput for one that cannot be sent."""
        ...

    async def send(self, prepared: Prepared, timeout_s: float, *, keep: bool = False) -> Answer:
        """Send a request and wait for its answer, for at most `timeout_s` seconds."""
        ...

    def decode(self, answer: Answer) -> Result:
        """The arrays of an answer that was kept. Raises CallFailed where it holds none."""
        ...

    async def close(self) -> None:
        """End every connection; requests under way are answered `connection`."""
        ...


class Pool(Sender):
    """Connections to one server, made in the event loop that opens it.

    A request takes a connection that has a place; where there is none another one is opened, up to the limit, and at the limit it waits for its turn, in order.
    What was lost is opened again by the next request that needs it. Time for all of that counts against the request's limit. After a connection that could not
    be made none is tried for a moment, in which requests fail for the same reason.
    """

    def __init__(self, endpoint: Endpoint, access: Access, wire: Wire, limit: int) -> None:
        """`limit`: connections at once. Raises InputError (TG069) where a TLS file cannot be used."""
        self._endpoint, self._access, self._wire, self._limit = endpoint, access, wire, limit
        self._dialer = Dialer(endpoint, access, wire.alpn)
        self._connections: set[Connection] = set()
        self._retired: set[Connection] = set()
        self._free: dict[Connection, None] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._dialing = 0
        self._refusal: CallFailed | None = None
        self._rests_until = 0.0
        self._closed = False

    async def __aenter__(self) -> Pool:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.close()

    async def open(self, timeout_s: float = OPEN_S) -> None:
        """See `Sender`."""
        try:
            await self._dial(timeout_s)
        except CallFailed as failure:
            hint = f"is a Triton listening at {self._endpoint.url}?"
            raise ConnectionFailed(f"{self._endpoint.url}: {failure.said}", status=failure.word, hint=hint, sent=False) from failure

    def prepare(self, call: calls.Infer) -> Prepared:
        """See `Sender`."""
        return self._wire.prepare(call, self._endpoint, self._access)

    async def send(self, prepared: Prepared, timeout_s: float, *, keep: bool = False) -> Answer:
        """See `Sender`. Fails by the answer's outcome, never by an exception."""
        free = self._free
        connection = free.popitem()[0] if free and not self._waiters else None
        if connection is None or not connection.places:
            start = time.monotonic()
            try:
                connection = await self._place(start + timeout_s)
            except CallFailed as failure:
                return failed(failure, received_s=time.perf_counter())
            timeout_s -= time.monotonic() - start
        answer = connection.exchange(prepared, timeout_s, keep)
        if connection.places:
            free[connection] = None
        try:
            return await answer
        except asyncio.CancelledError:
            connection.cancel(answer)
            raise

    def decode(self, answer: Answer) -> Result:
        """See `Sender`."""
        return self._wire.decode(answer)

    async def close(self) -> None:
        """See `Sender`."""
        self._closed = True
        for connection in [*self._connections, *self._retired]:
            connection.close(_closed())
        self._wake(len(self._waiters))
        await asyncio.sleep(0)  # transports end in the loop's next turn

    def freed(self, connection: Connection) -> None:
        """See `Owner`."""
        if connection in self._connections:
            self._free[connection] = None
            self._wake(connection.places)

    def retired(self, connection: Connection) -> None:
        """See `Owner`."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._retired.add(connection)
            self._free.pop(connection, None)
            self._wake(1)

    def lost(self, connection: Connection) -> None:
        """See `Owner`."""
        self._retired.discard(connection)

    async def _place(self, end: float) -> Connection:
        """A connection with a place. `end` is an instant of `time.monotonic`. Raises CallFailed."""
        called, dialled = not self._waiters, False
        while not self._closed:
            while called and self._free:
                connection = self._free.popitem()[0]
                if connection.places:
                    return connection
            if called and not dialled and self._may_dial():
                await self._dial(end - time.monotonic())
                dialled = True
            else:
                await self._turn(end, first=called)
                called, dialled = True, False
        raise _closed()

    def _may_dial(self) -> bool:
        return len(self._connections) + self._dialing < self._limit and not (self._wire.shared and self._dialing)

    async def _dial(self, timeout_s: float) -> None:
        """One connection more. Raises CallFailed."""
        if self._refusal is not None and time.monotonic() < self._rests_until:
            self._wake(1)
            raise _again(self._refusal)
        self._dialing += 1
        try:
            connection = await self._dialer.connect(lambda sock: self._wire.connection(self, sock), timeout_s)
        except CallFailed as failure:
            if failure.status is not Status.DEADLINE:
                self._refusal, self._rests_until = _again(failure), time.monotonic() + _REST_S
            raise
        finally:
            self._dialing -= 1
            self._wake(1)
        if self._closed:
            connection.close(_closed())
            raise _closed()
        if not connection.usable:
            raise CallFailed(Status.CONNECTION, "", "the connection was closed at once", sent=False, own=False)
        self._connections.add(connection)
        if connection.places:
            self.freed(connection)

    async def _turn(self, end: float, *, first: bool) -> None:
        """Wait until something changed, before the others where another request was faster. Raises CallFailed when `end` has come."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        (self._waiters.appendleft if first else self._waiters.append)(waiter)
        timer = loop.call_later(max(end - time.monotonic(), 0.0), _late, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._wake(1)
            raise
        finally:
            timer.cancel()
            self._waiters.remove(waiter)

    def _wake(self, count: int) -> None:
        """Let so many look for a place. Each stays in the queue until it has looked, so that nobody overtakes it."""
        for waiter in self._waiters:
            if count <= 0:
                break
            if not waiter.done():
                waiter.set_result(None)
                count -= 1


def _closed() -> CallFailed:
    return CallFailed(Status.CONNECTION, "CLOSED", "the pool is closed", sent=False)


def _again(failure: CallFailed) -> CallFailed:
    """The same without the frames that it came through, which would keep it and each other alive."""
    return CallFailed(failure.status, failure.word, failure.said, sent=failure.sent, own=failure.own)


def _late(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(CallFailed(Status.DEADLINE, "", "no connection had a place in time", sent=False))
