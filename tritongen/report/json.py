"""Findings of `tritongen check` for programs: one JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tritongen.check.findings import CheckFinding, counts
from tritongen.diagnostics import Severity
from tritongen.report.text import printable


def format_json(findings: Sequence[CheckFinding], *, models: int, fixed: int) -> str:
    """`{"diagnostics": [...], "summary": {...}}`, with a final newline.

    Keys are never left out; `line` and `column` count from 1 and are null where a finding is about a whole file. Bytes of file
    names that are no UTF-8 are escapes.
    """
    number = counts(tuple(findings))
    summary = {
        "models": models,
        "errors": number[Severity.ERROR],
        "warnings": number[Severity.WARNING],
        "advice": number[Severity.ADVICE],
        "fixable": sum(finding.fixable for finding in findings),
        "fixed": fixed,
    }
    return json.dumps({"diagnostics": [_finding(finding) for finding in findings], "summary": summary}, indent=2, ensure_ascii=False) + "\n"


def _finding(finding: CheckFinding) -> dict[str, Any]:
    diagnostic = finding.diagnostic
    place = diagnostic.location
    return {
        "code": diagnostic.code,
        "name": finding.name,
        "severity": diagnostic.severity.value,
        "consequence": finding.consequence,
        "model": printable(diagnostic.model),
        "path": printable(place.path) if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "message": printable(diagnostic.message),
        "hint": "\n".join(printable(line) for line in diagnostic.hint.splitlines()),
        "fixable": finding.fixable,
    }
