"""Make the disk look like a plan.

A model's folder is staged whole beside the repository (Triton takes every folder *in* it for a model) and put in place with one rename, or, where a folder
is there
already, with one `renameat2(RENAME_EXCHANGE)`: a server that polls the repository sees the old model or the new one, never half of one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.entry import CopiedFile, EntryFile, TextFile
from tritongen.repository.plan import Action, Change, Plan

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_FICLONE = 0x40049409
"""Linux's ioctl for copying a file by reference, on filesystems that can (Btrfs, XFS)."""


@dataclass(frozen=True)
class Applied:
    """What was done. `notes` say what a user should know, such as a filesystem that cannot swap folders in one step."""

    written: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def apply_plan(plan: Plan, *, prune: bool = False, link: bool = False) -> Applied:
    """Write what the plan says, model by model; with `prune`, remove the orphans too.

    `link` is for a repository that lives no longer than its sources stay as they are: large files are hard-linked where they can be, instead of copied.

    Raises RepositoryError, with nothing written, where the plan has conflicts; and where the disk refuses, with the models that were not reached left as
    they were.
    """
    if found := conflicts(plan):
        raise RepositoryError(found)
    changes = plan.with_action(Action.CREATE, Action.REPLACE)
    orphans = plan.with_action(Action.ORPHAN) if prune else ()
    if not changes and not orphans:
        return Applied()
    notes: list[str] = []
    try:
        plan.root.mkdir(parents=True, exist_ok=True)
        with _staging(plan.root) as staging:
            for change in changes:
                _stage(plan, staging, change, link=link)
            _sync_filesystem(staging)
            for change in changes:
                _place(plan, staging, change, notes)
            for change in orphans:
                (plan.root / change.name).rename(staging / "old" / change.name)
    except OSError as error:
        raise RepositoryError([_refused(plan, error)]) from error
    return Applied(tuple(change.name for change in changes), tuple(change.name for change in orphans), tuple(notes))


def conflicts(plan: Plan) -> list[Diagnostic]:
    """A finding (TG043) for each model whose place holds somebody's work."""
    return [_conflict(plan, change) for change in plan.with_action(Action.CONFLICT)]


def _conflict(plan: Plan, change: Change) -> Diagnostic:
    return Diagnostic(
        "TG043",
        f"model '{change.name}' would be overwritten: {'; '.join(change.reasons)}",
        Location(str(plan.root / change.name)),
        hint="move your change into the spec (`config:` takes any field of config.pbtxt), or overwrite it with --force"
        if change.forcible
        else "remove it, or move it away: --force replaces folders only",
        model=change.name,
    )


def _refused(plan: Plan, error: OSError) -> Diagnostic:
    message = f"cannot write the model repository: {error.strerror or error}"
    hint = "check that the place exists and may be written to, or choose another with -o"
    if error.errno == errno.ENOSPC:
        hint = "free some space; nothing that was there is lost"
    elif error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        message, hint = "another render is writing the same model repository", "run it again when that one is done"
    return Diagnostic("TG044", message, Location(str(error.filename or plan.root)), hint=hint)


@contextlib.contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """A folder beside `root`, on the same filesystem, gone afterwards."""
    staging = Path(tempfile.mkdtemp(prefix=f".{root.name}.tritongen-", dir=root.parent))
    try:
        for part in ("new", "artifacts", "old"):
            (staging / part).mkdir()
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _stage(plan: Plan, staging: Path, change: Change, *, link: bool) -> None:
    """Write all of a model's files where no server looks."""
    assert change.entry is not None
    _write_files(staging / "artifacts" / change.name, change.entry.artifacts, link=link)
    staged = staging / "new" / change.name
    _write_files(staged, change.entry.files, link=link)
    for path in change.carried:
        (staged / path).parent.mkdir(parents=True, exist_ok=True)
        os.link(plan.root / change.name / path, staged / path, follow_symlinks=False)


def _place(plan: Plan, staging: Path, change: Change, notes: list[str]) -> None:
    """Put a staged model where servers look. Artifacts go first: a plan's source must not be older than its config."""
    assert change.entry is not None
    for path in change.entry.artifacts:
        artifact = plan.artifacts_root / change.name / path
        artifact.parent.mkdir(parents=True, exist_ok=True)
        (staging / "artifacts" / change.name / path).replace(artifact)
    staged, target = staging / "new" / change.name, plan.root / change.name
    if change.action is Action.CREATE:
        staged.rename(target)
    elif not _exchange(staged, target):
        target.rename(staging / "old" / change.name)
        staged.rename(target)
        notes.append(f"{change.name}: this filesystem cannot exchange two folders in one step; the model was absent for a moment")


def _write_files(folder: Path, files: Mapping[PurePosixPath, EntryFile], *, link: bool) -> None:
    for path, file in files.items():
        target = folder / path
        # Also where the file itself is made on the target: the version folder must be there for it.
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(file, TextFile):
            target.write_bytes(file.content)
        elif isinstance(file, CopiedFile):
            _copy(file.source, target, link=link)


def _copy(source: Path, target: Path, *, link: bool) -> None:
    """Copy by reference where the filesystem can, else by content. Not a hard link, unless asked: an exporter that rewrites its file in place would change
    the live model.
    """
    if link:
        with contextlib.suppress(OSError):
            os.link(source.resolve(), target)
            return
    copy_content(source, target)


def copy_content(source: Path, target: Path) -> None:
    """Make `target` a file with the content of `source`, by reference where the filesystem can (nothing is read then). Raises OSError where that fails."""
    with source.open("rb") as reader, target.open("wb") as writer:
        if not _clone(reader.fileno(), writer.fileno()):
            shutil.copyfileobj(reader, writer, 1 << 20)


def _clone(source: int, target: int) -> bool:
    """Let `target` share the blocks of `source`; False where the filesystem or the system cannot."""
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _sync_filesystem(folder: Path) -> None:
    """Have all staged content on the disk before any name points to it, so that a crash cannot leave the new name without the new content.

    One `syncfs` instead of an `fsync` a file: 500 models are some 2,500 files and folders.
    """
    if sys.platform != "linux":
        if hasattr(os, "sync"):
            os.sync()
        return
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step. False where the filesystem or the kernel cannot."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))
