"""Calls over gRPC that block."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

import grpc

from tritongen.client import grpc_codec as codec
from tritongen.client.calls import Call, CallFailed, Infer, OtherProtocol, ServerLive, Status, closed, expired
from tritongen.client.endpoint import Access, Endpoint
from tritongen.client.flow import NO_HEADERS, Headers
from tritongen.client.grpc_watch import Watch
from tritongen.client.result import Result


class GrpcTransport:
    """One channel. Safe from several threads, as gRPC channels are."""

    def __init__(self, endpoint: Endpoint, access: Access, compression: str | None) -> None:
        self._endpoint = endpoint
        self._headers = access.headers
        self._metadata = metadata(access.headers, NO_HEADERS)
        self._compression = compression_of(compression)
        self._credentials = credentials(access) if endpoint.tls else None
        self._channel = self._made_channel()
        self._stub = codec.Stub(self._channel)
        self._watch = Watch(self._channel)
        self._closed = False

    def send(self, call: Call, timeout_s: float, headers: Headers, *, connects: bool = False) -> Any:
        """See `Transport`; `connects` says that it is the call by which a connection is made."""
        if isinstance(call, OtherProtocol):
            return self._is_other(timeout_s)
        rpc = codec.RPCS[type(call)]
        start = time.perf_counter()
        request = rpc.request(call)
        ready = time.perf_counter()
        timeout_s -= ready - start
        if not (self._watch.ready or connects):
            timeout_s = self._connect(timeout_s, headers)
        if timeout_s <= 0:
            raise expired()
        carried = metadata(self._headers, headers) if headers else self._metadata
        losses = self._watch.losses
        try:
            response = getattr(self._stub, rpc.method)(request, timeout_s, carried, compression=self._compression)
        except grpc.RpcError as error:
            raise self._failure(error, losses) from error
        except ValueError as error:  # what a closed channel raises
            raise closed() from error
        return rpc.answer(response, ready - start, time.perf_counter() - ready)

    def stream(self, call: Infer, timeout_s: float, headers: Headers) -> Iterator[Result]:
        """See `Transport`."""
        start = time.perf_counter()
        request = codec.infer_request(call)
        before = time.perf_counter()
        timeout_s -= before - start
        if not self._watch.ready:
            timeout_s = self._connect(timeout_s, headers)
        if timeout_s <= 0:
            raise expired()
        losses = self._watch.losses
        options = {"timeout": timeout_s, "metadata": metadata(self._headers, headers) if headers else self._metadata, "compression": self._compression}
        try:
            responses = self._stub.ModelStreamInfer(iter([request]), **options)
        except ValueError as error:  # what a closed channel raises
            raise closed() from error
        try:
            for response in responses:
                if response.error_message:
                    raise CallFailed(Status.FAILED, "", response.error_message)
                yield codec.infer_reply(response.infer_response, before - start, time.perf_counter() - before)
        except grpc.RpcError as error:
            raise self._failure(error, losses) from error
        finally:
            responses.cancel()

    def close(self) -> None:
        """See `Transport`."""
        self._closed = True
        self._watch.stop()

    def _connect(self, timeout_s: float, headers: Headers) -> float:
        """Make a connection by a question that anybody may ask, so that a failure to connect is known as one, and no request was sent. Brings the time left.

        A channel that says no more than UNAVAILABLE of a call cannot tell whether the call ever found a connection.
        """
        if timeout_s <= 0:
            raise expired()
        if self._closed:
            raise closed()
        end = time.monotonic() + timeout_s
        try:
            self._watch.start()
            self.send(ServerLive(), timeout_s, headers, connects=True)
        except ValueError as error:  # what a closed channel raises
            raise closed() from error
        except CallFailed as failure:
            if failure.status in (Status.CONNECTION, Status.DEADLINE):
                failure.sent = False
                raise
        self._watch.wait_ready(end - time.monotonic())
        return end - time.monotonic()

    def _failure(self, error: grpc.RpcError, losses: int) -> CallFailed:
        """What became of a call that began when so many connections had been lost."""
        at = time.monotonic()
        if self._closed:
            return closed()
        is_lost = error.code() is grpc.StatusCode.UNAVAILABLE and self._watch.lost_since(losses)
        return codec.failure(error, connected=not is_lost, at=at)

    def _made_channel(self) -> grpc.Channel:
        options = codec.channel_options()
        if self._credentials is not None:
            return grpc.secure_channel(self._endpoint.authority, self._credentials, options)
        return grpc.insecure_channel(self._endpoint.authority, options)

    def _is_other(self, timeout_s: float) -> bool:
        """Asked over a channel of its own: one that found nobody there says so for a while after a server came."""
        try:
            socket.create_connection((self._endpoint.host, self._endpoint.port), timeout_s).close()
        except OSError:
            return False
        channel = self._made_channel()
        try:
            codec.Stub(channel).ServerLive(codec.RPCS[ServerLive].request(ServerLive()), timeout_s, self._metadata)
        except grpc.RpcError as error:
            return codec.is_no_grpc(error)
        finally:
            channel.close()
        return False


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
