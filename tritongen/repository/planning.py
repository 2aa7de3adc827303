"""Comparing a repository with what is wanted: the plan, model by model.

`make_plan` looks at the disk and never changes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.actions import Action
from tritongen.repository.artifacts import blocked_artifacts, foreign_artifacts, stale_artifacts
from tritongen.repository.comparing import (
    compare_folder,
    folders_of_others,
    foreign_work,
    is_carried,
    listing,
    look,
    others_work,
    stamp_of,
    version_folders,
    why_left_out,
)
from tritongen.repository.entry import CONFIG, CopiedFile, Entry
from tritongen.repository.place import ELSEWHERE, artifacts_beside, repository_root
from tritongen.repository.plan import Change, Plan, unreadable
from tritongen.repository.recipes import recipes_after
from tritongen.repository.shared import SharedChange, SharedFile, SharedFiles, compare_shared, no_files
from tritongen.repository.staging import LOCK_WAIT_S, looked_at
from tritongen.repository.stamp import Stamp, version_of
from tritongen.repository.system import mounts_below, owner_of, same_mount
from tritongen.repository.unfinished import abandoned


def make_plan(
    root: Path,
    entries: Sequence[Entry],
    *,
    shared: SharedFiles = no_files,
    force: bool = False,
    prune: bool = False,
    spared: Collection[str] = (),
) -> Plan:
    """Compare `entries` with the repository at `root` (which need not exist).

    Args:
        root: the repository's folder.
        entries: the models that should be there.
        shared: scripts with a stamp that lie in the artifacts folder and belong to no single model, from the recipes of all models that will be there.
        force: take over our own files that were edited by hand, and folders that are in the way; a place that is not a folder stays a conflict.
        prune: remove models that we made and that are no longer asked for. One with files of others in it is a conflict, whatever `force` says.
        spared: names of further models that are asked for, whose folders stay as they are.

    Raises RepositoryError where `root` cannot be a repository or cannot be read, and where another render writes it and does not end.
    """
    root = repository_root(root)
    try:
        with looked_at(root, wait_s=LOCK_WAIT_S):
            return _planned(root, entries, shared, force=force, prune=prune, spared=spared)
    except OSError as error:
        raise RepositoryError([unreadable(error, root)]) from error


def plan_again(plan: Plan) -> Plan:
    """The same plan for the disk as it is now. Raises as `make_plan` does."""
    try:
        with looked_at(plan.root, wait_s=LOCK_WAIT_S):
            return replan(plan)
    except OSError as error:
        raise RepositoryError([unreadable(error, plan.root)]) from error


def replan(plan: Plan) -> Plan:
    """`plan_again` for whoever holds the repository. Raises RepositoryError where it cannot be a repository, OSError."""
    entries = [change.entry for change in plan.changes if change.entry is not None]
    return _planned(plan.root, entries, plan.shared_files, force=plan.force, prune=plan.prune, spared=plan.spared)


def _planned(root: Path, entries: Sequence[Entry], shared: SharedFiles, *, force: bool, prune: bool, spared: Collection[str]) -> Plan:
    _check_root(root)
    names = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.is_symlink()) if root.is_dir() else []
    changes = [_compare(root, entry, names, force=force) for entry in entries]
    asked = {*spared, *(entry.name for entry in entries)}
    changes += [change for name in names if name not in asked for change in _orphan(root, name, force=force, prune=prune)]
    places = [place / change.name for change in changes if change.action is not Action.CONFLICT for place in (root, artifacts_beside(root))]
    plan = Plan(root, tuple(changes), force, prune, frozenset(spared), shared_files=shared, abandoned=abandoned(places))
    return dataclasses.replace(plan, shared=_compare_shared(plan, names))


def _compare_shared(plan: Plan, names: Sequence[str]) -> tuple[SharedChange, ...]:
    """The files of no single model: for all models that will be there, also those that the plan leaves as they are."""
    staying = [change for change in plan.changes if change not in plan.pruned]
    models = [(change.name, None if change.action is Action.CONFLICT else change.entry) for change in staying]
    spared = [name for name in sorted(plan.spared) if name in names]  # what is asked for may be no name of a folder at all
    recipes, problems = recipes_after(plan.root, [*models, *((name, None) for name in spared)])
    files = {path: SharedFile(file.content, (*file.notes, *problems)) for path, file in plan.shared_files(recipes).items()}
    return tuple(compare_shared(plan.root, path, file, force=plan.force) for path, file in files.items())


def _check_root(root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(root.stat().st_mode):
            raise RepositoryError([Diagnostic("TG041", "the model repository must be a folder, and this is not one", Location(str(root)), hint=ELSEWHERE)])
    model = root.parent if version_of(root.name) else root
    if (model / CONFIG).exists():
        what = "a model's folder" if model == root else "a version of a model"
        message = f"this is {what}, not a model repository: {model} holds a {CONFIG}"
        consequence = "Triton would take every folder in it for a model of its own"
        raise RepositoryError([Diagnostic("TG042", message, Location(str(root)), consequence, f"did you mean {model.parent}?")])


def _unseen(name: str, entry: Entry | None, error: OSError) -> Change:
    """For a model of which something cannot be read: others need not wait for it."""
    reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return Change(name, Action.CONFLICT, entry, (reason,), forcible=False, readable=False)


def _compare(root: Path, entry: Entry, names: Sequence[str], *, force: bool) -> Change:
    """`names`: the folders in `root`, as the disk spells them."""
    try:
        return _compared(root, entry, names, force=force)
    except OSError as error:
        return _unseen(entry.name, entry, error)


def _compared(root: Path, entry: Entry, names: Sequence[str], *, force: bool) -> Change:
    folder = root / entry.name
    artifacts = artifacts_beside(root) / entry.name
    if blocked := blocked_artifacts(root, entry.name, entry.artifacts):
        return Change(entry.name, Action.CONFLICT, entry, tuple(blocked), forcible=False)
    aside = compare_folder(artifacts, [path for path in listing(artifacts) if path in entry.artifacts], entry.artifacts)
    differing = [path for path in listing(artifacts) if path in entry.artifacts and path not in aside.same]
    if not folder.exists() and not folder.is_symlink():
        if foreign := [] if force else foreign_artifacts(artifacts, differing, entry.name, None):
            return Change(entry.name, Action.CONFLICT, entry, tuple(foreign))
        return Change(entry.name, Action.CREATE, entry, unchanged_artifacts=aside.same)
    if folder.is_symlink() or not folder.is_dir():
        what = f"is a link, to {folder.readlink()}: write to the repository that it leads to" if folder.is_symlink() else "is no folder"
        return Change(entry.name, Action.CONFLICT, entry, (f"{folder} {what}",), forcible=False)
    if entry.name not in names:
        spelt = next((name for name in names if name.casefold() == entry.name.casefold()), "of another name")
        reason = f"this disk does not tell it from the folder '{spelt}'"
        return Change(entry.name, Action.CONFLICT, entry, (reason,), forcible=False)
    if mounts := mounts_below(folder):
        return Change(entry.name, Action.CONFLICT, entry, tuple(_mounted(mounts)), forcible=False)
    seen = look(folder)  # before anything is read: what changes afterwards is seen to have changed
    stamp, found = stamp_of(folder), sorted(seen)
    left_out = {path: why for path in found if (why := why_left_out(folder, artifacts, path, entry, stamp))}
    carried = tuple(path for path in found if path not in left_out and is_carried(path, entry, stamp))
    ours = [path for path in found if path not in carried]
    compared = compare_folder(folder, [path for path in ours if path not in left_out], entry.files)
    stale = stale_artifacts(artifacts, entry, stamp)
    if blocked := blocked_artifacts(root, entry.name, stale):
        return Change(entry.name, Action.CONFLICT, entry, tuple(blocked), forcible=False)
    differences = [f"{path}: {why}" for path, why in left_out.items()]
    differences += [*compared.differences, *(f"artifact {text}" for text in aside.differences), *(f"artifact {path}: no longer wanted" for path in stale)]
    wanted = {path.parts[0] for path in entry.files}
    empty = [number for number, has_files in version_folders(folder).items() if not has_files and str(number) not in wanted]
    differences += [f"{number}: an empty version folder, for want of whose file Triton would refuse the model" for number in empty]
    if not differences:
        return Change(entry.name, Action.KEEP, entry, carried=carried)
    if held := _held(folder):
        return Change(entry.name, Action.CONFLICT, entry, tuple(held), forcible=False)
    if locked := next((folder / path for path in carried if _is_locked(folder / path)), None):
        raise PermissionError(errno.EACCES, "Permission denied, and it belongs into the new folder too", str(locked))
    foreign = [] if force else [*foreign_work(folder, ours, entry, stamp), *foreign_artifacts(artifacts, differing, entry.name, stamp)]
    if foreign:
        return Change(entry.name, Action.CONFLICT, entry, tuple(foreign))
    return Change(
        entry.name,
        Action.REPLACE,
        entry,
        tuple(differences),
        carried=carried,
        folders=folders_of_others(folder, entry.files, carried, stamp),
        unchanged=compared.same,
        linked=_linked(folder, entry, compared.same, stamp),
        gone=tuple(path for path in ours if path not in entry.files),
        left_out=tuple(left_out),
        unchanged_artifacts=aside.same,
        stale=stale,
        seen=seen,
    )


def _is_locked(file: Path) -> bool:
    """Whether a file can be neither read nor given a second name: the kernel lets nobody link what is another's and cannot be read (proc(5))."""
    return not file.is_symlink() and file.lstat().st_uid != os.geteuid() and not os.access(file, os.R_OK)


def _mounted(mounts: Sequence[Path]) -> Iterator[str]:
    return (f"{mount} is a mount, which would leave with the model's folder: unmount it, or mount it outside the repository" for mount in mounts)


def _held(folder: Path) -> list[str]:
    """Why a model's folder cannot be moved out of the repository, though others there can: known before it is tried, others need not wait. Raises OSError.

    A folder that gets another parent is written itself, and in one with the sticky bit only its owner, or that of the other, moves it (rename(2)).
    """
    root, user = folder.parent, os.geteuid()
    if not same_mount(folder, root):
        return [f"{folder} is a mount of its own, which cannot be swapped: mount the repository's folder as a whole, or {ELSEWHERE}"]
    around = root.stat()
    sticks = bool(around.st_mode & stat.S_ISVTX) and user not in (0, around.st_uid, folder.stat().st_uid)
    if sticks or (os.access(root, os.W_OK) and not os.access(folder, os.W_OK)):
        whose = f"it belongs to user {owner_of(folder)}, and may not be moved by this one"
        return [f"{folder} cannot be replaced: {whose}; render as that user or as root, or give it to yours (chown -R, chmod u+w)"]
    return []


def _linked(folder: Path, entry: Entry, same: Collection[PurePosixPath], stamp: Stamp | None) -> tuple[PurePosixPath, ...]:
    """The files that we wrote into the folder under another name. A `source` that somebody put there is none: its exporter may write it in place."""
    written = {folder / path: sha for path, sha in stamp.files.items()} if stamp is not None else {}
    copied = [(path, file) for path, file in entry.files.items() if isinstance(file, CopiedFile) and path not in same]
    return tuple(path for path, file in copied if written.get(file.source) == file.sha256)


def _orphan(root: Path, name: str, *, force: bool, prune: bool) -> list[Change]:
    """What becomes of a folder that nobody asks for: nothing, unless we made it. Asked to remove it, we remove what we made and nothing else."""
    folder = root / name
    try:
        stamp = stamp_of(folder)
    except PermissionError:
        return []  # such as lost+found: what may not be read was not made by this user
    if stamp is None or stamp.is_of_another(name):
        return []
    try:
        return [_left(root, name, stamp, force=force, prune=prune)]
    except OSError as error:
        return [_unseen(name, None, error)]


def _left(root: Path, name: str, stamp: Stamp, *, force: bool, prune: bool) -> Change:
    """`_orphan` for a model of ours. Raises OSError."""
    folder = root / name
    artifacts, seen = artifacts_beside(root) / name, look(folder) if prune else {}
    stale = stale_artifacts(artifacts, None, stamp)
    left = [f"{artifacts / path} was not made by tritongen, and is left where it is" for path in listing(artifacts) if prune and path not in stale]
    if prune:
        if held := [*_mounted(mounts_below(folder)), *_held(folder), *blocked_artifacts(root, name, stale)]:
            return Change(name, Action.CONFLICT, reasons=tuple(held), forcible=False)
        others, edited = others_work(folder, stamp)
        if others:
            return Change(name, Action.CONFLICT, reasons=tuple(others), forcible=False)
        if edited and not force:
            return Change(name, Action.CONFLICT, reasons=tuple(edited))
    return Change(name, Action.ORPHAN, reasons=tuple(left), stale=stale, seen=seen)
