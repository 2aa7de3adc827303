"""Calls over HTTP for asyncio."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection
from urllib3.util import wait_for_read

from tritongen.client import http_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Status, closed, expired
from tritongen.client.endpoint import Access, Endpoint, tls_context
from tritongen.client.flow import Headers
from tritongen.client.http_sync import compressed, no_stream
from tritongen.client.policy import LONGEST_S
from tritongen.client.result import Result

_WHOLE_BODY = 1 << 20
"""aiohttp sends a larger body in pieces, so that the event loop gets a turn, where it is given a file."""


class _Passage:
    """Whether a request has found a connection to go over: before that the server knows nothing of it."""

    def __init__(self) -> None:
        self.is_open = False


_passage: ContextVar[_Passage] = ContextVar("passage")


class _Connector(aiohttp.TCPConnector):
    """A pool that asks the system about a kept connection before a request goes over it, as urllib3 does.

    The event loop may have had no turn since the server closed it, and a request that was written to it may not be sent again.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[object] = WeakSet()

    async def connect(self, *arguments: Any, **options: Any) -> Connection:
        """See `aiohttp.BaseConnector`."""
        connection = await self._sound(*arguments, **options)
        _passage.get().is_open = True
        return connection

    async def _sound(self, *arguments: Any, **options: Any) -> Connection:
        while True:
            connection = await super().connect(*arguments, **options)
            if connection.protocol not in self._used:
                self._used.add(connection.protocol)
                return connection
            # What a kept connection has to say between two requests is its end.
            kept = connection.transport.get_extra_info("socket") if connection.transport is not None else None
            if kept is not None and not wait_for_read(kept, 0):
                return connection
            connection.close()


class AsyncHttpTransport:
    """A pool of connections, made in the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._base = f"{'https' if endpoint.tls else 'http'}://{endpoint.authority}"
        self._headers = {**access.headers, "Accept-Encoding": compression or "identity"}
        self._compression = compression
        self._tls = tls_context(access) if endpoint.tls else None
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """See `AsyncTransport`."""
        start = time.perf_counter()
        message = codec.request(call)
        # The event loop has other things to do meanwhile.
        is_long = self._compression and message.body is not None and len(message.body) > _WHOLE_BODY
        body, own = await asyncio.to_thread(compressed, message, self._compression) if is_long else compressed(message, self._compression)
        ready = time.perf_counter()
        status, answered, data = await self._exchange(message, body, {**headers, **own}, timeout_s - (ready - start))
        if isinstance(call, Infer):
            return codec.infer_reply(status, answered, data, ready - start, time.perf_counter() - ready)
        return codec.answer(call, status, data)

    async def stream(self, call: Infer, timeout_s: float, headers: Headers) -> AsyncIterator[Result]:
        """See `AsyncTransport`."""
        raise no_stream()
        yield  # makes this a generator

    async def close(self) -> None:
        """See `AsyncTransport`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """The session; it belongs to the running event loop. It keeps no cookies, and takes no settings from the environment."""
        if self._closed:
            raise closed()
        if self._session is None:
            connector = _Connector(limit=0, ssl=self._tls if self._tls is not None else True)
            self._session = aiohttp.ClientSession(connector=connector, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    async def _exchange(self, message: codec.Message, body: bytes | None, headers: Mapping[str, str], timeout_s: float) -> tuple[int, dict[str, str], bytes]:
        if timeout_s <= 0:
            raise expired()
        session = self._opened()
        data = io.BytesIO(body) if body is not None and len(body) > _WHOLE_BODY else body
        # Without the threshold aiohttp rounds limits above five seconds up to whole ones.
        limit = aiohttp.ClientTimeout(total=timeout_s, ceil_threshold=LONGEST_S)
        passage = _Passage()
        _passage.set(passage)
        try:
            async with session.request(
                message.method, f"{self._base}{message.path}", data=data, headers=headers, timeout=limit, allow_redirects=False
            ) as response:
                content = await response.read()
                return response.status, {name.lower(): value for name, value in response.headers.items()}, content
        except asyncio.TimeoutError as error:
            raise closed() if self._closed else CallFailed(Status.DEADLINE, "TIMEOUT", "", sent=passage.is_open) from error
        except (aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError, OSError, RuntimeError) as error:
            failure = self._failure(error)
        # Without what it came from: aiohttp's errors hold the request's headers.
        raise failure

    def _failure(self, error: Exception) -> CallFailed:
        if self._closed:
            return closed()
        if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
            return CallFailed(Status.CONNECTION, "TLS", str(error), sent=False, own=False)
        if isinstance(error, aiohttp.ClientConnectorError):
            return CallFailed(Status.CONNECTION, "", error.strerror or str(error), sent=False, own=False)
        if isinstance(error.__cause__, aiohttp.http_exceptions.ContentEncodingError):
            return CallFailed(Status.STRANGER, "200", f"its answer cannot be decompressed: {error.__cause__.message}", own=False)
        if isinstance(error, aiohttp.ClientResponseError | aiohttp.http_exceptions.HttpProcessingError):
            return CallFailed(Status.STRANGER, "", "its answer is no HTTP", own=False)
        if isinstance(error, RuntimeError):
            raise error  # an event loop that is over is a mistake of the caller's
        return CallFailed(Status.CONNECTION, "", str(error) or type(error).__name__, own=False)
