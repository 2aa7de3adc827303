"""Calls over gRPC for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2_grpc

from tritongen.client import grpc_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Reach, Reply, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.grpc_sync import compression_of, credentials, metadata


class AsyncGrpcTransport:
    """One channel, made in the event loop that first uses it."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._endpoint = endpoint
        self._headers = access.headers
        self._compression = compression_of(compression)
        options = codec.channel_options()
        if endpoint.tls:
            self._channel = grpc.aio.secure_channel(endpoint.authority, credentials(access), options)
        else:
            self._channel = grpc.aio.insecure_channel(endpoint.authority, options)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._under_way = 0

    async def send(self, call: Call, timeout_s: float) -> Any:
        """See `AsyncTransport`."""
        if isinstance(call, Reach):
            return await self._reach(timeout_s)
        if isinstance(call, Infer):
            start = time.perf_counter()
            request = codec.infer_request(call)
            ready = time.perf_counter()
            response = await self._call("ModelInfer", request, timeout_s - (ready - start), call.headers)
            return codec.infer_reply(response, serialise_s=ready - start, wait_s=time.perf_counter() - ready)
        rpc = codec.RPCS[type(call)]
        return rpc.answer(await self._call(rpc.method, rpc.request(call), timeout_s, {}))

    async def stream(self, call: Infer, timeout_s: float) -> AsyncIterator[Reply]:
        """See `AsyncTransport`."""
        start = time.perf_counter()
        request = codec.infer_request(call)
        before = time.perf_counter()
        responses = self._stub.ModelStreamInfer(
            iter([request]), timeout=timeout_s, metadata=metadata(self._headers, call.headers), compression=self._compression
        )
        try:
            async for response in responses:
                if response.error_message:
                    raise CallFailed(Status.FAILED, "", response.error_message)
                yield codec.infer_reply(response.infer_response, serialise_s=before - start, wait_s=time.perf_counter() - before)
        except grpc.RpcError as error:
            raise codec.failure(error, connected=await self._state() is grpc.ChannelConnectivity.READY, sent=True) from error
        finally:
            responses.cancel()

    async def close(self) -> None:
        """See `AsyncTransport`."""
        await self._channel.close()

    async def _call(self, method: str, request: Any, timeout_s: float, headers: Mapping[str, str]) -> Any:
        self._under_way += 1
        try:
            return await getattr(self._stub, method)(
                request, timeout=max(timeout_s, 0.0), metadata=metadata(self._headers, headers), compression=self._compression
            )
        except grpc.RpcError as error:
            state = await self._state() if error.code() is grpc.StatusCode.UNAVAILABLE else grpc.ChannelConnectivity.READY
            # As in `GrpcTransport`.
            sent = state is not grpc.ChannelConnectivity.TRANSIENT_FAILURE or self._under_way > 1
            raise codec.failure(error, connected=state is grpc.ChannelConnectivity.READY, sent=sent) from error
        except grpc.aio.UsageError as error:  # what a closed channel raises
            raise CallFailed(Status.CONNECTION, "CLOSED", "the client is closed", sent=False) from error
        finally:
            self._under_way -= 1

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
