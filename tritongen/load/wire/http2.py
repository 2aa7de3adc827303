"""gRPC over HTTP/2 for load tests: many unary calls at once on one connection. Messages are never read.

Only what a client of unary calls needs of RFC 9113 and of gRPC's protocol is here. Our windows are as large as they can be, so that an answer never waits for
us, and there is no table of headers (see `headers`). What is written in one turn of the event loop goes out in one piece.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2 as pb

from tritongen.client import calls, grpc_codec
from tritongen.client.calls import CallFailed, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.requests import check_size
from tritongen.client.result import Result
from tritongen.load.wire import frames, headers
from tritongen.load.wire.answer import Answer, Prepared, failed
from tritongen.load.wire.frames import ErrorCode, Frame, FrameError, Kind, Setting
from tritongen.load.wire.outbound import Outbound
from tritongen.load.wire.pool import Owner, Wire
from tritongen.load.wire.stamped import StampedSocket
from tritongen.load.wire.stream import MESSAGE_HEAD, Stream

_MOST_HEADER_BYTES = 65_536
_GREETING = b"".join(
    [
        frames.PREFACE,
        frames.settings({Setting.HEADER_TABLE_SIZE: 0, Setting.ENABLE_PUSH: 0, Setting.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW}),
        frames.frame(Kind.WINDOW_UPDATE, 0, 0, frames.number(frames.MAX_WINDOW - frames.FIRST_WINDOW)),
    ]
)
_RENEWED = 2**30
"""Bytes after which the peer may send as many again on the whole connection: half of the window, so that it never runs dry."""


def prepare(call: calls.Infer, endpoint: Endpoint, access: Access) -> Prepared:
    """A request as bytes. Raises InvalidInput (TG066) for one above gRPC's limit."""
    message = grpc_codec.infer_request(call)
    check_size(len(message), call.model)
    block = headers.encode(
        {
            ":method": "POST",
            ":scheme": "https" if endpoint.tls else "http",
            ":path": grpc_codec.INFER,
            ":authority": endpoint.authority,
            "te": "trailers",
            "content-type": "application/grpc",
            **access.headers,
        }
    )
    return Prepared(headers.EMPTY_TABLE + block, b"".join([b"\0", len(message).to_bytes(MESSAGE_HEAD - 1, "big"), message]))


def decode(answer: Answer) -> Result:
    """The arrays of an answer that was kept. Raises CallFailed where it holds none."""
    try:
        response = pb.ModelInferResponse.FromString(answer.payload or b"")
    except DecodeError as error:
        raise CallFailed(Status.FAILED, answer.status, "the answer is no message of Triton's") from error
    return grpc_codec.infer_reply(response, 0.0, answer.received_s - answer.sent_s)


class Http2Connection(asyncio.Protocol):
    """See `Connection`."""

    FIRST_STREAM: ClassVar[int] = 1

    def __init__(self, owner: Owner, sock: StampedSocket) -> None:
        self.usable, self.places = True, 0
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[CallFailed | None] = self._loop.create_future()
        self._owner, self._sock = owner, sock
        self._reader, self._heads = frames.FrameReader(), headers.HeadReader()
        self._streams: dict[int, Stream] = {}
        self._next = self.FIRST_STREAM
        self._limit = frames.MAX_STREAM
        self._taken = 0
        self._opening: Frame | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._out = Outbound(self._loop, transport)
        self._out.write(_GREETING)

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's."""
        self.close(CallFailed(Status.CONNECTION, "", f"the connection was closed{f': {exc}' if exc is not None else ''}", own=False))
        self._owner.lost(self)

    def close(self, reason: CallFailed) -> None:
        """See `Connection`."""
        self._transport.abort()
        self._retire()
        if not self.ready.done():
            self.ready.set_result(reason)
        for number in list(self._streams):
            self._fail(number, reason)

    def exchange(self, prepared: Prepared, timeout_s: float, keep: bool) -> asyncio.Future[Answer]:
        """See `Connection`."""
        number, answer = self._next, self._loop.create_future()
        self._next += 2
        timer = self._loop.call_later(timeout_s, self._expire, number)
        stream = Stream(number, answer, time.perf_counter(), timer, self._out.stream_window, memoryview(prepared.body), [] if keep else None)
        self._streams[number] = stream
        self.places -= 1
        if self._next > frames.MAX_STREAM:
            self._retire()
        self._out.start(stream, prepared.head + headers.timeout(timeout_s))
        return answer

    def cancel(self, answer: asyncio.Future[Answer]) -> None:
        """See `Connection`."""
        for number in [number for number, stream in self._streams.items() if stream.answer is answer]:
            self._out.reset(number)
            self._release(number)

    def data_received(self, data: bytes) -> None:
        """Asyncio's."""
        try:
            for found in self._reader.feed(data):
                self._take(found)
        except FrameError as error:
            if self.ready.done():
                self._out.write(frames.frame(Kind.GOAWAY, 0, 0, frames.number(0) + frames.number(ErrorCode.PROTOCOL_ERROR)))
                self._out.flush()
                self.close(CallFailed(Status.CONNECTION, "", f"the server broke HTTP/2's rules: {error}", own=False))
            else:
                self.close(CallFailed(Status.STRANGER, "", "what answers there is no gRPC server", sent=False, own=False))

    def _take(self, found: Frame) -> None:
        """Heed one frame; those of unknown kinds mean nothing. Raises FrameError."""
        if self._opening is not None and found.kind != Kind.CONTINUATION:
            raise FrameError("headers without their end")
        if not self.ready.done() and found.kind != Kind.SETTINGS:
            raise FrameError("no settings at first")
        heed = _HEEDED.get(found.kind)
        if heed is not None:
            heed(self, found)

    def _data(self, found: Frame) -> None:
        self._taken += len(found.payload)
        if self._taken >= _RENEWED:
            self._out.write(frames.frame(Kind.WINDOW_UPDATE, 0, 0, frames.number(self._taken)))
            self._taken = 0
        stream = self._streams.get(found.stream)
        if stream is None:
            return
        stream.take(frames.content(found))
        if found.flags & frames.END_STREAM:
            self._finish(stream, headers.NOTHING)

    def _headers(self, found: Frame) -> None:
        self._block(found._replace(payload=frames.content(found)))

    def _block(self, found: Frame) -> None:
        """The payload of HEADERS, or what was put together of it and its CONTINUATIONs."""
        if not found.flags & frames.END_HEADERS:
            self._opening = found
            return
        said = self._heads.read(found.payload)
        stream = self._streams.get(found.stream)
        if stream is None:
            return
        if said.http >= 200:
            stream.http = said.http
        if found.flags & frames.END_STREAM:
            self._finish(stream, said)

    def _continuation(self, found: Frame) -> None:
        opening = self._opening
        if opening is None or opening.stream != found.stream:
            raise FrameError("a continuation of nothing")
        block = opening.payload + found.payload
        if len(block) > _MOST_HEADER_BYTES:
            raise FrameError(f"headers of more than {_MOST_HEADER_BYTES} bytes")
        self._opening = None
        self._block(opening._replace(payload=block, flags=opening.flags | found.flags & frames.END_HEADERS))

    def _settings(self, found: Frame) -> None:
        if found.flags & frames.ACK:
            return
        for key, value in frames.read_settings(found.payload):
            if key == Setting.INITIAL_WINDOW_SIZE:
                self._out.resize(value, list(self._streams.values()))
            elif key == Setting.MAX_FRAME_SIZE:
                self._out.set_frame_size(value)
            elif key == Setting.MAX_CONCURRENT_STREAMS:
                self._limit = value
        self._out.acknowledge()
        self._recount()
        if not self.ready.done():
            self.ready.set_result(None)

    def _window_update(self, found: Frame) -> None:
        more = frames.read_number(found.payload) & frames.MAX_WINDOW
        if found.stream == 0 or found.stream in self._streams:
            self._out.widen(self._streams.get(found.stream), more)

    def _ping(self, found: Frame) -> None:
        if not found.flags & frames.ACK:
            self._out.write(frames.frame(Kind.PING, frames.ACK, 0, found.payload))

    def _push(self, found: Frame) -> None:
        raise FrameError("a push, which is not allowed")

    def _reset(self, found: Frame) -> None:
        code = frames.read_number(found.payload)
        status = Status.UNAVAILABLE if code == ErrorCode.REFUSED_STREAM else Status.FAILED
        self._fail(found.stream, CallFailed(status, "", f"the server reset the stream ({_named(code)})", sent=code != ErrorCode.REFUSED_STREAM, own=False))

    def _goaway(self, found: Frame) -> None:
        payload = found.payload
        last, code = frames.read_number(payload[:4]) & frames.MAX_STREAM, frames.read_number(payload[4:8])
        debug = payload[8:208].decode("utf-8", "replace")
        said = f"the server ended the connection ({_named(code)}{f': {debug}' if debug else ''})"
        self._retire()
        for number in [number for number in self._streams if number > last]:
            self._fail(number, CallFailed(Status.CONNECTION, "", said, sent=False, own=False))
        if not self._streams:
            self._transport.close()

    def _finish(self, stream: Stream, end: headers.Head) -> None:
        """The peer has ended a stream: where it did so before it had everything, it is told that no more will come."""
        if stream.rest:
            self._out.reset(stream.number)
        answer = stream.judge(end, *self._sock.arrival(stream.sent_s))
        self._release(stream.number)
        if not stream.answer.done():
            stream.answer.set_result(answer)

    def _fail(self, number: int, reason: CallFailed) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        self._release(number)
        if not stream.answer.done():
            stream.answer.set_result(failed(reason, size=stream.size, sent_s=stream.sent_s, received_s=time.perf_counter()))

    def _expire(self, number: int) -> None:
        self._out.reset(number)
        self._fail(number, CallFailed(Status.DEADLINE, "DEADLINE_EXCEEDED", "no answer in time"))

    def _release(self, number: int) -> None:
        """A stream is over."""
        stream = self._streams.pop(number)
        stream.timer.cancel()
        self._out.drop(number)
        if self.usable:
            self._recount()
        elif not self._streams:
            self._transport.close()

    def _retire(self) -> None:
        """Take no more requests."""
        self.usable = False
        self.places = 0
        self._owner.retired(self)

    def _recount(self) -> None:
        """How many more requests the peer takes, after it may have become more."""
        self.places = max(self._limit - len(self._streams), 0) if self.usable else 0
        if self.places:
            self._owner.freed(self)


def _named(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode._value2member_map_ else f"error {code}"


_HEEDED: Mapping[int, Callable[[Http2Connection, Frame], None]] = {
    Kind.DATA: Http2Connection._data,
    Kind.HEADERS: Http2Connection._headers,
    Kind.RST_STREAM: Http2Connection._reset,
    Kind.SETTINGS: Http2Connection._settings,
    Kind.PUSH_PROMISE: Http2Connection._push,
    Kind.PING: Http2Connection._ping,
    Kind.GOAWAY: Http2Connection._goaway,
    Kind.WINDOW_UPDATE: Http2Connection._window_update,
    Kind.CONTINUATION: Http2Connection._continuation,
}

WIRE = Wire("h2", True, Http2Connection, prepare, decode)
