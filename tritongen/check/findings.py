"""A finding of `tritongen check`: a diagnostic, together with what the catalogue knows of its code and the fix that goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.rules import Edit


@dataclass(frozen=True)
class CheckFinding:
    """One finding, ready for every kind of report.

    Attributes:
        diagnostic: what is wrong, where, and how to mend it.
        name: the code's name, such as `preferred-above-maximum`.
        consequence: `refused`, `fails`, `ignored`, `misbehaves`, `slow` or `fragile`; "" for findings about tritongen's own input.
        edits: changes of the config's bytes that mend it and cannot change the meaning; empty where there are none.
        source: the config.pbtxt that `edits` belong to.
    """

    diagnostic: Diagnostic
    name: str
    consequence: str
    edits: tuple[Edit, ...] = ()
    source: Path | None = None

    @property
    def fixable(self) -> bool:
        """Whether `--fix` can mend it."""
        return bool(self.edits)

    @property
    def sort_key(self) -> tuple[str, str, int, int, str, str]:
        """Findings of one model together, by place; those without a model come first."""
        place = self.diagnostic.location
        path, line, column = (place.path, place.line or 0, place.column or 0) if place else ("", 0, 0)
        return (self.diagnostic.model, path, line, column, self.diagnostic.code, self.diagnostic.message)


def counts(findings: tuple[CheckFinding, ...]) -> dict[Severity, int]:
    """How many findings there are of each severity."""
    return {severity: sum(finding.diagnostic.severity is severity for finding in findings) for severity in Severity}
