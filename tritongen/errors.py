"""Everything that tritongen raises on purpose.

    TritongenError
    ├── InputError              exit 2: what the user gave cannot be used; carries every finding, not the first
    │   ├── SpecError           the spec file
    │   ├── ModelFileError      a model file
    │   └── RepositoryError     a model repository, or the place where one should be written
    ├── EnvironmentProblem      exit 3: this machine lacks something
    │   ├── MissingExtra        an optional dependency of tritongen is not installed
    │   └── ServerStartError    the embedded Triton could not be started, or a model did not load
    └── InferenceError          exit 3: a running server refused or failed a request

Findings are values (`tritongen.diagnostics`); an exception is raised only when the work cannot go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from tritongen.diagnostics import Diagnostic


class TritongenError(Exception):
    """Base of all errors raised on purpose. `hint` says what to do about it; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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


class InferenceError(TritongenError):
    """A running server refused or failed a request. `status` is the protocol's own word (`"400"`, `"UNAVAILABLE"`)."""

    def __init__(self, message: str, *, status: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
