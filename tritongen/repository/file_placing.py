"""Writing the files of a deployment: all of them wait on the disk, in a folder of this process's own, before the first of them gets its place.

The leading file comes last, so that a render that is killed on the way leaves the old one, which knows the files that were not reached; the new one lies in
what was left and knows those that were. The next render goes by both, and removes what was left once its own files are in place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.files import WAITING, FilePlan, file_conflicts, interrupted_renders
from tritongen.repository.private import make_private, taken_over
from tritongen.repository.system import sync_folder
from tritongen.repository.writing import NEW_MODE

_FOLDER_MODE = 0o755
"""Containers run as other users, and must read what they mount, whatever the umask of the one who renders."""


@dataclass(frozen=True)
class StagedFiles:
    """Files that are on the disk and have not got their places."""

    plan: FilePlan
    folder: Path

    def place(self) -> None:
        """Put all of them in place, and remove what the plan removes. Raises RepositoryError (TG044) where the disk refuses."""
        plan = self.plan
        wanted = _wanted(plan)
        for path in wanted:
            if path != plan.lead:
                self._put(path)
        # Before the leading file knows them no more.
        self._remove_orphans()
        if plan.lead in wanted:
            self._put(plan.lead)
        with _said_of(plan.root):
            for leftover in interrupted_renders(plan.root, plan.lead):
                with taken_over(leftover):
                    pass

    def _put(self, path: PurePosixPath) -> None:
        target = self.plan.root / path
        with _said_of(target):
            (self.folder / path).replace(target)
            sync_folder(target.parent)

    def _remove_orphans(self) -> None:
        for change in self.plan.pruned:
            target = self.plan.root / change.name
            with _said_of(target):
                target.unlink(missing_ok=True)
            for parent in PurePosixPath(change.name).parents[:-1]:
                with contextlib.suppress(OSError):  # not empty, or gone with another
                    (self.plan.root / parent).rmdir()


@contextlib.contextmanager
def staged_files(plan: FilePlan) -> Iterator[StagedFiles]:
    """The files that a plan writes, on the disk until the block ends: where that has worked, only their names are missing.

    Raises RepositoryError, with nothing written, where the plan has conflicts (TG043) or the disk refuses (TG044).
    """
    if conflicts := file_conflicts(plan):
        raise RepositoryError(conflicts)
    wanted = _wanted(plan)
    made: list[Path] = []
    if not wanted:
        yield StagedFiles(plan, plan.root)
        return
    with contextlib.ExitStack() as undo:
        undo.callback(_remove_empty, made)
        with _said_of(plan.root):
            _make_folders(plan.root, made)
            private = make_private(plan.root, plan.root / plan.lead)
        undo.callback(private.remove)
        for path in wanted:
            with _said_of(plan.root / path):
                _make_folders((plan.root / path).parent, made)
                _write(private.path / WAITING / path, plan.contents[path])
        yield StagedFiles(plan, private.path / WAITING)


def apply_files(plan: FilePlan) -> None:
    """Write what the plan says. Raises as `staged_files` and `StagedFiles.place` do."""
    with staged_files(plan) as staged:
        staged.place()


def _wanted(plan: FilePlan) -> list[PurePosixPath]:
    return [PurePosixPath(change.name) for change in plan.written]


@contextlib.contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """What the operating system refuses, as a finding for the file that a user knows."""
    try:
        yield
    except OSError as error:
        message = f"cannot write the deployment: {error.strerror or error}"
        hint = "check that the folder may be written to and has space, or choose another with deploy.folder"
        raise RepositoryError([Diagnostic("TG044", message, Location(str(path)), hint=hint)]) from error


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Make what is missing of a path, and note it. Raises OSError."""
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir()
            each.chmod(_FOLDER_MODE)
            made.append(each)


def _remove_empty(folders: list[Path]) -> None:
    for folder in reversed(folders):
        with contextlib.suppress(OSError):  # not empty: the files are in place
            folder.rmdir()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), NEW_MODE)
        os.fsync(file.fileno())
