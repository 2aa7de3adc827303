"""HTTP/1.1 for load tests: one request at a time on a connection that is kept alive. Parsed by httptools; tensors are never read."""

from __future__ import annotations

import asyncio
import re
import time

import httptools

from tritongen.client import calls
from tritongen.client import http_codec as codec
from tritongen.client.calls import CallFailed, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.result import Result
from tritongen.load.wire.answer import Answer, Outcome, Prepared, failed
from tritongen.load.wire.pool import Owner, Wire
from tritongen.load.wire.stamped import StampedSocket

_OUTPUTS = re.compile(rb'"outputs"\s*:\s*\[\s*\{')
"""What every answer to an inference has in its JSON, which stands before all tensors: searched for, since parsing it would cost more than all the rest."""
_SPLIT = 32
"""Bytes at the end of a piece in which the words may begin that the next one goes on with."""
_MOST_ERROR_BYTES = 65_536
"""Bytes of an error's body that are kept for its text."""
_PIECE = 262_144
"""Bytes of a request that are handed over at once. What the system does not take is copied, and a server that is too slow has a thousand requests waiting."""


def prepare(call: calls.Infer, endpoint: Endpoint, access: Access) -> Prepared:
    """A request as bytes."""
    message = codec.request(call)
    body = message.body or b""
    headers = {
        **access.headers,
        **{name.lower(): value for name, value in message.headers.items()},
        "host": endpoint.authority,
        "content-length": str(len(body)),
    }
    lines = [f"{message.method} {message.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return Prepared(b"".join(["\r\n".join(lines).encode("ascii"), b"\r\n\r\n", body]))


def decode(answer: Answer) -> Result:
    """The arrays of an answer that was kept. Raises CallFailed where it holds none."""
    return codec.infer_reply(int(answer.status or 0), answer.headers, answer.payload or b"", 0.0, answer.received_s - answer.sent_s)


class Http1Connection(asyncio.Protocol):
    """See `Connection`. The methods `on_...` are httptools' callbacks."""

    def __init__(self, owner: Owner, sock: StampedSocket) -> None:
        self.usable, self.places = True, 0
        self._owner, self._sock = owner, sock
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[CallFailed | None] = self._loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._clear()

    def _clear(self) -> None:
        """As before an answer."""
        self._keep = self._store = self._complete = self._begun = self._framed = self._spoiled = self._alive = False
        self._size = self._status = 0
        self._body: list[bytes] = []
        self._named, self._searched = False, b""
        self._headers: dict[str, str] = {}
        self._sent_s = 0.0
        self._rest = memoryview(b"")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.places = 1
        self.ready.set_result(None)

    def exchange(self, prepared: Prepared, timeout_s: float, keep: bool) -> asyncio.Future[Answer]:
        """See `Connection`."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self.places = 0
        self._answer, self._keep = answer, keep
        self._timer = self._loop.call_later(timeout_s, self._expire)
        self._sent_s = time.perf_counter()
        self._rest = memoryview(prepared.head)
        self._write()
        return answer

    def cancel(self, answer: asyncio.Future[Answer]) -> None:
        """See `Connection`. HTTP/1.1 takes no request back: the connection is given up, so that the answer meets no other request."""
        if answer is self._answer:
            self.close(CallFailed(Status.CONNECTION, "", "cancelled"))

    def close(self, reason: CallFailed) -> None:
        """See `Connection`."""
        self._retire()
        self._settle(failed(reason, size=self._size, sent_s=self._sent_s, received_s=time.perf_counter()))

    def pause_writing(self) -> None:
        """Asyncio's."""
        self._paused = True

    def resume_writing(self) -> None:
        """Asyncio's."""
        self._paused = False
        self._write()

    def _write(self) -> None:
        """Send what there is room for; the rest follows."""
        while self._rest and not self._paused and not self._transport.is_closing():
            piece, self._rest = self._rest[:_PIECE], self._rest[_PIECE:]
            self._transport.write(piece)

    def data_received(self, data: bytes) -> None:
        """Asyncio's."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.close(CallFailed(Status.STRANGER, "", "its answer is no HTTP", own=False))
            return
        if self._answer is None:
            self.close(CallFailed(Status.STRANGER, "", "it answers what was not asked", own=False))
        elif self._complete:
            # A peer that answers before it has read the request may never read on.
            self._finish(alive=self._alive and not self._spoiled and not self._rest and not self._transport.get_write_buffer_size())

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's."""
        del self._parser  # it refers to this connection, and a load test collects no garbage
        if self._begun and not self._framed and exc is None and self._answer is not None:
            self._finish(alive=False)  # an answer without a length ends with its connection
        else:
            words = f": {exc}" if exc is not None else " in the middle of its answer" if self._begun else " without an answer"
            self.close(CallFailed(Status.CONNECTION, "", f"the connection was closed{words}", own=False))
        self._owner.lost(self)

    def on_message_begin(self) -> None:
        """The first byte of an answer; a second one that nobody asked for spoils the connection."""
        self._spoiled = self._complete
        self._framed = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        lower = name.lower()
        if lower in _FRAMING:
            self._framed = True
        if self._keep:
            self._headers[lower.decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The status is known; those below 200 announce another answer."""
        if self._complete:
            return
        self._status = self._parser.get_status_code()
        self._begun = self._status >= 200
        self._store = self._keep or self._status != 200

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self._complete:
            return
        self._size += len(data)
        if not self._named:
            searched = self._searched + data
            self._named = _OUTPUTS.search(searched) is not None
            self._searched = searched[-_SPLIT:]
        if self._store and (self._keep or self._size <= _MOST_ERROR_BYTES):
            self._body.append(data)

    def on_message_complete(self) -> None:
        """The last byte of an answer."""
        if not self._complete:
            self._complete = self._begun
            self._alive = self._parser.should_keep_alive()  # httptools knows it here only

    def _finish(self, *, alive: bool) -> None:
        """The answer is there; the connection is for the next one where it stays open."""
        received_s, unread_s = self._sock.arrival(self._sent_s)
        body = b"".join(self._body) if self._store else None
        if self._status == 200:
            result = Answer(Outcome.OK, "200", self._size, "", True, self._sent_s, received_s, unread_s, body, self._headers, not self._named)
        else:
            result = self._refusal(body or b"", received_s)
        self._settle(result)
        self._clear()
        if alive:
            self.places = 1
            self._owner.freed(self)
        else:
            self._retire()

    def _retire(self) -> None:
        self.usable, self.places = False, 0
        self._transport.abort()
        self._owner.retired(self)

    def _refusal(self, body: bytes, received_s: float) -> Answer:
        try:
            codec.check(self._status, body)
        except CallFailed as failure:
            return failed(failure, size=self._size, sent_s=self._sent_s, received_s=received_s)
        raise AssertionError(f"status {self._status} is no refusal")

    def _settle(self, result: Answer) -> None:
        answer, timer = self._answer, self._timer
        self._answer = self._timer = None
        if timer is not None:
            timer.cancel()
        if answer is not None and not answer.done():
            answer.set_result(result)

    def _expire(self) -> None:
        self.close(CallFailed(Status.DEADLINE, "", "no answer in time"))


_FRAMING = frozenset({b"content-length", b"transfer-encoding"})

WIRE = Wire("", False, Http1Connection, prepare, decode)
