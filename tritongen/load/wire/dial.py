"""Making connections to one server: its address is looked up once, its TLS set up once. Every failure is a `CallFailed`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, cast

from aiohappyeyeballs import AddrInfoType, start_connection

from tritongen.client.calls import CallFailed, Status
from tritongen.client.endpoint import Access, Endpoint, tls_context
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.load.wire.stamped import StampedSocket


class Dialled(Protocol):
    """What is made of a connection: one of asyncio's protocols."""

    ready: asyncio.Future[CallFailed | None]
    """Done when the peer has shown that it speaks the protocol; with the reason where it does not."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's."""
        ...

    def data_received(self, data: bytes) -> None:
        """Asyncio's."""
        ...

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's."""
        ...

    def close(self, reason: CallFailed) -> None:
        """Give the connection up, and with it the requests under way."""
        ...


P = TypeVar("P", bound=Dialled)

UNACKNOWLEDGED_MS = 20_000
"""Milliseconds after which Linux gives up a connection whose data is not acknowledged, as the service client does: else a host that vanished takes requests for
a quarter of an hour."""

_NEXT_ADDRESS_S = 0.25
"""Seconds after which a host's next address is tried, beside one that says nothing (RFC 8305, section 8): IPv6 often leads nowhere."""


class Dialer:
    """Connects to one server.

    Connecting again does not look the name up again: the lookup blocks a thread, and a load test measures one server.
    """

    def __init__(self, endpoint: Endpoint, access: Access, alpn: str) -> None:
        """`alpn`: the protocol that must be agreed on over TLS; empty where none need be. Raises InputError (TG069) where a TLS file cannot be used."""
        self._endpoint = endpoint
        self._alpn = alpn
        self._tls = _context(endpoint, access, alpn)
        self._addresses: list[AddrInfoType] = []

    async def connect(self, make: Callable[[StampedSocket], P], timeout_s: float) -> P:
        """A connection whose peer speaks the protocol. Raises CallFailed."""
        with _failures(timeout_s):
            return await asyncio.wait_for(self._connect(make), max(timeout_s, 0.0))

    async def _connect(self, make: Callable[[StampedSocket], P]) -> P:
        loop, end = asyncio.get_running_loop(), self._endpoint
        addresses = self._addresses or await loop.getaddrinfo(end.host, end.port, type=socket.SOCK_STREAM)
        sock = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_S, socket_factory=lambda address: StampedSocket(*address[:3]))
        transport, made = await loop.create_connection(
            lambda: cast(asyncio.Protocol, make(cast(StampedSocket, sock))), sock=sock, ssl=self._tls, server_hostname=end.host if self._tls else None
        )
        protocol = cast(P, made)
        found = transport.get_extra_info("ssl_object")
        if found is not None and self._alpn and found.selected_alpn_protocol() != self._alpn:
            protocol.close(reason := CallFailed(Status.STRANGER, "TLS", f"it does not agree on {self._alpn} by ALPN", sent=False, own=False))
            raise reason
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
        try:
            failure = await protocol.ready
        except asyncio.CancelledError:
            protocol.close(CallFailed(Status.CONNECTION, "", "given up while it was made", sent=False, own=False))
            raise
        if failure is not None:
            raise failure
        self._addresses = [address for address in addresses if address[4][0] == transport.get_extra_info("peername")[0]]
        return protocol


def _context(endpoint: Endpoint, access: Access, alpn: str) -> ssl.SSLContext | None:
    if not endpoint.tls:
        return None
    try:
        context = tls_context(access)
    except ssl.SSLError as error:
        raise InputError([Diagnostic("TG069", f"a file for TLS cannot be used: {error}", hint="give certificates and keys as PEM files")]) from error
    if alpn:
        context.set_alpn_protocols([alpn])
    return context


@contextlib.contextmanager
def _failures(timeout_s: float) -> Iterator[None]:
    """What can go wrong while a connection is made, as CallFailed; nothing was sent then."""
    try:
        yield
    except asyncio.TimeoutError as error:
        raise CallFailed(Status.DEADLINE, "", f"no connection within {timeout_s:g} s", sent=False) from error
    except ssl.SSLError as error:
        raise CallFailed(Status.CONNECTION, "TLS", str(error), sent=False, own=False) from error
    except UnicodeError as error:
        raise CallFailed(Status.CONNECTION, "", f"the host's name cannot be looked up: {error}", sent=False, own=False) from error
    except OSError as error:
        # Asyncio puts words of its own in the place of the system's; errors of the name's lookup have negative numbers.
        said = os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)
        raise CallFailed(Status.CONNECTION, "", said, sent=False, own=False) from error
