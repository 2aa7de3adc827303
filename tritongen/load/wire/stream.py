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
        begin: the first of them, up to the head of the message.
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
        if self.size < MESSAGE_HEAD:
            self.begin += data[: MESSAGE_HEAD - self.size]
        self.size += len(data)
        if self.kept is not None:
            self.kept.append(data)

    def judge(self, end: Head, received_s: float) -> Answer:
        """What the call came to, when its stream has ended with `end`."""
        if end.status != 0 or self.http != 200:
            return failed(self._failure(end), size=self.size, sent_s=self.sent_s, received_s=received_s)
        length = int.from_bytes(self.begin[1:], "big")
        if len(self.begin) < MESSAGE_HEAD or self.begin[0] != 0 or length + MESSAGE_HEAD != self.size:
            said = f"the answer is no plain message: {self.size} bytes, {length} announced"
            return failed(CallFailed(Status.FAILED, "OK", said), size=self.size, sent_s=self.sent_s, received_s=received_s)
        payload = b"".join(self.kept)[MESSAGE_HEAD:] if self.kept is not None else None
        return Answer(Outcome.OK, "OK", length, "", True, self.sent_s, received_s, payload)

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
