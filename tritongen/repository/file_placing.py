"""Writing the files of a deployment: all of them wait on the disk, in a folder of this process's own, before the first of them gets its place; where one cannot
have it, the others give theirs back.

The leading file comes last, so that a render that is killed on the way leaves the old one, which knows the files that were not reached; the new one lies in
what was left and knows those that were. The next render goes by both, and removes what was left once its own files are in place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.patience import all_or_nothing
from tritongen.repository.files import DEPLOYMENT, WAITING, FilePlan, file_conflicts, interrupted_renders, replan_files
from tritongen.repository.private import as_owners, make_private, taken_over
from tritongen.repository.room import bytes_free, size_text
from tritongen.repository.stage import keep
from tritongen.repository.staging import LOCK_WAIT_S, locked, no_locks
from tritongen.repository.system import remove_empty, sync_folder
from tritongen.repository.writing import NEW_MODE

_WAS = "was"
_FOLDER_MODE = 0o755
"""Containers run as other users, and must read what they mount, whatever the umask of the one who renders."""


@dataclass(frozen=True)
class StagedFiles:
    """Files that are on the disk and have not got their places."""

    plan: FilePlan
    folder: Path

    def place(self) -> None:
        """Put all of them in place, and remove what the plan removes.

        Raises RepositoryError, with nothing done: TG049 where somebody wrote there since the plan was made (models may have been copied meanwhile); TG044
        where the disk refuses.
        """
        plan = self.plan
        if (now := replan_files(plan)) != plan:
            raise RepositoryError([_changed(plan, now)])
        wanted = _wanted(plan)
        pruned = [PurePosixPath(change.name) for change in plan.pruned]
        with all_or_nothing() as undo:
            for path in wanted:
                if path != plan.wanted.lead:
                    self._put(path, undo)
            # Before the leading file knows them no more.
            for path in pruned:
                self._remove(path, undo)
            if plan.wanted.lead in wanted:
                self._put(plan.wanted.lead, undo)
        remove_empty(plan.root / parent for path in pruned for parent in path.parents[:-1])
        with _said_of(plan.root):
            as_owners(interrupted_renders(plan.root, plan.wanted.lead), _remove)

    def _put(self, path: PurePosixPath, undo: contextlib.ExitStack) -> None:
        target = self.plan.root / path
        with _said_of(target):
            if target.exists():
                keep(target, self._replaced(path))
                undo.callback(self._replaced(path).replace, target)
            else:
                undo.callback(target.unlink, missing_ok=True)
            (self.folder / path).replace(target)
            sync_folder(target.parent)

    def _remove(self, path: PurePosixPath, undo: contextlib.ExitStack) -> None:
        target = self.plan.root / path
        with _said_of(target):
            target.rename(self._replaced(path))
            undo.callback(self._replaced(path).rename, target)

    def _replaced(self, path: PurePosixPath) -> Path:
        """What a file was, until all are in place."""
        old = self.folder.parent / _WAS / path
        old.parent.mkdir(parents=True, exist_ok=True)
        return old


def _remove(leftovers: Sequence[Path]) -> None:
    for leftover in leftovers:
        with taken_over(leftover):
            pass


def _changed(plan: FilePlan, now: FilePlan) -> Diagnostic:
    names = sorted({change.name for change in {*plan.changes} ^ {*now.changes}}) or [str(plan.wanted.lead)]
    message = f"somebody wrote {', '.join(names)} while the deployment was rendered"
    return Diagnostic("TG049", message, Location(str(plan.root / names[0])), "the deployment was left as it is", "run it again")


@dataclass(frozen=True)
class HeldFiles:
    """A folder that is held against other renders: what is to be done in it as it is now, and what a user should know about the way it is held."""

    plan: FilePlan
    notes: tuple[str, ...]


@contextlib.contextmanager
def held_files(plan: FilePlan, *, wait_s: float = LOCK_WAIT_S) -> Iterator[HeldFiles]:
    """Hold the folder of a plan until the block ends, and make the plan anew: another render may have written there since.

    Raises RepositoryError where another process holds it for `wait_s` seconds (TG048), and where it cannot be made (TG044) or read (TG040).
    """
    made: list[Path] = []
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: remove_empty(reversed(made)))
        with _said_of(plan.root):
            _make_folders(plan.root, made)
            is_locked = stack.enter_context(locked(plan.root, wait_s=wait_s, what=DEPLOYMENT))
        yield HeldFiles(replan_files(plan), () if is_locked else (no_locks(plan.root),))


@contextlib.contextmanager
def staged_files(plan: FilePlan) -> Iterator[StagedFiles]:
    """The files that a plan writes, on the disk until the block ends, for whoever holds their folder: where that has worked, only their names are missing.

    Raises RepositoryError, with nothing written, where the plan has conflicts (TG043) or the disk refuses (TG044).
    """
    if conflicts := file_conflicts(plan):
        raise RepositoryError(conflicts)
    wanted = _wanted(plan)
    made: list[Path] = []
    if not plan.writes:
        yield StagedFiles(plan, plan.root)
        return
    with contextlib.ExitStack() as undo:
        undo.callback(lambda: remove_empty(reversed(made)))
        with _said_of(plan.root):
            _refuse_without_room(plan)
            private = make_private(plan.root, plan.root / plan.wanted.lead)
        undo.callback(private.remove)
        for path in wanted:
            with _said_of(plan.root / path):
                _make_folders((plan.root / path).parent, made)
                _write(private.path / WAITING / path, plan.contents[path])
        yield StagedFiles(plan, private.path / WAITING)


def _refuse_without_room(plan: FilePlan) -> None:
    needed, free = sum(len(plan.contents[path]) for path in _wanted(plan)), bytes_free(plan.root)
    if needed > free:
        message = f"there is not enough room for the deployment: its files need {size_text(needed)}, and {size_text(free)} are free"
        hint = f"free {size_text(needed - free)} or more, or choose another folder with deploy.folder; what is replaced is deleted only afterwards"
        raise RepositoryError([Diagnostic("TG044", message, Location(str(plan.root)), "nothing was changed", hint)])


def apply_files(plan: FilePlan) -> None:
    """Write what the plan says. Raises as `held_files`, `staged_files` and `StagedFiles.place` do."""
    with held_files(plan) as held, staged_files(held.plan) as staged:
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
        raise RepositoryError([Diagnostic("TG044", message, Location(str(path)), "the deployment is as it was", hint)]) from error


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Make what is missing of a path, and note it. Raises OSError."""
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir()
            each.chmod(_FOLDER_MODE)
            made.append(each)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), NEW_MODE)
        os.fsync(file.fileno())
