"""One gRPC call on an HTTP/2 stream: what of it was sent, what came, and what that amounts to. Knows no connection."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import grpc

from tritongen.client import grpc_codec, http_codec
from tritongen.client.calls import CallFailed, Status
from tritongen.load.wire.answer import Answer, Outcome, failed
from tritongen.load.wire.headers import Head

MESSAGE_HEAD = 5
"""Bytes before a gRPC message: one that says whether it is compressed, four with its length."""

_BEGIN = 1024
"""Bytes that are kept of every answer: names, version, id and some parameters, which stand before its outputs."""
_OUTPUTS, _TEXT = 5, 2

_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(slots=True)
class Stream:
    """A call under way.

    Attributes:
        number: the stream's.
        answer: set when the call is over.
        sent_s: `time.perf_counter` when its headers were sent.
        timer: ends it.
        window: bytes that the peer takes on this stream.
        rest: what is not yet sent of the message.
        kept: the pieces of the answer, where it is asked for.
        size: bytes of DATA that came.
        begin: the first of them, with the head of the message and where its outputs begin.
        http: HTTP's status; -1 before it came.
    """

    number: int
    answer: asyncio.Future[Answer]
    sent_s: float
    timer: asyncio.TimerHandle
    window: int
    rest: memoryview
    kept: list[bytes] | None
    size: int = 0
    begin: bytes = b""
    http: int = field(default=-1)

    def take(self, data: bytes) -> None:
        """A piece of the answer."""
        if self.size < _BEGIN:
            self.begin += data[: _BEGIN - self.size]
        self.size += len(data)
        if self.kept is not None:
            self.kept.append(data)

    def judge(self, end: Head, received_s: float, unread_s: float | None) -> Answer:
        """What the call came to, when its stream has ended with `end`, which arrived then and waited so long to be read."""
        if end.status != 0 or self.http != 200:
            return failed(self._failure(end), size=self.size, sent_s=self.sent_s, received_s=received_s)
        length = int.from_bytes(self.begin[1:MESSAGE_HEAD], "big")
        if len(self.begin) < MESSAGE_HEAD or self.begin[0] != 0 or length + MESSAGE_HEAD != self.size:
            said = f"the answer is no plain message: {self.size} bytes, {length} announced"
            return failed(CallFailed(Status.FAILED, "OK", said), size=self.size, sent_s=self.sent_s, received_s=received_s)
        payload = b"".join(self.kept)[MESSAGE_HEAD:] if self.kept is not None else None
        hollow = not _names_outputs(self.begin[MESSAGE_HEAD:], length)
        return Answer(Outcome.OK, "OK", length, "", True, self.sent_s, received_s, unread_s, payload, hollow=hollow)

    def _failure(self, end: Head) -> CallFailed:
        if end.status > 0:
            code = _CODES.get(end.status, grpc.StatusCode.UNKNOWN)
            return CallFailed(grpc_codec.STATUS.get(code, Status.FAILED), code.name, end.message)
        if self.http not in (-1, 200):
            try:
                http_codec.check(self.http, b"")
            except CallFailed as failure:
                return failure
        return CallFailed(Status.FAILED, "", "the answer ended without a gRPC status", own=False)


def _names_outputs(message: bytes, length: int) -> bool:
    """Whether a ModelInferResponse, of whose `length` bytes these are the first, has an output: protobuf writes fields by their numbers.

    Where what stands before outputs is longer than what was kept, it counts as one that has: nothing is known against it.
    """
    place, end = 0, len(message)
    while place < end:
        field_number, kind = message[place] >> 3, message[place] & 7
        size, place = _varint(message, place + 1)
        if kind != _TEXT or field_number > _OUTPUTS:
            return False
        if field_number == _OUTPUTS:
            return 0 < size <= length - place
        place += size
    return place <= length and end < length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """The number that begins there, and the place behind it; what is cut off counts as its end."""
    value = shift = 0
    while place < len(message):
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            break
    return value, place
