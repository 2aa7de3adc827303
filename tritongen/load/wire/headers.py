"""The headers of gRPC requests and answers, encoded by HPACK (RFC 7541): requests once for ever, answers once for each kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from hpack import Decoder, Encoder, HPACKError

from tritongen.load.wire.frames import FrameError

EMPTY_TABLE = b"\x20"
"""The update that makes our table empty, whatever it was; at the start of every block, so that each stands on any connection."""

_MOST_KINDS = 256


def encode(headers: Mapping[str, str]) -> bytes:
    """A block that refers to HPACK's static table only, and is never put into another one."""
    return Encoder().encode([(name, value, True) for name, value in headers.items()])


def timeout(seconds: float) -> bytes:
    """The block of `grpc-timeout`, rounded up to hundredths of a second, so that few are ever made: the exact limit is kept on this side."""
    return _timeout(max(math.ceil(seconds * 100), 1))


@lru_cache(maxsize=1024)
def _timeout(hundredths: int) -> bytes:
    # gRPC takes eight digits.
    return encode({"grpc-timeout": f"{hundredths * 10}m" if hundredths < 10**7 else f"{min(hundredths // 100, 10**8 - 1)}S"})


class Head(NamedTuple):
    """What a block of an answer says: HTTP's status, gRPC's status and message; -1 and empty where it does not."""

    http: int
    status: int
    message: str


NOTHING = Head(-1, -1, "")


class HeadReader:
    """Reads the blocks of one connection, in their order.

    Without a table equal blocks mean the same, and each is decoded once. The peer is told to do without one, and says in a block that it does so from there on.
    gRPC's own server answers a deadline with a block made by hand, which says nothing and needs no table either: what is not said is not asked for.
    """

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._known: dict[bytes, Head] = {}
        self._has_table = True

    def read(self, block: bytes) -> Head:
        """What a block says. Raises FrameError where it cannot be decoded."""
        if not self._has_table and (known := self._known.get(block)) is not None:
            return known
        try:
            found = {bytes(name): bytes(value) for name, value in self._decoder.decode(block, raw=True)}
        except HPACKError as error:
            raise FrameError(f"headers that cannot be read ({error})") from error
        head = Head(
            _number(found.get(b":status", b"")),
            _number(found.get(b"grpc-status", b"")),
            unquote(found.get(b"grpc-message", b"").decode("latin-1"), errors="replace"),
        )
        self._has_table = self._decoder.header_table_size > 0
        if not self._has_table and len(self._known) < _MOST_KINDS:
            self._known[block] = head
        return head


def _number(value: bytes) -> int:
    return int(value) if value.isdigit() and len(value) <= 3 else -1
