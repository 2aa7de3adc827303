"""Everything that tritongen raises on purpose.

    TritongenError
    ├── InputError              exit 2: what the user gave cannot be used; carries every finding, not the first
    │   ├── SpecError           the spec file
    │   ├── ModelFileError      a model file
    │   ├── RepositoryError     a model repository, or the place where one should be written
    │   └── InvalidInput        a request that a model does not take, found before it was sent or by the server
    ├── EnvironmentProblem      exit 3: this machine lacks something
    │   ├── MissingExtra        an optional dependency of tritongen is not installed
    │   └── ServerStartError    the embedded Triton could not be started, or a model did not load
    └── InferenceError          exit 3: a running server refused or failed a request
        ├── ModelNotFound       it has no such model or version
        ├── Unavailable         it takes no request for the model now
        │   ├── ModelNotReady   the model is loading, unloading, or failed to load
        │   └── Overloaded      its queue is full
        │       └── QueueTimeout    the request waited in the queue for as long as its policy allows
        ├── DeadlineExceeded    no answer in time; whether it was executed is not known
        ├── ConnectionFailed    it cannot be reached, or the connection was lost
        │   └── NotTriton       something else answers there
        ├── AccessDenied        it wants other credentials
        ├── Unsupported         it does not know how
        ├── ServerError         it failed
        └── PartialFailure      some parts of a request that was split failed; says which rows

Findings are values (`tritongen.diagnostics`); an exception is raised only when the work cannot go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from tritongen.diagnostics import Diagnostic


class TritongenError(Exception):
    """Base of all errors raised on purpose. `hint` says what to do about it; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """An error survives pickle and copy with all it holds, whatever its class takes to be made: worker processes hand errors on so."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[TritongenError], arguments: tuple[object, ...]) -> TritongenError:
    return kind.__new__(kind, *arguments)


class InputError(TritongenError):
    """The input cannot be used. `diagnostics` holds all that was found wrong."""

    exit_code = 2

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(diagnostic) for diagnostic in self.diagnostics))


class SpecError(InputError):
    """The spec file cannot be read, or says something that is not allowed."""


class ModelFileError(InputError):
    """A model file is missing, damaged, or holds what Triton cannot serve."""


class RepositoryError(InputError):
    """A model repository cannot be read, or must not be written as asked."""


class EnvironmentProblem(TritongenError):
    """This machine lacks something that the work needs."""


class MissingExtra(EnvironmentProblem):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str, *, hint: str = "") -> None:
        super().__init__(f"{needed_for} needs an optional dependency: pip install 'tritongen[{extra}]'", hint=hint)
        self.extra = extra


class ServerStartError(EnvironmentProblem):
    """The embedded Triton did not become ready.

    `reasons` maps a model's name to the reason that Triton wrote to its log, and the message holds them too; `log_tail` is the end of that log.
    """

    def __init__(self, message: str, *, reasons: dict[str, str] | None = None, log_tail: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reasons = reasons or {}
        self.log_tail = log_tail


class InvalidInput(InputError):
    """A request does not fit its model. `status` is the protocol's own word where the server said so, and empty where it was found before sending."""

    def __init__(self, diagnostics: Iterable[Diagnostic], *, status: str = "") -> None:
        super().__init__(diagnostics)
        self.status = status


class InferenceError(TritongenError):
    """A running server refused or failed a request. `status` is the protocol's own word (`"400"`, `"UNAVAILABLE"`)."""

    def __init__(self, message: str, *, status: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class ModelNotFound(InferenceError):
    """The server has no model of that name, or not that version of it."""


class Unavailable(InferenceError):
    """The server takes no request for the model now.

    It most likely executed nothing: a model of one's own, or a proxy, can say the same after the work was done.
    """


class ModelNotReady(Unavailable):
    """The model is there and not ready: loading, unloading, unloaded, or failed to load."""


class Overloaded(Unavailable):
    """The model is ready and refuses requests, since its queue is full."""


class QueueTimeout(Overloaded):
    """The request waited in the model's queue for as long as the queue's policy allows."""


class DeadlineExceeded(InferenceError):
    """There was no answer within the deadline. Whether the request was executed is not known; `sent` is False where it certainly never left."""

    def __init__(self, message: str, *, status: str = "", hint: str = "", sent: bool = True) -> None:
        super().__init__(message, status=status, hint=hint)
        self.sent = sent


class ConnectionFailed(InferenceError):
    """The server cannot be reached, or the connection was lost. `sent` is False where the request certainly never arrived."""

    def __init__(self, message: str, *, status: str = "", hint: str = "", sent: bool = True) -> None:
        super().__init__(message, status=status, hint=hint)
        self.sent = sent


class NotTriton(ConnectionFailed):
    """What answers at the address is no Triton, or not over this protocol."""


class AccessDenied(InferenceError):
    """The server wants credentials, or others than those that were sent."""


class Unsupported(InferenceError):
    """The server, or the protocol, does not know how to do this."""


class ServerError(InferenceError):
    """The server or the model failed while executing."""


class PartialFailure(InferenceError):
    """A request was split, and some of its parts failed. `failures` maps each failed range of rows `(first, last + 1)` to its error."""

    def __init__(self, message: str, *, failures: dict[tuple[int, int], TritongenError], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.failures = failures
