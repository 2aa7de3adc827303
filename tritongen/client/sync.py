"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

from tritongen.client.core import ModelMeta, Transport, array_bytes, check_size, model_meta, parse_url, request_arrays, unknown_model
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InferenceError, InputError
from tritongen.samples import Array

_SHORTEST_S = 0.001
_LONGEST_S = 1_000_000
"""Eleven days: a limit that means none, and that every clock underneath can count."""


class Client:
    """Talks to one Triton, over the protocol that its address names.

    Example:
        >>> with Client("grpc://localhost:8001") as client:  # doctest: +SKIP
        ...     outputs = client.infer("recognizer", {"x": image})
    """

    def __init__(self, url: str, *, timeout_s: float = 60.0) -> None:
        """`url`: such as `grpc://host:8001` or `http://host:8000`. `timeout_s` bounds every call, in seconds. Raises InputError for what is neither."""
        endpoint = parse_url(url)
        if not 0 < timeout_s <= _LONGEST_S:
            hint = f"give a number above 0 and up to {_LONGEST_S}"
            raise InputError([Diagnostic("TG067", f"a time limit of {timeout_s} s cannot be kept", hint=hint)])
        self._url = url
        self._timeout_s = timeout_s
        self._is_grpc = endpoint.protocol == "grpc"
        self._closed = False
        self._own: Transport
        if self._is_grpc:
            from tritongen.client.grpc import GrpcTransport

            self._own = GrpcTransport(endpoint, timeout_s)
        else:
            from tritongen.client.http import HttpTransport

            self._own = HttpTransport(endpoint, timeout_s)

    @property
    def _transport(self) -> Transport:
        if self._closed:
            raise InferenceError(f"the client of {self._url} is closed", status="CLOSED", hint="make a new one, or use it inside its `with` block")
        return self._own

    def meta(self, model: str, version: str = "") -> ModelMeta:
        """What the server says about a model.

        Raises InferenceError where it has none of that name (with the names that it has), where the model is not loaded (with the server's reason), and where
        the server cannot be reached.
        """
        left = self._clock()
        transport = self._transport
        try:
            return model_meta(transport.metadata(model, version, left()), transport.config(model, version, left()))
        except InferenceError as error:
            # Triton says what it does not have with one of these, by release and protocol.
            if error.status not in ("NOT_FOUND", "UNAVAILABLE", "INVALID_ARGUMENT", "400", "404", "503"):
                raise
            try:
                index = transport.index(left())
            except InferenceError:
                raise error from None
            raise unknown_model(model, version, index, error) from error

    def infer(self, model: str, inputs: Mapping[str, object], version: str = "", *, meta: ModelMeta | None = None) -> dict[str, Array]:
        """Send one request and return all outputs by name.

        Args:
            model: the model's name.
            inputs: by input name, numpy arrays in the model's dtype and shape (the batch dimension included), or plain numbers, text and nested lists of them.
            version: the model's version; empty for the one that the server chooses.
            meta: spares the question to the server, which the inputs are checked against.

        Raises InputError where the inputs do not fit, InferenceError where the server refuses, fails or does not answer in time.
        """
        left = self._clock()
        transport = self._transport
        meta = meta or self.meta(model, version)
        arrays = request_arrays(meta, inputs)
        if self._is_grpc:
            check_size(sum(array_bytes(array) for array in arrays.values()), meta.name)
        known = {tensor.name: tensor.dtype for tensor in meta.inputs}
        return transport.infer(model, version, {name: (array, known[name]) for name, array in arrays.items()}, left())

    def ready(self) -> bool:
        """Whether the server and all its models are ready."""
        return self._transport.ready(self._timeout_s)

    def close(self) -> None:
        """Give connections back. Closing twice does nothing; any other call afterwards raises InferenceError."""
        if not self._closed:
            self._closed = True
            self._own.close()

    def _clock(self) -> Callable[[], float]:
        """The seconds that a call has left."""
        end = time.monotonic() + self._timeout_s
        return lambda: max(end - time.monotonic(), _SHORTEST_S)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
