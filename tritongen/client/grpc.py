"""Requests over gRPC, through tritonclient."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from tritongen.client.core import Endpoint, stranger
from tritongen.dtypes import Dtype
from tritongen.errors import InferenceError
from tritongen.samples import Array

_TRITONS_OWN = frozenset({"NOT_FOUND", "INVALID_ARGUMENT", "ALREADY_EXISTS"})
"""Statuses that Triton gives and that gRPC itself never makes up."""
_PROBE_S = 2.0


class GrpcTransport:
    """One channel. Safe to use from several threads, as gRPC channels are."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        """`timeout_s` is what a caller waits in all, in seconds, for the messages; each call has a limit of its own."""
        self._limit_s = timeout_s
        self._endpoint = endpoint
        self._where = f"{'grpcs' if endpoint.tls else 'grpc'}://{endpoint.authority}"
        self._client = triton.InferenceServerClient(endpoint.authority, ssl=endpoint.tls)

    def metadata(self, model: str, version: str, timeout_s: float) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors(timeout_s):
            return cast(Mapping[str, Any], self._client.get_model_metadata(model, version, as_json=True, client_timeout=timeout_s))

    def config(self, model: str, version: str, timeout_s: float) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors(timeout_s):
            return cast(Mapping[str, Any], self._client.get_model_config(model, version, as_json=True, client_timeout=timeout_s)["config"])

    def index(self, timeout_s: float) -> Sequence[Mapping[str, Any]]:
        """See `Transport`."""
        with self._errors(timeout_s):
            return cast(Sequence[Mapping[str, Any]], self._client.get_model_repository_index(as_json=True, client_timeout=timeout_s).get("models", []))

    def infer(self, model: str, version: str, inputs: Mapping[str, tuple[Array, Dtype]], timeout_s: float) -> dict[str, Array]:
        """See `Transport`."""
        with self._errors(timeout_s):
            request = []
            for name, (array, dtype) in inputs.items():
                request.append(triton.InferInput(name, list(array.shape), dtype.wire))
                request[-1].set_data_from_numpy(array)
            result = self._client.infer(model, request, version, client_timeout=timeout_s)
            return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}

    def ready(self, timeout_s: float) -> bool:
        """See `Transport`."""
        try:
            return bool(self._client.is_server_ready(client_timeout=timeout_s))
        except InferenceServerException:
            return False

    def close(self) -> None:
        """See `Transport`."""
        self._client.close()

    @contextlib.contextmanager
    def _errors(self, timeout_s: float) -> Iterator[None]:
        try:
            yield
        except InferenceServerException as error:
            raise self._mapped(error, timeout_s) from error

    def _mapped(self, error: InferenceServerException, timeout_s: float) -> InferenceError:
        status = (error.status() or "").removeprefix("StatusCode.")
        said = f"{self._where}: {error.message()}"
        if status == "DEADLINE_EXCEEDED":
            hint = "wait longer (--timeout), or see whether this is Triton's gRPC port, usually 8001"
            return InferenceError(f"{self._where}: no answer within {self._limit_s:g} s", status=status, hint=hint)
        if not status or status in _TRITONS_OWN or self._is_triton(min(timeout_s, _PROBE_S)):
            return InferenceError(said, status=status)
        if status == "UNAVAILABLE" and not self._listens(min(timeout_s, _PROBE_S)):
            return InferenceError(said, status=status, hint=f"is a server listening at {self._where}? 8001 is Triton's usual gRPC port")
        return stranger(self._where, "gRPC", f"{status} ({error.message()})", status=status)

    def _is_triton(self, timeout_s: float) -> bool:
        """Whether the server answers Triton's simplest question: then what it said before was its own word, and not that of gRPC."""
        try:
            self._client.is_server_live(client_timeout=timeout_s)
        except InferenceServerException:
            return False
        return True

    def _listens(self, timeout_s: float) -> bool:
        try:
            socket.create_connection((self._endpoint.host, self._endpoint.port), timeout_s).close()
        except OSError:
            return False
        return True
