"""Calls over HTTP that block."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import ssl
import threading
import time
import weakref
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import DecodeError, HTTPError, SSLError
from urllib3.exceptions import TimeoutError as PoolTimeout

from tritongen.client import http_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Status, closed, expired
from tritongen.client.endpoint import Access, Endpoint, tls_context
from tritongen.client.flow import Headers
from tritongen.client.result import Result

_POOL = 1024
"""Connections that are kept: more than anybody has requests under way, since urllib3 drops those beyond it with a warning for each."""


class _Now(threading.local):
    """What the call that this thread is in may still do, and has done.

    A socket's own limit is for one read, and a server that sends a byte now and then would never reach it: every read asks here.
    """

    end: float = 0.0
    sent: bool = False

    @property
    def left(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left


_now = _Now()


class _TimedReads:
    """A socket whose every read ends with the call's deadline."""

    def recv_into(self: Any, *arguments: Any, **options: Any) -> int:
        self.settimeout(_now.left)
        return int(super().recv_into(*arguments, **options))  # type: ignore[misc]


class _Socket(_TimedReads, socket.socket):
    pass


class _TlsSocket(_TimedReads, ssl.SSLSocket):
    pass


def _connected(host: str, port: int) -> socket.socket:
    """A connection to the first of the host's addresses that answers, all of them within the call's deadline."""
    addresses = _resolved(host, port)
    last: OSError = OSError("the host has no address")
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        made = _Socket(family, kind, protocol)
        try:
            made.settimeout(_now.left / (len(addresses) - index))
            made.connect(address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.settimeout(_now.left)  # urllib3 leaves it so until the request is written
        except OSError as error:
            made.close()
            last = error
        else:
            return made
    raise last


def _resolved(host: str, port: int) -> list[Any]:
    """The host's addresses. The system's resolver takes no limit: it is asked in a thread, which is left alone when the time is over."""
    answer: list[Any] = []

    def ask() -> None:
        try:
            answer.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            answer.append(error)

    if host.replace(".", "").isdigit() or ":" in host:
        ask()
    else:
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_now.left)
    if not answer:
        raise TimeoutError("the host's name was not resolved in time")
    if isinstance(answer[0], OSError):
        raise answer[0]
    return list(answer[0])


class _Noticed:
    """A connection that says when a request may have reached the server."""

    def _new_conn(self: Any) -> socket.socket:
        return _connected(self._dns_host, self.port)

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        _now.sent = True

    def request(self: Any, *arguments: Any, **options: Any) -> None:
        _now.sent = _now.sent or self.sock is not None
        super().request(*arguments, **options)  # type: ignore[misc]


class _Connection(_Noticed, HTTPConnection):
    pass


class _TlsConnection(_Noticed, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


_transports: weakref.WeakSet[HttpTransport] = weakref.WeakSet()


def _after_fork() -> None:
    for transport in list(_transports):
        transport.connect_anew()


os.register_at_fork(after_in_child=_after_fork)


class HttpTransport:
    """A pool of connections. Safe from several threads and, where gevent has patched sockets before the import, from greenlets."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._headers = {**access.headers, **({"accept-encoding": compression} if compression else {})}
        self._compression = compression
        self._endpoint = endpoint
        self._context = tls_context(access) if endpoint.tls else None
        if self._context is not None:
            self._context.sslsocket_class = _TlsSocket
        self._closed = False
        self.connect_anew()
        _transports.add(self)

    def connect_anew(self) -> None:
        """Begin without a connection. What a process has from its parent is the parent's: two that read from one would take each other's answers."""
        options: dict[str, Any] = {"maxsize": _POOL, "retries": False}
        host, port = self._endpoint.host, self._endpoint.port
        self._pool = _Pool(host, port, **options) if self._context is None else _TlsPool(host, port, ssl_context=self._context, **options)

    def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """See `Transport`."""
        start = time.perf_counter()
        message = codec.request(call)
        body, own = compressed(message, self._compression)
        ready = time.perf_counter()
        status, answered, data = self._exchange(message, body, {**self._headers, **headers, **own}, timeout_s - (ready - start))
        if isinstance(call, Infer):
            return codec.infer_reply(status, answered, data, ready - start, time.perf_counter() - ready)
        return codec.answer(call, status, data)

    def stream(self, call: Infer, timeout_s: float, headers: Headers) -> Iterator[Result]:
        """See `Transport`."""
        raise no_stream()

    def close(self) -> None:
        """See `Transport`."""
        self._closed = True
        self._pool.close()

    def _exchange(self, message: codec.Message, body: bytes | None, headers: Mapping[str, str], timeout_s: float) -> tuple[int, dict[str, str], bytes]:
        if self._closed:
            raise closed()
        if timeout_s <= 0:
            raise expired()
        _now.end, _now.sent = time.monotonic() + timeout_s, False
        try:
            response = self._pool.urlopen(
                message.method, message.path, body=body, headers=dict(headers), timeout=urllib3.Timeout(total=timeout_s), redirect=False
            )
        except (HTTPError, OSError) as error:
            raise self._failure(error) from error
        return response.status, {name.lower(): value for name, value in response.headers.items()}, response.data

    def _failure(self, error: HTTPError | OSError) -> CallFailed:
        """What became of a call, from the innermost reason."""
        if self._closed:
            return closed()
        cause: BaseException = error
        while (inner := cause.__cause__ or cause.__context__) is not None:
            cause = inner
        said = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
        if isinstance(error, PoolTimeout) or isinstance(cause, TimeoutError):
            return CallFailed(Status.DEADLINE, "TIMEOUT", "", sent=_now.sent)
        if isinstance(error, SSLError | ssl.SSLError) or isinstance(cause, ssl.SSLError):
            return CallFailed(Status.CONNECTION, "TLS", said, sent=_now.sent, own=False)
        if isinstance(error, DecodeError):
            return CallFailed(Status.STRANGER, "200", f"its answer cannot be decompressed: {said}", own=False)
        # An answer that ends too early is a lost connection; one that begins in another way is none of HTTP's.
        if isinstance(cause, http.client.HTTPException) and not isinstance(cause, http.client.IncompleteRead | http.client.RemoteDisconnected):
            return CallFailed(Status.STRANGER, "", "its answer is no HTTP", own=False)
        return CallFailed(Status.CONNECTION, "", said, sent=_now.sent, own=False)


def compressed(message: codec.Message, compression: str | None) -> tuple[bytes | None, Mapping[str, str]]:
    """A message's body and headers, compressed where that was asked for."""
    if not compression or message.body is None:
        return message.body, message.headers
    body = gzip.compress(message.body, compresslevel=1) if compression == "gzip" else zlib.compress(message.body, 1)
    return body, {**message.headers, "Content-Encoding": compression}


def no_stream() -> CallFailed:
    """Why HTTP has no streams: Triton's `generate_stream` carries JSON only."""
    return CallFailed(Status.UNSUPPORTED, "", "responses are streamed over gRPC only")
