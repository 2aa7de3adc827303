"""What a command has to say to a program, beside its own result: findings, and the error that ended it. Knows nothing of the commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError, TritongenError
from tritongen.report.text import printable


def diagnostics_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Findings as plain values for JSON. Keys are never left out; `path`, `line` and `column` (from 1) are null where a finding has no such place."""
    return [
        {
            "code": each.code,
            "severity": each.severity.value,
            "model": printable(each.model),
            "path": printable(each.location.path) if each.location else None,
            "line": each.location.line if each.location else None,
            "column": each.location.column if each.location else None,
            "message": printable(each.message),
            "consequence": printable(each.consequence),
            "hint": printable(each.hint),
        }
        for each in diagnostics
    ]


def outcome_json(findings: Iterable[Diagnostic], error: TritongenError | None = None) -> dict[str, Any]:
    """`{"error": null, "findings": [...]}`, which the JSON of a command begins with, whatever became of it.

    An error has its exit code, message and hint; where it is that what was given cannot be used, its findings are among the others, and it says how many.
    """
    if error is None:
        return {"error": None, "findings": diagnostics_json(findings)}
    own = error.diagnostics if isinstance(error, InputError) else ()
    message = f"{len(own)} finding{'' if len(own) == 1 else 's'} in what was given" if own else str(error)
    said = {"exit_code": error.exit_code, "message": printable(message), "hint": printable(error.hint)}
    return {"error": said, "findings": diagnostics_json((*findings, *own))}
