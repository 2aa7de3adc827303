"""The blocking client."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from tritongen.client.core import ModelMeta, Transport, check_request, model_meta, parse_url
from tritongen.samples import Array


class Client:
    """Talks to one Triton, over the protocol that its address names.

    Example:
        >>> with Client("grpc://localhost:8001") as client:  # doctest: +SKIP
        ...     outputs = client.infer("recognizer", {"x": image})
    """

    def __init__(self, url: str, *, timeout_s: float = 60.0) -> None:
        """`url`: such as `grpc://host:8001` or `http://host:8000`. `timeout_s` bounds every call, in seconds. Raises InputError for a bad address."""
        endpoint = parse_url(url)
        self._timeout_s = timeout_s
        self._transport: Transport
        if endpoint.protocol == "grpc":
            from tritongen.client.grpc import GrpcTransport

            self._transport = GrpcTransport(endpoint, timeout_s)
        else:
            from tritongen.client.http import HttpTransport

            self._transport = HttpTransport(endpoint, timeout_s)

    def meta(self, model: str, version: str = "") -> ModelMeta:
        """What the server says about a model. Raises InferenceError where it has none of that name, or cannot be reached."""
        return model_meta(self._transport.metadata(model, version), self._transport.config(model, version))

    def infer(self, model: str, inputs: Mapping[str, Array], version: str = "", *, meta: ModelMeta | None = None) -> dict[str, Array]:
        """Send one request and return all outputs by name.

        The arrays are checked against the model's metadata first; give `meta` to spare the question to the server.
        Raises InputError where they do not fit, InferenceError where the server refuses or fails.
        """
        meta = meta or self.meta(model, version)
        check_request(meta, inputs)
        known = {tensor.name: tensor.dtype for tensor in meta.inputs}
        return self._transport.infer(model, version, {name: (array, known[name]) for name, array in inputs.items()}, self._timeout_s)

    def ready(self) -> bool:
        """Whether the server and all its models are ready."""
        return self._transport.ready()

    def close(self) -> None:
        """Give connections back."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
