"""The options that trtexec of each TensorRT release parses, from options.txt."""

from __future__ import annotations

from pathlib import Path

_ROWS = [line.split() for line in Path(__file__).with_suffix(".txt").read_text().splitlines()[1:]]


def known_options(version: str) -> set[str]:
    """The options of the newest release in the table that is not newer than `version`."""
    wanted = _numbers(version)[:2]
    column = max(index for index, name in enumerate(_ROWS[0]) if index and _numbers(name) <= wanted)
    return {row[0] for row in _ROWS[1:] if row[column] == "x"}


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
