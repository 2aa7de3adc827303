"""The table of releases, and what is known about their images, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tritongen.known_issues import ISSUES, Issue, issues_of
from tritongen.releases import DEFAULT_RELEASE, Release

_COLUMNS = ("release", "Triton", "ONNX Runtime", "TensorRT", "in -trtllm", "CUDA", "Python")
_UNKNOWN = "unknown"


def format_releases(releases: Sequence[Release]) -> str:
    """A row for each release, then what is known about any of them. What no source says is shown as unknown."""
    rows = [_COLUMNS, *(tuple(value or _UNKNOWN for value in _facts(release).values()) for release in releases)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += ["", f"A spec without triton.release is rendered for {DEFAULT_RELEASE.name}."]
    for issue in _issues(releases):
        label = f"{issue.span}: " + ("security: " if issue.is_security else "")
        lines += ["", f"{label}{issue.text}", f"    what to do: {issue.advice}", f"    source: {issue.source}"]
    return "\n".join(lines) + "\n"


def releases_json(releases: Sequence[Release]) -> str:
    """The same as JSON: null for what is not known, the names of its issues with each release, and the issues themselves."""
    table = [_facts(release) | {"issues": [issue.name for issue in issues_of(release)]} for release in releases]
    issues = [
        {
            "name": issue.name,
            "first": issue.first,
            "last": issue.last,
            "security": issue.is_security,
            "text": issue.text,
            "advice": issue.advice,
            "source": issue.source,
        }
        for issue in _issues(releases)
    ]
    return json.dumps({"default": DEFAULT_RELEASE.name, "releases": table, "issues": issues}, indent=2, ensure_ascii=False) + "\n"


def _facts(release: Release) -> dict[str, str | None]:
    return {
        "release": release.name,
        "triton": release.triton,
        "onnxruntime": release.onnxruntime,
        "tensorrt": release.tensorrt,
        "trtllm_tensorrt": release.trtllm_tensorrt,
        "cuda": release.cuda,
        "python": release.python,
    }


def _issues(releases: Sequence[Release]) -> list[Issue]:
    return [issue for issue in ISSUES if any(issue.holds_in(release) for release in releases)]
