"""Requests over HTTP with binary tensors, through tritonclient."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from tritongen.client.core import Endpoint
from tritongen.dtypes import Dtype
from tritongen.errors import InferenceError
from tritongen.samples import Array


class HttpTransport:
    """One connection. Not safe to use from several threads: the library underneath is built on greenlets."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._where = f"{'https' if endpoint.tls else 'http'}://{endpoint.authority}"
        self._client = triton.InferenceServerClient(endpoint.authority, ssl=endpoint.tls, connection_timeout=timeout_s, network_timeout=timeout_s)

    def metadata(self, model: str, version: str) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors():
            return cast(Mapping[str, Any], self._client.get_model_metadata(model, version))

    def config(self, model: str, version: str) -> Mapping[str, Any]:
        """See `Transport`."""
        with self._errors():
            return cast(Mapping[str, Any], self._client.get_model_config(model, version))

    def infer(self, model: str, version: str, inputs: Mapping[str, tuple[Array, Dtype]], timeout_s: float) -> dict[str, Array]:
        """See `Transport`. The connection's own time limit holds; `timeout_s` can only be the one it was opened with."""
        with self._errors():
            request = []
            for name, (array, dtype) in inputs.items():
                request.append(triton.InferInput(name, list(array.shape), dtype.wire))
                request[-1].set_data_from_numpy(array, binary_data=True)
            result = self._client.infer(model, request, model_version=version)
            return {output["name"]: result.as_numpy(output["name"]) for output in result.get_response()["outputs"]}

    def ready(self) -> bool:
        """See `Transport`."""
        try:
            with self._errors():
                return bool(self._client.is_server_ready())
        except InferenceError:
            return False

    def close(self) -> None:
        """See `Transport`."""
        self._client.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except InferenceServerException as error:
            raise InferenceError(f"{self._where}: {error.message()}", status=error.status() or "") from error
        except TimeoutError as error:
            raise InferenceError(f"{self._where}: no answer in time", status="TIMEOUT") from error
        except OSError as error:
            hint = f"is a server listening at {self._where}? 8000 is Triton's usual HTTP port"
            raise InferenceError(f"{self._where}: {error.strerror or error}", status="UNAVAILABLE", hint=hint) from error
