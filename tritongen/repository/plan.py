"""What a render would do to a repository, decided before anything is written.

`make_plan` looks at the disk and never changes it; `--dry-run`, `--check` and the real run share its result.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.actions import Action
from tritongen.repository.comparing import (
    CONFIG,
    artifacts_beside,
    compare_folder,
    foreign_work,
    is_carried,
    is_old,
    is_temporary,
    listing,
    others_work,
    stale_artifacts,
    stamp_of,
    why_left_out,
)
from tritongen.repository.entry import Entry
from tritongen.repository.shared import SharedChange, compare_shared
from tritongen.repository.staging import LOCK_WAIT_S, looked_at

_NOTHING: Mapping[PurePosixPath, bytes | None] = MappingProxyType({})


@dataclass(frozen=True)
class Change:
    """What a plan does with one model.

    Attributes:
        name: the model.
        action: create, replace or keep; conflict where that would destroy somebody's work; orphan for a model of ours that is no longer asked for.
        entry: what should be there; None for a model that is no longer asked for.
        reasons: for a replace, which files differ and how; for a conflict, whose work it would destroy.
        forcible: for a conflict, whether `force` would take it over.
        carried: files in the folder that stay as they are: made on the target, or not made by tritongen and in nobody's way.
        unchanged: files in the folder that are as they should be, so that they need not be copied again.
        stale: files in the model's artifacts folder that we made and that are no longer wanted.
    """

    name: str
    action: Action
    entry: Entry | None = None
    reasons: tuple[str, ...] = ()
    forcible: bool = True
    carried: tuple[PurePosixPath, ...] = ()
    unchanged: tuple[PurePosixPath, ...] = ()
    stale: tuple[PurePosixPath, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All changes, in the order of the entries, models that are no longer asked for last.

    Attributes:
        root: the repository's folder.
        changes: one for each model.
        force: whether work of others is taken over.
        prune: whether orphans are removed.
        spared: names of models that are asked for and have no entry, since something is wrong with them: their folders stay as they are.
        shared: one for each file that belongs to no single model.
    """

    root: Path
    changes: tuple[Change, ...]
    force: bool = False
    prune: bool = False
    spared: frozenset[str] = frozenset()
    shared: tuple[SharedChange, ...] = ()

    @property
    def artifacts_root(self) -> Path:
        """Where files lie that Triton must not see."""
        return artifacts_beside(self.root)

    def with_action(self, *actions: Action) -> tuple[Change, ...]:
        """The changes of these kinds."""
        return tuple(change for change in self.changes if change.action in actions)

    @property
    def written(self) -> tuple[Change, ...]:
        """The changes that put a folder in place."""
        return self.with_action(Action.CREATE, Action.REPLACE)

    @property
    def pruned(self) -> tuple[Change, ...]:
        """The changes that remove one."""
        return self.with_action(Action.ORPHAN) if self.prune else ()

    @property
    def conflicts(self) -> tuple[Change, ...]:
        """The models whose folders hold somebody's work."""
        return self.with_action(Action.CONFLICT)

    @property
    def shared_written(self) -> tuple[SharedChange, ...]:
        """The files of no single model that are put in place or removed."""
        return tuple(change for change in self.shared if change.action in (Action.CREATE, Action.REPLACE))

    @property
    def shared_conflicts(self) -> tuple[SharedChange, ...]:
        """The files of no single model that are somebody's work."""
        return tuple(change for change in self.shared if change.action is Action.CONFLICT)

    @property
    def has_conflicts(self) -> bool:
        """Whether writing it would destroy somebody's work."""
        return bool(self.conflicts or self.shared_conflicts)

    @property
    def writes(self) -> bool:
        """Whether there is anything to write or to remove."""
        return bool(self.written or self.pruned or self.shared_written)

    @property
    def is_clean(self) -> bool:
        """True where the disk already looks as it should; orphans count as a difference."""
        return not self.would_change and not self.with_action(Action.ORPHAN)

    @property
    def would_change(self) -> bool:
        """True where applying the plan would write or remove something, or is stopped by a conflict; orphans that stay count as none."""
        return self.writes or self.has_conflicts


def make_plan(
    root: Path,
    entries: Sequence[Entry],
    *,
    shared: Mapping[PurePosixPath, bytes | None] = _NOTHING,
    force: bool = False,
    prune: bool = False,
    spared: Collection[str] = (),
) -> Plan:
    """Compare `entries` with the repository at `root` (which need not exist).

    Args:
        root: the repository's folder.
        entries: the models that should be there.
        shared: scripts with a stamp that lie in the artifacts folder and belong to no single model; None for one that is not wanted.
        force: take over our own files that were edited by hand, and folders that are in the way; a place that is not a folder stays a conflict.
        prune: remove models that we made and that are no longer asked for. One with files of others in it is a conflict, whatever `force` says.
        spared: names of further models that are asked for, whose folders stay as they are.

    Raises RepositoryError where `root` cannot be a repository or cannot be read, and where another render writes it and does not end.
    """
    # A root that is a link: what is staged must lie beside the folder itself, on its filesystem.
    root = root.resolve()
    try:
        with looked_at(root, wait_s=LOCK_WAIT_S):
            return _planned(root, entries, shared, force=force, prune=prune, spared=spared)
    except OSError as error:
        raise RepositoryError([unreadable(error, root)]) from error


def replan(plan: Plan) -> Plan:
    """The same for the disk as it is now, for whoever holds the repository. Raises RepositoryError where it cannot be a repository, OSError."""
    entries = [change.entry for change in plan.changes if change.entry is not None]
    shared = {change.path: change.content for change in plan.shared}
    return _planned(plan.root, entries, shared, force=plan.force, prune=plan.prune, spared=plan.spared)


def _planned(root: Path, entries: Sequence[Entry], shared: Mapping[PurePosixPath, bytes | None], *, force: bool, prune: bool, spared: Collection[str]) -> Plan:
    _check_root(root)
    names = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.is_symlink()) if root.is_dir() else []
    changes = [_compare(root, entry, names, force=force) for entry in entries]
    asked = {*spared, *(entry.name for entry in entries)}
    changes += [change for name in names if name not in asked for change in _orphan(root, name, force=force, prune=prune)]
    scripts = tuple(compare_shared(artifacts_beside(root), path, content, force=force) for path, content in shared.items())
    return Plan(root, tuple(changes), force, prune, frozenset(spared), scripts)


def unreadable(error: OSError, root: Path) -> Diagnostic:
    """The finding for a repository that the operating system does not let us read."""
    return Diagnostic(
        "TG040",
        f"cannot read the model repository: {error.strerror or error}",
        Location(str(error.filename or root)),
        hint="check the path and its permissions",
    )


def _check_root(root: Path) -> None:
    try:
        mode = root.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        raise RepositoryError(
            [Diagnostic("TG041", "the model repository must be a folder, and this is not one", Location(str(root)), hint="choose another place with -o")]
        )
    if (root / CONFIG).exists():
        hint = f"did you mean its parent, {root.parent}?"
        consequence = "Triton would take every folder in it for a model of its own"
        raise RepositoryError(
            [Diagnostic("TG042", "this is a model's folder, not a model repository: it holds a config.pbtxt", Location(str(root)), consequence, hint)]
        )


def _compare(root: Path, entry: Entry, names: Sequence[str], *, force: bool) -> Change:
    """`names`: the folders in `root`, as the disk spells them."""
    folder = root / entry.name
    if not folder.exists() and not folder.is_symlink():
        return Change(entry.name, Action.CREATE, entry)
    if folder.is_symlink() or not folder.is_dir():
        return Change(entry.name, Action.CONFLICT, entry, (f"{folder} is no folder",), forcible=False)
    if entry.name not in names:
        spelt = next((name for name in names if name.casefold() == entry.name.casefold()), "of another name")
        reason = f"this disk does not tell it from the folder '{spelt}'"
        return Change(entry.name, Action.CONFLICT, entry, (reason,), forcible=False)
    stamp = stamp_of(folder)
    listed = listing(folder)
    found = [path for path in listed if not is_temporary(path)]
    artifacts = artifacts_beside(root) / entry.name
    left_out = {path: why for path in found if (why := why_left_out(folder, artifacts, path, entry, stamp))}
    carried = tuple(path for path in found if path not in left_out and is_carried(path, entry, stamp))
    compared = compare_folder(folder, [path for path in found if path not in carried and path not in left_out], entry.files)
    aside = compare_folder(artifacts, [path for path in listing(artifacts) if path in entry.artifacts], entry.artifacts)
    stale = stale_artifacts(artifacts, entry.artifacts, stamp)
    differences = [f"{path}: {why}" for path, why in left_out.items()]
    differences += [*compared.differences, *(f"artifact {text}" for text in aside.differences), *(f"artifact {path}: no longer wanted" for path in stale)]
    differences += [f"{path}: left by a build that was killed" for path in listed if is_temporary(path) and is_old(folder / path)]
    if not differences:
        return Change(entry.name, Action.KEEP, entry, carried=carried)
    foreign = [] if force else foreign_work(folder, [path for path in found if path not in carried], entry, stamp)
    if foreign:
        return Change(entry.name, Action.CONFLICT, entry, tuple(foreign))
    return Change(entry.name, Action.REPLACE, entry, tuple(differences), carried=carried, unchanged=compared.same, stale=stale)


def _orphan(root: Path, name: str, *, force: bool, prune: bool) -> list[Change]:
    """What becomes of a folder that nobody asks for: nothing, unless we made it. Asked to remove it, we remove what we made and nothing else."""
    folder = root / name
    try:
        stamp = stamp_of(folder)
    except PermissionError:
        return []  # such as lost+found: what may not be read was not made by this user
    if stamp is None:
        return []
    stale = stale_artifacts(artifacts_beside(root) / name, {}, stamp)
    if prune:
        others, edited = others_work(folder, stamp)
        if others:
            return [Change(name, Action.CONFLICT, reasons=tuple(others), forcible=False)]
        if edited and not force:
            return [Change(name, Action.CONFLICT, reasons=tuple(edited))]
    return [Change(name, Action.ORPHAN, stale=stale)]
