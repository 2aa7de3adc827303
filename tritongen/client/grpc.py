"""Requests over gRPC, through tritonclient."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from tritongen.client.core import Endpoint
from tritongen.dtypes import Dtype
from tritongen.errors import InferenceError
from tritongen.samples import Array


class GrpcTransport:
    """One channel. Safe to use from several threads, as gRPC channels are."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._where = f"grpc://{endpoint.authority}"
        self._timeout_s = timeout_s
        self._client = triton.InferenceServerClient(endpoint.authority, ssl=endpoint.tls)

    def metadata(self, model: str, version: str) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors():
            return cast(Mapping[str, Any], self._client.get_model_metadata(model, version, as_json=True, client_timeout=self._timeout_s))

    def config(self, model: str, version: str) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors():
            return cast(Mapping[str, Any], self._client.get_model_config(model, version, as_json=True, client_timeout=self._timeout_s)["config"])

    def infer(self, model: str, version: str, inputs: Mapping[str, tuple[Array, Dtype]], timeout_s: float) -> dict[str, Array]:
        """See `Transport`."""
        with self._errors():
            request = []
            for name, (array, dtype) in inputs.items():
                request.append(triton.InferInput(name, list(array.shape), dtype.wire))
                request[-1].set_data_from_numpy(array)
            result = self._client.infer(model, request, version, client_timeout=timeout_s)
            return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}

    def ready(self) -> bool:
        """See `Transport`."""
        try:
            return bool(self._client.is_server_ready(client_timeout=self._timeout_s))
        except InferenceServerException:
            return False

    def close(self) -> None:
        """See `Transport`."""
        self._client.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except InferenceServerException as error:
            status = (error.status() or "").removeprefix("StatusCode.")
            hint = f"is a server listening at {self._where}? 8001 is Triton's usual gRPC port" if status == "UNAVAILABLE" else ""
            raise InferenceError(f"{self._where}: {error.message()}", status=status, hint=hint) from error
