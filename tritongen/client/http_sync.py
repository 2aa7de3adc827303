"""Calls over HTTP that block."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError, SSLError
from urllib3.exceptions import TimeoutError as PoolTimeout

from tritongen.client import http_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Reply, Status
from tritongen.client.endpoint import Access, Endpoint

_POOL = 64
_now = threading.local()
"""When the call that this thread is in must end, on `time.monotonic`: a socket's own limit is for one read, and a server that sends a byte now and then would
never reach it."""


def _left() -> float:
    left = _now.end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return float(left)


class _Socket(socket.socket):
    """A socket whose every read ends with the call's deadline."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(_left())
        return super().recv_into(*arguments, **options)


class _TlsSocket(ssl.SSLSocket):
    """The same over TLS."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(_left())
        return super().recv_into(*arguments, **options)


def _timed(plain: socket.socket) -> socket.socket:
    timeout = plain.gettimeout()
    timed = _Socket(plain.family, plain.type, plain.proto, plain.detach())
    timed.settimeout(timeout)
    return timed


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _timed(super()._new_conn())


class _TlsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _timed(super()._new_conn())


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class HttpTransport:
    """A pool of connections. Safe from several threads and, where gevent has patched sockets before the import, from greenlets."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._headers = {**access.headers, **({"accept-encoding": compression} if compression else {})}
        self._compression = compression
        options: dict[str, Any] = {"maxsize": _POOL, "retries": False}
        if endpoint.tls:
            self._pool: urllib3.HTTPConnectionPool = _TlsPool(endpoint.host, endpoint.port, ssl_context=tls_context(access), **options)
        else:
            self._pool = _Pool(endpoint.host, endpoint.port, **options)
        self._closed = False

    def send(self, call: Call, timeout_s: float) -> Any:
        """See `Transport`."""
        start = time.perf_counter()
        message = codec.request(call)
        body, headers = compressed(message, self._compression)
        ready = time.perf_counter()
        status, answered, data = self._exchange(message, body, {**self._headers, **headers}, timeout_s - (ready - start))
        if isinstance(call, Infer):
            return codec.infer_reply(status, answered, data, serialise_s=ready - start, wait_s=time.perf_counter() - ready)
        return codec.answer(call, status, answered, data)

    def stream(self, call: Infer, timeout_s: float) -> Iterator[Reply]:
        """See `Transport`."""
        raise no_stream()

    def close(self) -> None:
        """See `Transport`."""
        self._closed = True
        self._pool.close()

    def _exchange(self, message: codec.Message, body: bytes | None, headers: Mapping[str, str], timeout_s: float) -> tuple[int, dict[str, str], bytes]:
        if self._closed:
            raise CallFailed(Status.CONNECTION, "CLOSED", "the client is closed", sent=False)
        timeout_s = max(timeout_s, 0.001)
        _now.end = time.monotonic() + timeout_s
        try:
            response = self._pool.urlopen(
                message.method, message.path, body=body, headers=dict(headers), timeout=urllib3.Timeout(total=timeout_s), redirect=False
            )
        except NewConnectionError as error:
            raise CallFailed(Status.CONNECTION, "", _words(error), sent=False, own=False) from error
        except SSLError as error:
            raise CallFailed(Status.CONNECTION, "TLS", _words(error), sent=False, own=False) from error
        except (PoolTimeout, TimeoutError) as error:
            raise CallFailed(Status.DEADLINE, "TIMEOUT", "") from error
        except ProtocolError as error:
            lost = isinstance(error.args[-1], OSError) and not isinstance(error.args[-1], ValueError)
            status = Status.CONNECTION if lost else Status.STRANGER
            raise CallFailed(status, "", _words(error) if lost else "its answer is no HTTP", own=False) from error
        except (HTTPError, OSError) as error:
            raise CallFailed(Status.CONNECTION, "", _words(error), own=False) from error
        return response.status, {name.lower(): value for name, value in response.headers.items()}, response.data


def compressed(message: codec.Message, compression: str | None) -> tuple[bytes | None, Mapping[str, str]]:
    """A message's body and headers, compressed where that was asked for."""
    if not compression or message.body is None:
        return message.body, message.headers
    body = gzip.compress(message.body, compresslevel=1) if compression == "gzip" else zlib.compress(message.body, 1)
    return body, {**message.headers, "Content-Encoding": compression}


def tls_context(access: Access) -> ssl.SSLContext:
    """The TLS context of a client. Raises InputError (TG069) where a file cannot be read, and ssl.SSLError where it is none of TLS."""
    tls = access.tls
    ca = tls.read(tls.ca)
    context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    context.sslsocket_class = _TlsSocket
    if tls.cert is not None and tls.key is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context


def no_stream() -> CallFailed:
    """Why HTTP has no streams: Triton's `generate_stream` carries JSON only."""
    return CallFailed(Status.UNSUPPORTED, "", "responses are streamed over gRPC only")


def _words(error: Exception) -> str:
    """The innermost reason, without the library's own wrapping."""
    cause: BaseException = error
    while (cause.__cause__ or cause.__context__) is not None:
        cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
