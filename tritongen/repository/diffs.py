"""What a plan does to the text files of a model, or of a deployment: unified diffs between the disk and the entry."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.errors import RepositoryError
from tritongen.repository.actions import Action
from tritongen.repository.comparing import listing
from tritongen.repository.entry import TextFile
from tritongen.repository.files import FilePlan
from tritongen.repository.plan import Plan, unreadable

_MOST_BYTES = 1 << 20
"""Longer texts (labels of a large vocabulary) are named, not compared: comparing takes time with the square of the length."""

_Contents = Mapping[PurePosixPath, bytes | None]
"""What should be at each path; None: nothing."""


@dataclass(frozen=True)
class FileDiff:
    """One text file: `lines` of a unified diff without line ends, or, where it is compared no further, `summary`."""

    path: PurePosixPath
    lines: tuple[str, ...] = ()
    summary: str = ""


def plan_diffs(plan: Plan) -> list[FileDiff]:
    """The texts that a plan writes, or removes, in the repository and beside it. Raises RepositoryError where one cannot be read.

    Paths are those in the repository, or begin with the name of the artifacts folder. Data is named where it is removed, and is not shown.
    """
    aside = PurePosixPath(plan.artifacts_root.name)
    models: dict[PurePosixPath, bytes | None] = {}
    beside: dict[PurePosixPath, bytes | None] = {aside / script.path: script.content for script in plan.shared if script.action is not Action.KEEP}
    for change in plan.changes:
        if not change.readable:
            continue
        files, artifacts = (change.entry.files, change.entry.artifacts) if change.entry is not None else ({}, {})
        gone = [*change.gone, *(listing(plan.root / change.name) if change in plan.pruned else ())]
        models |= dict.fromkeys(PurePosixPath(change.name) / path for path in gone)
        models |= {PurePosixPath(change.name) / path: file.content for path, file in files.items() if isinstance(file, TextFile)}
        beside |= dict.fromkeys(aside / change.name / path for path in change.stale if change in (*plan.written, *plan.pruned))
        beside |= {aside / change.name / path: file.content for path, file in artifacts.items() if isinstance(file, TextFile)}
    return [*_diffs(plan.root, models), *_diffs(plan.root.parent, beside)]


def file_diffs(plan: FilePlan) -> list[FileDiff]:
    """The files of a deployment that are written differently from what is there, sorted by path. Raises RepositoryError where one cannot be read."""
    changed = {PurePosixPath(change.name) for change in plan.with_action(Action.CREATE, Action.REPLACE, Action.CONFLICT)}
    return _diffs(plan.root, {path: content for path, content in plan.contents.items() if path in changed})


def _diffs(root: Path, after: _Contents) -> list[FileDiff]:
    try:
        found = [_diff(root / path, path, after[path]) for path in sorted(after)]
    except OSError as error:
        raise RepositoryError([unreadable(error, root)]) from error
    return [diff for diff in found if diff is not None]


def _diff(place: Path, path: PurePosixPath, after: bytes | None) -> FileDiff | None:
    """How the file at `place` differs from what should be there (None: nothing); None where it does not. Raises OSError."""
    if place.is_symlink() or (place.exists() and not place.is_file()):
        what = f"a link to {place.readlink()}" if place.is_symlink() else "no file"
        return FileDiff(path, summary=f"{what} → {_size(after)}, not shown")
    before = None
    if place.is_file():
        size = place.stat().st_size
        if size > _MOST_BYTES:  # weights of any size, which are not read for this
            is_same = after is not None and len(after) == size and place.read_bytes() == after
            return None if is_same else FileDiff(path, summary=f"{size:,} bytes → {_size(after)}, not shown")
        before = place.read_bytes()
    if before == after:
        return None
    old, new = _text(before or b""), _text(after or b"")
    if old is None or new is None:
        return FileDiff(path, summary=f"{'new' if before is None else _size(before)} → {_size(after)}, not shown")
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    lines = tuple(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm=""))
    if lines:
        return FileDiff(path, lines)
    return FileDiff(path, summary="an empty file" if not (old or new) else f"only ends of lines differ: {_ends(old)} → {_ends(new)}")


def _size(content: bytes | None) -> str:
    return "removed" if content is None else f"{len(content):,} bytes"


def _ends(text: str) -> str:
    """How the lines of a text end."""
    kind = "CRLF" if "\r\n" in text else "LF"
    return kind if text.endswith("\n") else f"{kind}, none at the end"


def _text(content: bytes) -> str | None:
    """Content as text; None for data, and for a text that is too long."""
    if len(content) > _MOST_BYTES or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
