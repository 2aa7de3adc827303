"""Calls over HTTP for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp

from tritongen.client import http_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Reply, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.http_sync import compressed, no_stream, tls_context


class AsyncHttpTransport:
    """A pool of connections, made in the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._base = f"{'https' if endpoint.tls else 'http'}://{endpoint.authority}"
        self._headers = {**access.headers, "Accept-Encoding": compression or "identity"}
        self._compression = compression
        self._tls = tls_context(access) if endpoint.tls else None
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def send(self, call: Call, timeout_s: float) -> Any:
        """See `AsyncTransport`."""
        start = time.perf_counter()
        message = codec.request(call)
        body, headers = compressed(message, self._compression)
        ready = time.perf_counter()
        status, answered, data = await self._exchange(message, body, headers, timeout_s - (ready - start))
        if isinstance(call, Infer):
            return codec.infer_reply(status, answered, data, serialise_s=ready - start, wait_s=time.perf_counter() - ready)
        return codec.answer(call, status, answered, data)

    async def stream(self, call: Infer, timeout_s: float) -> AsyncIterator[Reply]:
        """See `AsyncTransport`."""
        raise no_stream()
        yield  # makes this a generator

    async def close(self) -> None:
        """See `AsyncTransport`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, message: codec.Message, body: bytes | None, headers: Mapping[str, str], timeout_s: float) -> tuple[int, dict[str, str], bytes]:
        if self._closed:
            raise CallFailed(Status.CONNECTION, "CLOSED", "the client is closed", sent=False)
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._tls if self._tls is not None else True)
            self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        limit = aiohttp.ClientTimeout(total=max(timeout_s, 0.001))
        try:
            async with self._session.request(
                message.method, f"{self._base}{message.path}", data=body, headers=headers, timeout=limit, allow_redirects=False
            ) as response:
                data = await response.read()
                return response.status, {name.lower(): value for name, value in response.headers.items()}, data
        except asyncio.TimeoutError as error:
            raise CallFailed(Status.DEADLINE, "TIMEOUT", "") from error
        except (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError) as error:
            raise CallFailed(Status.CONNECTION, "TLS", str(error), sent=False, own=False) from error
        except aiohttp.ClientConnectorError as error:
            raise CallFailed(Status.CONNECTION, "", error.strerror or str(error), sent=False, own=False) from error
        except (aiohttp.ClientResponseError, aiohttp.http_exceptions.HttpProcessingError) as error:
            raise CallFailed(Status.STRANGER, "", "its answer is no HTTP", own=False) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(Status.CONNECTION, "", str(error) or type(error).__name__, own=False) from error
