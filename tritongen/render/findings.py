"""Collects what is wrong, or worth saying, about one model of a spec."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

from tritongen.diagnostics import Diagnostic, Location, Severity

Key = tuple[str | int, ...]


@dataclass
class Findings:
    """A list of diagnostics with the model's name and its place in the spec filled in.

    Attributes:
        model: the model's name.
        locate: turns a key path below the model (such as `("shapes", "x")`) into the place in the spec's text.
        is_inherited: whether the model has the key at this path from `defaults`.
        about: what stands before each message, such as `version 3: `.
    """

    model: str
    locate: Callable[[Key], Location]
    is_inherited: Callable[[Key], bool]
    found: list[Diagnostic] = field(default_factory=list)
    about: str = ""

    def error(self, code: str, key: Key, message: str, *, consequence: str = "", hint: str = "") -> None:
        """Something that must be mended before the model can be written."""
        self._add(Severity.ERROR, code, key, message, consequence, hint)

    def warning(self, code: str, key: Key, message: str, *, consequence: str = "", hint: str = "") -> None:
        """Something that has no effect, or another effect than one would think."""
        self._add(Severity.WARNING, code, key, message, consequence, hint)

    def idle(self, key: Key, message: str, *, consequence: str = "", hint: str = "") -> None:
        """A key that has no effect in this combination: a warning, and only advice where it was written for all models under `defaults`."""
        add = self.advice if self.is_inherited(key[:1]) else self.warning
        add("TG117", key, message, consequence=consequence, hint=hint)

    def advice(self, code: str, key: Key, message: str, *, consequence: str = "", hint: str = "") -> None:
        """Something that a user should know."""
        self._add(Severity.ADVICE, code, key, message, consequence, hint)

    def saying(self, about: str) -> Findings:
        """The same collector, for findings that begin with `about`."""
        return dataclasses.replace(self, about=about)

    @property
    def has_errors(self) -> bool:
        """True where the model must not be written."""
        return any(diagnostic.severity is Severity.ERROR for diagnostic in self.found)

    def _add(self, severity: Severity, code: str, key: Key, message: str, consequence: str, hint: str) -> None:
        self.found.append(Diagnostic(code, self.about + message, self.locate(key), consequence, hint, self.model, severity))
