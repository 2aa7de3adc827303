"""HTTP/2's frames (RFC 9113): bytes into frames and back. Pure; knows no connection."""

from __future__ import annotations

import enum
import struct
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME_SIZE = 16_384
"""Bytes of a frame's payload that both sides take before they say otherwise; we do not."""
FIRST_WINDOW = 65_535
MAX_WINDOW = 2**31 - 1
MAX_STREAM = 2**31 - 1

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
_PADDED = 0x8
_PRIORITY = 0x20
_HEAD = struct.Struct(">BHBBL")
_SETTING = struct.Struct(">HL")


class Kind(enum.IntEnum):
    """Types of frames."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Setting(enum.IntEnum):
    """Settings that are told or heeded."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5


class ErrorCode(enum.IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class FrameError(Exception):
    """What the peer sent is no HTTP/2, or breaks its rules."""


class Frame(NamedTuple):
    """One frame. `kind` is a number, since types that are not known must be ignored."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class FrameReader:
    """Cuts a stream of bytes into frames, however it is split."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now. Raises FrameError for one that is longer than we allow."""
        if self._rest:
            data = self._rest + data
        frames, place, end = [], 0, len(data)
        while end - place >= 9:
            high, low, kind, flags, stream = _HEAD.unpack_from(data, place)
            length = high << 16 | low
            if length > MAX_FRAME_SIZE:
                raise FrameError(f"a frame of {length} bytes, where {MAX_FRAME_SIZE} are the limit")
            stop = place + 9 + length
            if stop > end:
                break
            frames.append(Frame(kind, flags, stream & MAX_STREAM, data[place + 9 : stop]))
            place = stop
        self._rest = data[place:]
        return frames


def head(kind: Kind, flags: int, stream: int, length: int) -> bytes:
    """What comes before a payload of `length` bytes."""
    return _HEAD.pack(length >> 16, length & 0xFFFF, kind, flags, stream)


def frame(kind: Kind, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return head(kind, flags, stream, len(payload)) + payload


def settings(values: dict[Setting, int]) -> bytes:
    """A SETTINGS frame."""
    return frame(Kind.SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in values.items()))


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """What a SETTINGS frame says, in its order. Raises FrameError."""
    if len(payload) % _SETTING.size:
        raise FrameError(f"settings of {len(payload)} bytes")
    return list(_SETTING.iter_unpack(payload))


def number(value: int) -> bytes:
    """The payload of WINDOW_UPDATE and RST_STREAM."""
    return value.to_bytes(4, "big")


def read_number(payload: bytes) -> int:
    """The 31 or 32 bits in such a payload. Raises FrameError."""
    if len(payload) != 4:
        raise FrameError(f"a number of {len(payload)} bytes")
    return int.from_bytes(payload, "big")


def content(found: Frame) -> bytes:
    """The payload of DATA or HEADERS without padding and priority. Raises FrameError."""
    payload, padding = found.payload, 0
    if found.flags & _PADDED:
        if not payload:
            raise FrameError("padding without its length")
        padding, payload = payload[0], payload[1:]
    if found.kind == Kind.HEADERS and found.flags & _PRIORITY:
        payload = payload[5:]
    if padding > len(payload):
        raise FrameError("more padding than payload")
    return payload[: len(payload) - padding]
