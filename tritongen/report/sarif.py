"""Findings as SARIF 2.1.0, which code scanning of GitHub, Azure DevOps and editors reads."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from tritongen.check.codes import CodeEntry, codes
from tritongen.check.findings import CheckFinding
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.report.github import relative_path
from tritongen.report.text import printable

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}


def format_sarif(findings: Sequence[CheckFinding], *, failures: Sequence[CheckFinding] = ()) -> str:
    """One SARIF log with one run, and a final newline. It describes the rules that have findings; locations are URIs relative to the current folder.

    `failures` are the reasons for which nothing could be checked. They are notifications of the run, and no results: they say nothing about the models.
    """
    used = sorted({finding.diagnostic.code for finding in (*findings, *failures)})
    rules = {code: index for index, code in enumerate(used)}
    driver: dict[str, Any] = {"name": "tritongen", "rules": [_rule(codes()[code]) for code in used]}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a checkout that was never installed has no version
        driver["semanticVersion"] = importlib.metadata.version("tritongen")
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failures, "toolExecutionNotifications": [_notification(failure, rules) for failure in failures]}],
        "results": [_result(finding, rules) for finding in findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(entry: CodeEntry) -> dict[str, Any]:
    level = _LEVELS[entry.consequence.severity] if entry.consequence else "error"
    return {
        "id": entry.code,
        "name": entry.name,
        "shortDescription": {"text": entry.summary},
        "fullDescription": {"text": entry.why},
        "help": {"text": f"{entry.why}\n{entry.fix}", "markdown": _markdown(entry)},
        "defaultConfiguration": {"level": level},
        "properties": {"consequence": entry.consequence.value if entry.consequence else ""},
    }


def _markdown(entry: CodeEntry) -> str:
    parts = [entry.why, f"**What to do:** {entry.fix}"]
    parts += [f"{title}:\n\n```\n{text.strip()}\n```" for title, text in (("Bad", entry.bad), ("Good", entry.good)) if text]
    return "\n\n".join(parts)


def _result(finding: CheckFinding, rules: dict[str, int]) -> dict[str, Any]:
    code = finding.diagnostic.code
    properties = {"consequence": finding.consequence, "model": printable(finding.diagnostic.model)}
    return {"ruleId": code, "ruleIndex": rules[code], **_said(finding.diagnostic), "properties": properties}


def _notification(failure: CheckFinding, rules: dict[str, int]) -> dict[str, Any]:
    code = failure.diagnostic.code
    return {"associatedRule": {"id": code, "index": rules[code]}, **_said(failure.diagnostic)}


def _said(diagnostic: Diagnostic) -> dict[str, Any]:
    """Level, words and place, which results and notifications have alike."""
    text = diagnostic.message + (f"\n{diagnostic.hint}" if diagnostic.hint else "")
    said: dict[str, Any] = {"level": _LEVELS[diagnostic.severity], "message": {"text": "\n".join(printable(line) for line in text.splitlines())}}
    if diagnostic.location is not None:
        said["locations"] = [{"physicalLocation": _physical(diagnostic.location)}]
    return said


def _physical(location: Location) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(location.path)}
    if location.line is not None:
        region: dict[str, Any] = {"startLine": location.line}
        if location.column is not None:
            region["startColumn"] = location.column
        if location.text is not None:
            region["snippet"] = {"text": printable(location.text.replace("\t", " "))}
        physical["region"] = region
    return physical


def _artifact(path: str) -> dict[str, str]:
    """A relative URI below the root of the sources, else an absolute one; every byte of a name that no URI can hold is written as %XX."""
    relative = relative_path(path)
    if PurePosixPath(relative).is_absolute():
        return {"uri": f"file://{quote(os.fsencode(relative))}"}
    # A first segment with a colon would be taken for a scheme; `quote` writes it as %3A.
    return {"uri": quote(os.fsencode(relative)), "uriBaseId": "%SRCROOT%"}
