"""What comes back from a model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritongen.diagnostics import shown
from tritongen.errors import ServerError
from tritongen.samples import Array


@dataclass(slots=True)
class Timings:
    """Where a request's time went, in seconds.

    Attributes:
        total: from the call to its return, retries and their pauses included; for a response of a stream, from the request to it. 0.0 until the call returns.
        serialise: making the message, of the attempt that succeeded; of all parts together where the request was cut.
        wait: the network and the server, likewise; of the slowest part where it was cut.
        decode: reading the answer, of all parts together where it was cut.
        attempts: how often it was sent: once, and each time that it was sent again; of all parts together where it was cut.
    """

    total: float
    serialise: float
    wait: float
    decode: float
    attempts: int = 1


def check_outputs(model: str, outputs: Collection[str], asked: Collection[str]) -> None:
    """Raise ServerError where an answer lacks outputs that were asked for by name."""
    missing = [name for name in asked if name not in outputs]
    if missing:
        have = ", ".join(map(repr, outputs)) or "none"
        message = f"model '{model}' answered without {', '.join(map(shown, missing))}, which was asked for; the answer has {have}"
        raise ServerError(message, hint="the model's own code, or something between here and the server, left it out")


def check_request_id(model: str, got: str, sent: str) -> None:
    """Raise ServerError for an answer that says it is another request's."""
    if got != sent:
        message = f"model '{model}' answered the request {shown(sent)} with the answer to {shown(got)}"
        raise ServerError(message, hint="something between here and the server mixes answers up")


class Result(Mapping[str, Array]):
    """The outputs of one request: a mapping of arrays by name.

    Arrays of numbers are read-only views of the message; copy one to change it. Strings are arrays of `bytes`. Pickle and copy keep everything but
    `raw`, which is None afterwards: gRPC's messages are of one process.

    Attributes:
        model: the model's name.
        version: the version that answered.
        request_id: as it was sent.
        parameters: what the server says beside the tensors.
        timings: where the time went.
        raw: the protocol's own message (`ModelInferResponse`, or the JSON header of HTTP); a list of them for a request that was split.
    """

    __slots__ = ("_outputs", "model", "parameters", "raw", "request_id", "timings", "version")

    def __init__(
        self,
        outputs: Mapping[str, Array],
        *,
        model: str = "",
        version: str = "",
        request_id: str = "",
        parameters: Mapping[str, Any] | None = None,
        timings: Timings | None = None,
        raw: Any = None,
    ) -> None:
        self._outputs = outputs
        self.model = model
        self.version = version
        self.request_id = request_id
        self.parameters = parameters or {}
        self.timings = timings or Timings(0.0, 0.0, 0.0, 0.0, 0)
        self.raw = raw

    def __reduce__(self) -> tuple[Any, ...]:
        outputs = dict(self._outputs)
        return _again, (outputs, self.model, self.version, self.request_id, dict(self.parameters), self.timings)

    def __getitem__(self, name: str) -> Array:
        try:
            return self._outputs[name]
        except KeyError:
            have = ", ".join(repr(known) for known in sorted(self._outputs))
            raise KeyError(f"the answer has no output {shown(name)}; it has {have}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {array.dtype} {list(array.shape)}" for name, array in self._outputs.items())
        return f"Result({self.model!r} version {self.version}: {shapes})"


def _again(outputs: Mapping[str, Array], model: str, version: str, request_id: str, parameters: Mapping[str, Any], timings: Timings) -> Result:
    return Result(outputs, model=model, version=version, request_id=request_id, parameters=parameters, timings=timings)
