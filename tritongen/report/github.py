"""Findings as GitHub's workflow commands, which show them in the files of a pull request."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tritongen.check.findings import CheckFinding
from tritongen.diagnostics import Severity
from tritongen.report.text import printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def format_github(findings: Sequence[CheckFinding]) -> str:
    """One command a line, such as `::error file=m/config.pbtxt,line=3,col=1,title=TG262 name::message`. Paths are relative to the current folder."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: CheckFinding) -> str:
    diagnostic = finding.diagnostic
    place = diagnostic.location
    properties = {}
    if place is not None:
        properties = {"file": relative_path(place.path), "line": place.line, "col": place.column}
    properties["title"] = f"{diagnostic.code} {finding.name}"
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{_COMMANDS[diagnostic.severity]} {shown}::{_data(_text(finding))}"


def _text(finding: CheckFinding) -> str:
    diagnostic = finding.diagnostic
    parts = (diagnostic.message, diagnostic.consequence and f"What follows: {diagnostic.consequence}", diagnostic.hint and f"What to do: {diagnostic.hint}")
    lines = [line for part in parts if part for line in part.splitlines()]
    return "\n".join(printable(line) for line in lines)


def _data(text: str) -> str:
    """GitHub's escapes of a message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """GitHub's escapes of a property."""
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


def relative_path(path: str) -> str:
    """The path from the current folder where it lies below it, with `/`; else as it is."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links are left as the user named them
    here = Path.cwd()
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else Path(path).as_posix()
