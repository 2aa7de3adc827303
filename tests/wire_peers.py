"""Servers that answer load tests as a test wants, right or wrong, and what sends to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Awaitable, Callable

import numpy as np
from hpack import Encoder

from tritongen.client import calls
from tritongen.client.endpoint import Access, parse_url
from tritongen.client.metadata import TensorMeta
from tritongen.dtypes import from_wire
from tritongen.load.wire import Pool, frames, open_pool
from tritongen.load.wire.frames import Kind, Setting
from tritongen.load.wire.stamped import StampedSocket

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

TIMEOUT_S = 60.0
"""For what comes at once, on a machine that is busy with other things."""


def call(size: int = 4, **options) -> calls.Infer:
    """A request to model `m` with `size` floats."""
    array = np.arange(size, dtype=np.float32)
    return calls.Infer.of("m", "", ((TensorMeta("x", from_wire("FP32"), (size,)), array),), **options)


class Served:
    """One server of a test and the pool that sends to it; counts connections."""

    def __init__(self, pool: Pool, server: asyncio.Server) -> None:
        self.pool = pool
        self.server = server
        self.connections = 0
        self.tasks: set[asyncio.Task] = set()
        self.prepared = pool.prepare(call())

    async def send(self, timeout_s: float = TIMEOUT_S, **options):
        return await self.pool.send(self.prepared, timeout_s, **options)

    async def drop(self) -> None:
        """End every connection, from the server's side, and wait until the pool knows."""
        await self.end()
        await turns()

    async def end(self) -> None:
        """End every connection, from the server's side."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks)


@contextlib.asynccontextmanager
async def served(handler: Handler, scheme: str, *, limit: int = 256, opened: bool = True, access: Access | None = None):
    """`handler` runs for every connection that the pool makes."""
    found: list[Served] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found[0].connections += 1
        found[0].tasks.add(asyncio.current_task())
        with contextlib.suppress(asyncio.CancelledError):
            await quiet(handler)(reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    pool = open_pool(parse_url(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"), access, limit=limit)
    found.append(Served(pool, server))
    try:
        if opened:
            await pool.open(TIMEOUT_S)
        yield found[0]
    finally:
        await pool.close()
        server.close()
        await found[0].end()


@contextlib.contextmanager
def stamped_ends():
    """Both ends of a connection, the first one stamped. Linux begins some time after it was first asked to, and goes on as long as one socket wants it."""
    with socket.create_server(("127.0.0.1", 0)) as server, StampedSocket(socket.AF_INET, socket.SOCK_STREAM, 0) as stamped:
        stamped.connect(server.getsockname())
        other, _ = server.accept()
        with other:
            end = time.monotonic() + TIMEOUT_S
            while stamped.unread_s is None:
                assert time.monotonic() < end, "this system stamps no packets"
                other.sendall(b"x")
                stamped.recv(1)
            yield stamped, other


async def turns(count: int = 20) -> None:
    """Let the event loop do so often what is ready: a time would hold fewer turns on a busy machine."""
    for _ in range(count):
        await asyncio.sleep(0.001)


def quiet(handler: Handler) -> Handler:
    """The same, which ends with its connection."""

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await handler(reader, writer)
        finally:
            writer.close()

    return run


async def http_request(reader: asyncio.StreamReader) -> bytes:
    """The body of the next HTTP request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("\r\ncontent-length: ")[1].split("\r\n")[0])
    return await reader.readexactly(length)


def http_answer(status: int = 200, body: bytes = b"{}", *headers: str) -> bytes:
    """An HTTP answer with its length."""
    return "\r\n".join([f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]).encode() + b"\r\n\r\n" + body


def http_error(status: int, said: str) -> bytes:
    """An error as Triton says it."""
    return http_answer(status, json.dumps({"error": said}).encode())


def answering(*answers: bytes, last: bool = False) -> Handler:
    """Each request of a connection gets the next of these answers, as it is; then the connection ends, or the last one is repeated."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue = list(answers)
        while queue:
            await http_request(reader)
            writer.write(queue[0] if last and len(queue) == 1 else queue.pop(0))
            await writer.drain()

    return handler


class Http2Peer:
    """The server's side of one HTTP/2 connection, for tests: reads requests, writes frames as it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.hpack = Encoder()
        self.seen: list[frames.Frame] = []

    async def greet(self, values: dict[Setting, int] | None = None) -> None:
        """Take the preface, and say our settings."""
        assert await self.reader.readexactly(len(frames.PREFACE)) == frames.PREFACE
        self.writer.write(frames.settings(values or {}))
        self.hpack.header_table_size = 0

    async def frame(self) -> frames.Frame:
        """The next frame of the client."""
        head = await self.reader.readexactly(9)
        payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
        found = frames.Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
        self.seen.append(found)
        return found

    async def until(self, kind: Kind) -> frames.Frame:
        """The next frame of this kind; others are passed over."""
        while (found := await self.frame()).kind != kind:
            pass
        return found

    async def request(self) -> tuple[int, bytes]:
        """The next request: its stream, and its message with the head. Gives room back for what it took."""
        number = (await self.until(Kind.HEADERS)).stream
        body = b""
        while True:
            found = await self.until(Kind.DATA)
            body += found.payload
            self.write(Kind.WINDOW_UPDATE, 0, 0, frames.number(len(found.payload)))
            if found.flags & frames.END_STREAM:
                return number, body
            self.write(Kind.WINDOW_UPDATE, 0, number, frames.number(len(found.payload)))

    def write(self, kind: Kind, flags: int, stream: int, payload: bytes = b"") -> None:
        """One frame."""
        self.writer.write(frames.frame(kind, flags, stream, payload))

    def answer(self, stream: int, message: bytes = b"answer") -> bytes:
        """The frames of an answer that is right."""
        return b"".join(
            [
                frames.frame(Kind.HEADERS, frames.END_HEADERS, stream, self.block({":status": "200", "content-type": "application/grpc"})),
                frames.frame(Kind.DATA, 0, stream, message_bytes(message)),
                self.trailers(stream, {"grpc-status": "0"}),
            ]
        )

    def trailers(self, stream: int, headers: dict[str, str]) -> bytes:
        """The frame that ends an answer."""
        return frames.frame(Kind.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, self.block(headers))

    def block(self, headers: dict[str, str]) -> bytes:
        """Headers, encoded."""
        return self.hpack.encode(list(headers.items()))


def message_bytes(message: bytes) -> bytes:
    """A gRPC message with its head."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def speaking(script: Callable[[Http2Peer], Awaitable[None]], values: dict[Setting, int] | None = None) -> Handler:
    """A server that greets on each connection and goes on with `script`."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Http2Peer(reader, writer)
        await peer.greet(values)
        await script(peer)

    return handler


async def answer_all(peer: Http2Peer) -> None:
    """Answer every request, as a server does."""
    while True:
        number, _ = await peer.request()
        peer.writer.write(peer.answer(number))


def exchange(script, count=1, *, values=None, together=False):
    """The answers to so many requests, one after another or together, and how many connections they took."""

    async def run():
        async with served(speaking(script, values), "grpc") as server:
            sends = [server.send(keep=True) for _ in range(count)]
            answers = await asyncio.gather(*sends) if together else [await send for send in sends]
            return answers, server.connections

    return asyncio.run(run())


def once(write):
    """A server that answers one request with what `write(peer, stream)` says and then does nothing."""

    async def script(peer):
        number, _ = await peer.request()
        peer.writer.write(write(peer, number))
        await peer.reader.read()

    return script
