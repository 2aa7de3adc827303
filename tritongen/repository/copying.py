"""Copying a file's content, by reference where the filesystem can."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.entry import CopiedFile
from tritongen.repository.system import clone

_CHUNK = 1 << 20

Progress = Callable[[int], None]
"""Told how many bytes more are in place."""


def copy_content(source: Path, target: Path, *, progress: Progress | None = None) -> str:
    """Make a new file `target` with the content of `source`, by reference where the filesystem can (nothing is read then).

    Returns the SHA-256 (hex) of what was read; empty where nothing was. Raises OSError where it fails, and where `target` is there already.
    """
    with source.open("rb") as reader, target.open("xb") as writer:
        if clone(reader.fileno(), writer.fileno()):
            if progress is not None:
                progress(target.stat().st_size)
            return ""
        digest = hashlib.sha256()
        while chunk := reader.read(_CHUNK):
            digest.update(chunk)
            writer.write(chunk)
            if progress is not None:
                progress(len(chunk))
    return digest.hexdigest()


def source_size(file: CopiedFile) -> int:
    """Size of a source in bytes. Raises RepositoryError where it is gone, OSError where it cannot be looked at."""
    try:
        return file.source.stat().st_size
    except FileNotFoundError as error:
        raise source_changed(file.source) from error


def source_changed(path: Path) -> RepositoryError:
    """What is raised where a source is not what it was when the plan was made."""
    return RepositoryError(
        [
            Diagnostic(
                "TG049",
                "the file changed while it was rendered",
                Location(str(path)),
                "nothing was changed: what was proved is not what would have been written",
                "run it again when the program that writes the file is done",
            )
        ]
    )


def can_clone(source: Path, folder: Path) -> bool:
    """Whether a file can be copied into `folder` by reference, so that the copy needs no room. Tries it."""
    probe = folder / "probe"
    try:
        with source.open("rb") as reader, probe.open("xb") as writer:
            return clone(reader.fileno(), writer.fileno())
    finally:
        probe.unlink(missing_ok=True)
