"""Calls over gRPC that block."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
from tritonclient.grpc import service_pb2_grpc

from tritongen.client import grpc_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, Reach, Reply, Status
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.flow import Headers


class GrpcTransport:
    """One channel. Safe from several threads, as gRPC channels are."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._endpoint = endpoint
        self._headers = access.headers
        self._compression = compression_of(compression)
        options = codec.channel_options()
        if endpoint.tls:
            self._channel = grpc.secure_channel(endpoint.authority, credentials(access), options)
        else:
            self._channel = grpc.insecure_channel(endpoint.authority, options)
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)
        self._under_way: deque[None] = deque()  # one entry a call; appending and popping need no lock
        self._closed = False

    def send(self, call: Call, timeout_s: float, headers: Headers) -> Any:
        """See `Transport`."""
        if isinstance(call, Infer):
            start = time.perf_counter()
            request = codec.infer_request(call)
            ready = time.perf_counter()
            response = self._call("ModelInfer", request, timeout_s - (ready - start), headers)
            return codec.infer_reply(response, serialise_s=ready - start, wait_s=time.perf_counter() - ready)
        if isinstance(call, Reach):
            return self._reach(timeout_s)
        rpc = codec.RPCS[type(call)]
        return rpc.answer(self._call(rpc.method, rpc.request(call), timeout_s, headers))

    def stream(self, call: Infer, timeout_s: float, headers: Headers) -> Iterator[Reply]:
        """See `Transport`."""
        start = time.perf_counter()
        request = codec.infer_request(call)
        before = time.perf_counter()
        options = {"timeout": timeout_s, "metadata": metadata(self._headers, headers), "compression": self._compression}
        try:
            responses = self._stub.ModelStreamInfer(iter([request]), **options)
        except ValueError as error:  # what a closed channel raises
            raise closed() from error
        try:
            for response in responses:
                if response.error_message:
                    raise CallFailed(Status.FAILED, "", response.error_message)
                yield codec.infer_reply(response.infer_response, serialise_s=before - start, wait_s=time.perf_counter() - before)
        except grpc.RpcError as error:
            raise self._failure(error, alone=False) from error
        finally:
            responses.cancel()

    def close(self) -> None:
        """See `Transport`."""
        self._closed = True
        self._channel.close()

    def _call(self, method: str, request: Any, timeout_s: float, headers: Headers) -> Any:
        self._under_way.append(None)
        try:
            return getattr(self._stub, method)(request, timeout=max(timeout_s, 0.0), metadata=metadata(self._headers, headers), compression=self._compression)
        except grpc.RpcError as error:
            raise self._failure(error, alone=len(self._under_way) == 1) from error
        except ValueError as error:  # what a closed channel raises
            raise closed() from error
        finally:
            self._under_way.pop()

    def _failure(self, error: grpc.RpcError, *, alone: bool) -> CallFailed:
        """What became of a call; `alone`: no other was under way.

        A call that loses its connection leaves the channel idle; one that finds no connection leaves it failing. With other calls under way one of those may
        have tried to connect since.
        """
        if self._closed:
            return closed()
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            return codec.failure(error, connected=True, sent=True)
        state = self._state()
        sent = not alone or state is not grpc.ChannelConnectivity.TRANSIENT_FAILURE
        return codec.failure(error, connected=state is grpc.ChannelConnectivity.READY, sent=sent)

    def _reach(self, timeout_s: float) -> bool:
        try:
            socket.create_connection((self._endpoint.host, self._endpoint.port), timeout_s).close()
        except OSError:
            return False
        return True

    def _state(self) -> grpc.ChannelConnectivity:
        """The channel's state once a connection that was lost had time to be noticed: READY where it is still there."""
        changed = threading.Event()
        states = [grpc.ChannelConnectivity.READY]

        def listen(state: grpc.ChannelConnectivity) -> None:
            if state is not grpc.ChannelConnectivity.READY and not changed.is_set():
                states.append(state)
                changed.set()

        with contextlib.suppress(ValueError):  # it was closed meanwhile
            self._channel.subscribe(listen)
            changed.wait(codec.NOTICED_S)
            self._channel.unsubscribe(listen)
        return states[-1]


def closed() -> CallFailed:
    """A call of a client that was closed."""
    return CallFailed(Status.CONNECTION, "CLOSED", "the client is closed", sent=False)


def credentials(access: Access) -> grpc.ChannelCredentials:
    """TLS credentials. Raises InputError (TG069) where a file cannot be read."""
    tls = access.tls
    return grpc.ssl_channel_credentials(tls.read(tls.ca), tls.read(tls.key), tls.read(tls.cert))


def compression_of(name: str | None) -> grpc.Compression | None:
    """GRPC's own value for `gzip`, `deflate` or None."""
    return {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}[name] if name else None


def metadata(general: Mapping[str, str], own: Mapping[str, str]) -> tuple[tuple[str, str], ...] | None:
    """Headers as gRPC takes them; those of the call win."""
    return tuple({**general, **own}.items()) if general or own else None
