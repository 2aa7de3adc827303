"""Calls over gRPC for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2_grpc

from tritongen.client import grpc_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Reach, Reply, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.flow import Headers
from tritongen.client.grpc_sync import closed, compression_of, credentials, metadata


class AsyncGrpcTransport:
    """One channel, made in the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._endpoint = endpoint
        self._headers = access.headers
        self._compression = compression_of(compression)
        self._credentials = credentials(access) if endpoint.tls else None
        self._channel: Any = None
        self._stub: Any = None
        self._under_way = 0
        self._closed = False

    async def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """See `AsyncTransport`."""
        if isinstance(call, Reach):
            return await self._reach(timeout_s)
        if isinstance(call, Infer):
            start = time.perf_counter()
            request = codec.infer_request(call)
            ready = time.perf_counter()
            response = await self._call("ModelInfer", request, timeout_s - (ready - start), headers)
            return codec.infer_reply(response, serialise_s=ready - start, wait_s=time.perf_counter() - ready)
        rpc = codec.RPCS[type(call)]
        return rpc.answer(await self._call(rpc.method, rpc.request(call), timeout_s, headers))

    async def stream(self, call: Infer, timeout_s: float, headers: Headers) -> AsyncIterator[Reply]:
        """See `AsyncTransport`."""
        start = time.perf_counter()
        request = codec.infer_request(call)
        before = time.perf_counter()
        options = {"timeout": timeout_s, "metadata": metadata(self._headers, headers), "compression": self._compression}
        responses = self._opened().ModelStreamInfer(iter([request]), **options)
        try:
            async for response in responses:
                if response.error_message:
                    raise CallFailed(Status.FAILED, "", response.error_message)
                yield codec.infer_reply(response.infer_response, serialise_s=before - start, wait_s=time.perf_counter() - before)
        except grpc.RpcError as error:
            raise await self._failure(error, alone=False) from error
        except asyncio.CancelledError:
            if self._closed:
                raise closed() from None
            raise
        finally:
            responses.cancel()

    async def close(self) -> None:
        """See `AsyncTransport`."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    def _opened(self) -> Any:
        """The stub; its channel belongs to the running event loop."""
        if self._closed:
            raise closed()
        if self._stub is None:
            options = codec.channel_options()
            if self._credentials is not None:
                self._channel = grpc.aio.secure_channel(self._endpoint.authority, self._credentials, options)
            else:
                self._channel = grpc.aio.insecure_channel(self._endpoint.authority, options)
            self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        return self._stub

    async def _call(self, method: str, request: Any, timeout_s: float, headers: Headers) -> Any:
        stub = self._opened()
        self._under_way += 1
        try:
            return await getattr(stub, method)(request, timeout=max(timeout_s, 0.0), metadata=metadata(self._headers, headers), compression=self._compression)
        except grpc.RpcError as error:
            raise await self._failure(error, alone=self._under_way == 1) from error
        except grpc.aio.UsageError as error:  # what a closed channel raises
            raise closed() from error
        except asyncio.CancelledError:
            if self._closed:
                raise closed() from None  # the channel ends its calls so; nobody cancelled the task
            raise
        finally:
            self._under_way -= 1

    async def _failure(self, error: grpc.RpcError, *, alone: bool) -> CallFailed:
        """As `GrpcTransport` does."""
        if self._closed:
            return closed()
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            return codec.failure(error, connected=True, sent=True)
        state = await self._state()
        sent = not alone or state is not grpc.ChannelConnectivity.TRANSIENT_FAILURE
        return codec.failure(error, connected=state is grpc.ChannelConnectivity.READY, sent=sent)

    async def _reach(self, timeout_s: float) -> bool:
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(self._endpoint.host, self._endpoint.port), timeout_s)
        except (OSError, asyncio.TimeoutError):
            return False
        writer.close()
        return True

    async def _state(self) -> grpc.ChannelConnectivity:
        """The channel's state once a connection that was lost had time to be noticed: READY where it is still there."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY), codec.NOTICED_S)
        return self._channel.get_state()
