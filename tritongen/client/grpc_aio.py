"""Calls over gRPC for asyncio."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from tritongen.client import grpc_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, OtherProtocol, ServerLive, Status, closed, expired
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.flow import NO_HEADERS, Headers
from tritongen.client.grpc_sync import compression_of, credentials, metadata
from tritongen.client.grpc_watch import NOTICED_S
from tritongen.client.result import Result

_READY = grpc.ChannelConnectivity.READY


class AsyncGrpcTransport:
    """One channel, made in the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._endpoint = endpoint
        self._headers = access.headers
        self._metadata = metadata(access.headers, NO_HEADERS)
        self._compression = compression_of(compression)
        self._credentials = credentials(access) if endpoint.tls else None
        self._channel: Any = None
        self._stub: Any = None
        self._closed = False

    async def send(self, call: Call, timeout_s: float, headers: Headers, *, connects: bool = False) -> Any:
        """See `AsyncTransport`; `connects` says that it is the call by which a connection is made."""
        if isinstance(call, OtherProtocol):
            return await self._is_other(timeout_s)
        rpc = codec.RPCS[type(call)]
        start = time.perf_counter()
        request = rpc.request(call)
        ready = time.perf_counter()
        timeout_s -= ready - start
        stub = self._stub or self._opened()
        if not connects and self._channel.get_state() is not _READY:
            timeout_s = await self._connect(timeout_s, headers)
        if timeout_s <= 0:
            raise expired()
        carried = metadata(self._headers, headers) if headers else self._metadata
        try:
            response = await getattr(stub, rpc.method)(request, timeout=timeout_s, metadata=carried, compression=self._compression)
        except grpc.RpcError as error:
            raise await self._failure(error) from error
        except grpc.aio.UsageError as error:  # what a closed channel raises
            raise closed() from error
        except asyncio.CancelledError:
            if self._ended_by_close():
                raise closed() from None
            raise
        return rpc.answer(response, ready - start, time.perf_counter() - ready)

    async def stream(self, call: Infer, timeout_s: float, headers: Headers) -> AsyncIterator[Result]:
        """See `AsyncTransport`."""
        start = time.perf_counter()
        request = codec.infer_request(call)
        before = time.perf_counter()
        timeout_s -= before - start
        stub = self._stub or self._opened()
        if self._channel.get_state() is not _READY:
            timeout_s = await self._connect(timeout_s, headers)
        if timeout_s <= 0:
            raise expired()
        options = {"timeout": timeout_s, "metadata": metadata(self._headers, headers) if headers else self._metadata, "compression": self._compression}
        responses = stub.ModelStreamInfer(iter([request]), **options)
        try:
            async for response in responses:
                if response.error_message:
                    raise CallFailed(Status.FAILED, "", response.error_message)
                yield codec.infer_reply(response.infer_response, before - start, time.perf_counter() - before)
        except grpc.RpcError as error:
            raise await self._failure(error) from error
        except asyncio.CancelledError:
            if self._ended_by_close():
                raise closed() from None
            raise
        finally:
            responses.cancel()

    async def close(self) -> None:
        """See `AsyncTransport`."""
        self._closed, self._stub = True, None
        if self._channel is not None:
            await self._channel.close()

    def _opened(self) -> Any:
        """The stub of a new channel, which belongs to the running event loop."""
        if self._closed:
            raise closed()
        self._channel = self._made_channel()
        self._stub = codec.Stub(self._channel)
        return self._stub

    def _made_channel(self) -> grpc.aio.Channel:
        options = codec.channel_options()
        if self._credentials is not None:
            return grpc.aio.secure_channel(self._endpoint.authority, self._credentials, options)
        return grpc.aio.insecure_channel(self._endpoint.authority, options)

    async def _connect(self, timeout_s: float, headers: Headers) -> float:
        """As `GrpcTransport` does."""
        if timeout_s <= 0:
            raise expired()
        end = time.monotonic() + timeout_s
        try:
            await self.send(ServerLive(), timeout_s, headers, connects=True)
        except CallFailed as failure:
            if failure.status in (Status.CONNECTION, Status.DEADLINE):
                failure.sent = False
                raise
        return end - time.monotonic()

    def _ended_by_close(self) -> bool:
        """Whether a call that was cancelled was so by the channel that was closed under it. Python 3.10 does not tell that from a task that was cancelled."""
        task = asyncio.current_task()
        return self._closed and not (sys.version_info >= (3, 11) and task is not None and task.cancelling())

    async def _failure(self, error: grpc.RpcError) -> CallFailed:
        """As `GrpcTransport` does."""
        at = time.monotonic()
        if self._closed:
            return closed()
        is_lost = error.code() is grpc.StatusCode.UNAVAILABLE and await self._is_lost()
        return codec.failure(error, connected=not is_lost, at=at)

    async def _is_other(self, timeout_s: float) -> bool:
        """As `GrpcTransport` does."""
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(self._endpoint.host, self._endpoint.port), timeout_s)
        except (OSError, asyncio.TimeoutError):
            return False
        writer.close()
        async with self._made_channel() as channel:
            try:
                await codec.Stub(channel).ServerLive(codec.RPCS[ServerLive].request(ServerLive()), timeout=timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                return codec.is_no_grpc(error)
        return False

    async def _is_lost(self) -> bool:
        """Whether the channel says, within the time that it takes to notice, that its connection is gone."""
        try:
            await asyncio.wait_for(self._channel.wait_for_state_change(_READY), NOTICED_S)
        except asyncio.TimeoutError:
            return False
        return True
