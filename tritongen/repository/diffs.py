"""What a plan does to the text files of a model, or of a deployment: unified diffs between the disk and the entry."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.errors import RepositoryError
from tritongen.repository.entry import TextFile
from tritongen.repository.files import FilePlan
from tritongen.repository.plan import Change, unreadable

_MOST_BYTES = 1 << 20
"""Longer texts (labels of a large vocabulary) are named, not compared: comparing takes time with the square of the length."""


@dataclass(frozen=True)
class FileDiff:
    """One text file: `lines` of a unified diff without line ends, or, where it is compared no further, `summary`."""

    path: PurePosixPath
    lines: tuple[str, ...] = ()
    summary: str = ""


def text_diffs(root: Path, change: Change) -> list[FileDiff]:
    """The texts that a change writes differently from what is in the repository at `root`, sorted by path. Raises RepositoryError where one cannot be read."""
    files = change.entry.files if change.entry is not None else {}
    return _diffs(root, {PurePosixPath(change.name) / path: file.content for path, file in files.items() if isinstance(file, TextFile)})


def file_diffs(plan: FilePlan) -> list[FileDiff]:
    """The files of a deployment that are written differently from what is there, sorted by path. Raises RepositoryError where one cannot be read."""
    return _diffs(plan.root, plan.contents)


def _diffs(root: Path, after: Mapping[PurePosixPath, bytes]) -> list[FileDiff]:
    try:
        before = {path: _content(root / path) for path in sorted(after)}
    except OSError as error:
        raise RepositoryError([unreadable(error, root)]) from error
    return [_diff(path, old, after[path]) for path, old in before.items() if old != after[path]]


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _diff(path: PurePosixPath, before: bytes | None, after: bytes) -> FileDiff:
    old, new = _text(before or b""), _text(after)
    if old is None or new is None:
        return FileDiff(path, summary=f"{'new' if before is None else f'{len(before):,} bytes'} → {len(after):,} bytes, not shown")
    names = ("/dev/null" if before is None else f"a/{path}", f"b/{path}")
    return FileDiff(path, tuple(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="")))


def _text(content: bytes) -> str | None:
    """Content as text; None for data, and for a text that is too long."""
    if len(content) > _MOST_BYTES or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
