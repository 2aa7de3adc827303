"""What a connection writes: headers and messages in frames, within what the peer has room for; what is written in one turn of the event loop in one piece."""

from __future__ import annotations

import asyncio

from tritongen.load.wire import frames
from tritongen.load.wire.frames import ErrorCode, FrameError, Kind
from tritongen.load.wire.stream import Stream


class Outbound:
    """The sending half of a connection. Windows and sizes are the peer's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._frame_size = frames.MAX_FRAME_SIZE
        self._window = self.stream_window = frames.FIRST_WINDOW
        self._waiting: dict[int, Stream] = {}
        self._pieces: list[bytes | memoryview] = []

    def start(self, stream: Stream, block: bytes) -> None:
        """Send a stream's headers, and of its message what there is room for; the rest follows."""
        number, size, kind = stream.number, self._frame_size, Kind.HEADERS
        while len(block) > size:
            self.write(frames.frame(kind, 0, number, block[:size]))
            kind, block = Kind.CONTINUATION, block[size:]
        self.write(frames.frame(kind, frames.END_HEADERS, number, block))
        self._waiting[number] = stream
        self._pump()

    def drop(self, number: int) -> None:
        """Send no more of a stream."""
        self._waiting.pop(number, None)

    def reset(self, number: int) -> None:
        """Tell the peer that nobody wants a stream any longer."""
        self.write(frames.frame(Kind.RST_STREAM, 0, number, frames.number(ErrorCode.CANCEL)))

    def widen(self, stream: Stream | None, more: int) -> None:
        """The peer has room for more: on a stream, or without one on the connection. Raises FrameError."""
        if stream is None:
            self._window += more
        else:
            stream.window += more
        if not more or max(self._window, stream.window if stream else 0) > frames.MAX_WINDOW:
            raise FrameError(f"a window that cannot be widened by {more} bytes")
        self._pump()

    def resize(self, window: int, streams: list[Stream]) -> None:
        """The peer's streams have another window from the start, those that are open too; see `acknowledge`. Raises FrameError."""
        if window > frames.MAX_WINDOW:
            raise FrameError(f"a window of {window} bytes")
        for stream in streams:
            stream.window += window - self.stream_window
        self.stream_window = window

    def set_frame_size(self, size: int) -> None:
        """The peer takes frames of this size; see `acknowledge`. Raises FrameError."""
        if not frames.MAX_FRAME_SIZE <= size < 2**24:
            raise FrameError(f"frames of {size} bytes")
        self._frame_size = size

    def acknowledge(self) -> None:
        """The peer's settings hold from here on. Only what comes after this word may use them: gRPC's servers judge by it, and reset a stream that is early."""
        self.write(frames.frame(Kind.SETTINGS, frames.ACK, 0))
        self._pump()

    def write(self, *pieces: bytes | memoryview) -> None:
        """Frames that need no room."""
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.extend(pieces)

    def flush(self) -> None:
        """Hand over to the socket what was written."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        if data:
            self._transport.write(data)

    def _pump(self) -> None:
        """Send messages as far as there is room, in order."""
        for stream in list(self._waiting.values()) if self._window > 0 else ():
            while stream.rest and (size := min(len(stream.rest), self._frame_size, self._window, stream.window)) > 0:
                last = size == len(stream.rest)
                self.write(frames.head(Kind.DATA, frames.END_STREAM if last else 0, stream.number, size), stream.rest[:size])
                stream.rest = stream.rest[size:]
                stream.window -= size
                self._window -= size
            if not stream.rest:
                del self._waiting[stream.number]
