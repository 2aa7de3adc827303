"""What a render would do to a repository, decided before anything is written; `--dry-run`, `--check` and the real run share it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.repository.actions import Action
from tritongen.repository.entry import Entry
from tritongen.repository.place import artifacts_beside
from tritongen.repository.shared import SharedChange, SharedFiles, no_files


@dataclass(frozen=True)
class Change:
    """What a plan does with one model.

    Attributes:
        name: the model.
        action: create, replace or keep; conflict where that would destroy somebody's work; orphan for a model of ours that is no longer asked for.
        entry: what should be there; None for a model that is no longer asked for.
        reasons: for a replace, which files differ and how; for a conflict, whose work it would destroy; for an orphan, what is left of one that is removed.
        forcible: for a conflict, whether `force` would take it over.
        readable: False for a conflict of which nobody knows what it would destroy, since the operating system does not let us look.
        carried: files in the folder that stay as they are: made on the target, or not made by tritongen and in nobody's way.
        folders: folders in the folder that are somebody's and stay, with what is carried in them or empty; outer ones first.
        unchanged: files in the folder that are as they should be, so that they need not be copied again.
        linked: files whose content is there already, under another name that we gave it (an earlier version's): they get a second name.
        gone: files in the folder that are no longer wanted.
        left_out: plans in the folder that are not what is asked for any more; Triton does not load the model until they are built again.
        unchanged_artifacts: files in the model's artifacts folder that are as they should be.
        stale: files there that we or a builder made and that are no longer wanted.
        seen: for a folder that is replaced or removed, what was in it (`look`).
    """

    name: str
    action: Action
    entry: Entry | None = None
    reasons: tuple[str, ...] = ()
    forcible: bool = True
    readable: bool = True
    carried: tuple[PurePosixPath, ...] = ()
    folders: tuple[PurePosixPath, ...] = ()
    unchanged: tuple[PurePosixPath, ...] = ()
    linked: tuple[PurePosixPath, ...] = ()
    gone: tuple[PurePosixPath, ...] = ()
    left_out: tuple[PurePosixPath, ...] = ()
    unchanged_artifacts: tuple[PurePosixPath, ...] = ()
    stale: tuple[PurePosixPath, ...] = ()
    seen: Mapping[PurePosixPath, tuple[int, int, int]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def going(self) -> Collection[PurePosixPath]:
        """The files of the folder that are not there afterwards as they are now."""
        return self.seen.keys() - {*self.unchanged, *self.carried}


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
        shared_files: what such files should hold, from the recipes of all models that will be there.
        abandoned: files that were not finished when their process was killed, a day ago or more.
    """

    root: Path
    changes: tuple[Change, ...]
    force: bool = False
    prune: bool = False
    spared: frozenset[str] = frozenset()
    shared: tuple[SharedChange, ...] = ()
    shared_files: SharedFiles = field(default=no_files, repr=False, compare=False)
    abandoned: tuple[Path, ...] = ()

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

    def removes(self, file: Path) -> bool:
        """Whether a file, named by a path without links, is in the repository or beside it, and would be another one or none."""
        changes = (*self.written, *self.pruned)
        places = [(self.root, change.name, change.going) for change in changes] + [(self.artifacts_root, change.name, change.stale) for change in changes]
        return any(file == root.resolve() / name / path for root, name, going in places for path in going)

    @property
    def would_change(self) -> bool:
        """True where applying the plan would write or remove something, or is stopped by a conflict; orphans that stay count as none."""
        return self.writes or self.has_conflicts or bool(self.abandoned)


def unreadable(error: OSError, root: Path, what: str = "the model repository") -> Diagnostic:
    """The finding for a place that the operating system does not let us read."""
    return Diagnostic(
        "TG040",
        f"cannot read {what}: {error.strerror or error}",
        Location(str(error.filename or root)),
        hint="check the path and its permissions",
    )
