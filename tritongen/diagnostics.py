"""Findings as data: where a problem is, what it means, how to mend it.

This module owns the value types that every stage reports with. It knows nothing about YAML, pbtxt, ONNX or terminals:
`sources` makes locations out of text, `report` prints them.
"""

from __future__ import annotations

import enum
import reprlib
from dataclasses import dataclass

_LONGEST = 80
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _LONGEST


def shown(value: object) -> str:
    """A value as messages quote it: its repr, cut in the middle or at 80 characters. Never fails, whatever the value's own repr does."""
    text = _REPR.repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class Severity(enum.Enum):
    """How much a finding matters: an error stops the work, a warning does not (unless `--strict`), advice never does."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file; lines and columns count from 1, as editors show them.

    `text` is the whole offending line, so that a report can print it under a caret without reading the file again.
    """

    path: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: stable identifier such as `TG012`; never reused for another meaning.
        message: what is wrong, in one sentence, with the expected and the found value.
        location: where it is; None only where no file is involved (a command-line argument, say).
        consequence: what Triton would do with it ("refuses to load the model", "ignores it silently", ...).
        hint: what to change, as concretely as is known.
        model: the model's name where the finding belongs to one.
    """

    code: str
    message: str
    location: Location | None = None
    consequence: str = ""
    hint: str = ""
    model: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.code} {self.message}"
