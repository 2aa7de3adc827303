"""The questions that one can ask a Triton, as values, and how a transport says that one failed.

Names and fields are those of Triton's protocol (KServe's v2 inference protocol with Triton's extensions).
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tritongen.client.arguments import check_flag, check_load, check_model
from tritongen.client.metadata import TensorMeta
from tritongen.samples import Array

_REFUSAL_S = 0.02
"""Seconds in which a refusal travels from the queue to its client, also on a busy machine."""


@dataclass(frozen=True)
class _OfModel:
    """A question about a model; the version may be given as a number. Raises InvalidInput (TG061) for what no model can be named."""

    model: str
    version: str = ""

    def __post_init__(self) -> None:
        _set(self, *check_model(self.model, self.version))


def _set(call: _OfModel | ModelStatistics, model: str, version: str) -> None:
    object.__setattr__(call, "model", model)
    object.__setattr__(call, "version", version)


@dataclass(frozen=True)
class OtherProtocol:
    """Does something accept connections at the address that does not speak gRPC? Answer: bool. Never fails."""


@dataclass(frozen=True)
class ServerLive:
    """Is the server running? Answer: bool."""


@dataclass(frozen=True)
class ServerReady:
    """Are the server and all its models ready? Answer: bool."""


@dataclass(frozen=True)
class ModelReady(_OfModel):
    """Is this model ready? Answer: bool."""


def readiness(model: str, version: str) -> ModelReady | ServerReady:
    """The question whether a model is ready, or, where its name is empty, the server with all its models. Raises InvalidInput (TG061)."""
    model, version = check_model(model, version, may_be_empty=True)
    return ModelReady(model, version) if model else ServerReady()


@dataclass(frozen=True)
class ServerMetadata:
    """Answer: name, version and extensions."""


@dataclass(frozen=True)
class ModelMetadata(_OfModel):
    """Answer: name, versions, inputs and outputs with name, datatype and shape."""


@dataclass(frozen=True)
class ModelConfiguration(_OfModel):
    """Answer: the whole ModelConfig, in its own field names."""


@dataclass(frozen=True)
class ModelStatistics:
    """Answer: a list of statistics, one entry for each version."""

    model: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        _set(self, *check_model(self.model, self.version, may_be_empty=True))


@dataclass(frozen=True)
class RepositoryIndex:
    """Answer: a list with name, and where the server says them version, state and reason."""

    ready: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "ready", check_flag("ready", self.ready))


@dataclass(frozen=True)
class LoadModel:
    """`config`: a ModelConfig as JSON in place of the model's own; `files`: content by `<version>/<name>`. Answer: None."""

    model: str
    config: str = field(default="", repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def load_model(model: str, config: str | Mapping[str, Any], files: Mapping[str, bytes | str] | None) -> LoadModel:
    """The call to load a model, from what `Client.load` takes. Raises InvalidInput (TG061)."""
    check_model(model)
    return LoadModel(model, *check_load(model, config, files))


@dataclass(frozen=True)
class UnloadModel:
    """Answer: None, before the model is gone."""

    model: str
    dependents: bool = False

    def __post_init__(self) -> None:
        check_model(self.model)
        object.__setattr__(self, "dependents", check_flag("dependents", self.dependents, self.model))


@dataclass(slots=True)
class Infer:
    """One request, to be left as it is. Answer: `Result`.

    Attributes:
        model: the model's name.
        version: the version that is asked for; empty for the one that the server chooses.
        layout: of each input its name, Triton's datatype and shape.
        arrays: the inputs, in the same order.
        outputs: those that are asked for; None for all.
        request_id: comes back with the answer.
        parameters: priority, timeout and the sequence's own beside those of the user.
    """

    model: str
    version: str
    layout: tuple[tuple[str, str, tuple[int, ...]], ...]
    arrays: tuple[Array, ...] = field(repr=False)
    outputs: tuple[str, ...] | None = None
    request_id: str = ""
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)

    @classmethod
    def of(cls, model: str, version: str, inputs: Sequence[tuple[TensorMeta, Array]], **options: Any) -> Infer:
        """A request with these arrays for the model's inputs; `options` are the other attributes."""
        layout = tuple((tensor.name, tensor.dtype.wire, array.shape) for tensor, array in inputs)
        return cls(model, version, layout, tuple(array for _, array in inputs), **options)

    def within(self, seconds: float) -> Infer:
        """The request as it is sent when so much time is left: where it says how long it may wait in the queue, no longer than that."""
        limit_us = self.parameters.get("timeout")
        left_us = longest_wait_us(seconds)
        return self if limit_us is None or int(limit_us) <= left_us else replace(self, parameters={**self.parameters, "timeout": left_us})


def longest_wait_us(seconds: float) -> int:
    """How long a request may wait in the queue whose answer is due in so many seconds, in microseconds.

    A little less, so that the queue's own refusal arrives before the client gives up; a Triton up to 25.05 may end where both meet (known issue
    `crash-when-cancelled`).
    """
    return max(int((seconds - min(seconds / 10, _REFUSAL_S)) * 1e6), 1)


Call = (
    OtherProtocol
    | ServerLive
    | ServerReady
    | ModelReady
    | ServerMetadata
    | ModelMetadata
    | ModelConfiguration
    | ModelStatistics
    | RepositoryIndex
    | LoadModel
    | UnloadModel
    | Infer
)


class Status(enum.Enum):
    """What became of a call, in one vocabulary for both protocols."""

    INVALID = "invalid"
    NOT_FOUND = "not found"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    DENIED = "denied"
    FAILED = "failed"
    DEADLINE = "deadline"
    CONNECTION = "connection"
    STRANGER = "stranger"


class CallFailed(Exception):
    """A call that brought no answer; raised by transports and codecs only, and made into one of `tritongen.errors` by `failures`.

    Attributes:
        status: what became of it.
        word: the protocol's own word for it (`"503"`, `"UNAVAILABLE"`).
        said: what the server, or the library, says about it.
        sent: False where the request certainly did not reach the server.
        own: the status is surely Triton's own word; where False, the protocol's library or something in between may have made it up.
        at: when the answer, or the lack of one, was known, on `time.monotonic`: what a transport finds out afterwards took no time of the server's.
    """

    def __init__(self, status: Status, word: str, said: str, *, sent: bool = True, own: bool = True, at: float | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.word = word
        self.said = said
        self.sent = sent
        self.own = own
        self.at = time.monotonic() if at is None else at


def closed() -> CallFailed:
    """A call of a client that was closed."""
    return CallFailed(Status.CONNECTION, "CLOSED", "the client is closed", sent=False)


def expired() -> CallFailed:
    """A call whose time was over before anything of it was sent."""
    return CallFailed(Status.DEADLINE, "EXPIRED", "", sent=False)
