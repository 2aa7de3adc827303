"""Scripts that lie in the artifacts folder of a repository and belong to no single model: they follow from the recipes of all plans that are there."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.recipe import PlanRecipe
from tritongen.repository.actions import Action
from tritongen.repository.comparing import content_of_text
from tritongen.repository.inheriting import Heritage
from tritongen.repository.place import artifacts_beside, is_link_of_another
from tritongen.repository.stamp import read_stamp
from tritongen.repository.system import owner_of

_MODE = 0o755


@dataclass(frozen=True)
class SharedFile:
    """What should be at one place; `content`: None where nothing is wanted. `notes`: what a user should know about it."""

    content: bytes | None
    notes: tuple[str, ...] = ()


SharedFiles = Callable[[Sequence[PlanRecipe]], Mapping[PurePosixPath, SharedFile]]
"""The recipes of all plans of a repository → what lies in its artifacts folder, by path there."""


def no_files(_: Sequence[PlanRecipe]) -> Mapping[PurePosixPath, SharedFile]:
    """None, whatever the recipes are."""
    return {}


@dataclass(frozen=True)
class SharedChange:
    """What a plan does with one such file.

    Attributes:
        path: where it is, relative to the artifacts folder of the repository.
        action: create, replace, keep or conflict.
        content: what should be there; None where it is not wanted.
        reason: for a conflict, whose work it would destroy; else what a user should know about it.
        forcible: for a conflict, whether `force` would take it over.
    """

    path: PurePosixPath
    action: Action
    content: bytes | None = None
    reason: str = ""
    forcible: bool = True


def compare_shared(root: Path, path: PurePosixPath, wanted: SharedFile, *, force: bool) -> SharedChange:
    """What happens to one file beside the repository at `root`, which has a stamp where it is ours. One that is not wanted and not ours is left alone.

    `force` takes over a place that is needed, and no other. Raises OSError.
    """
    artifacts, content, notes = artifacts_beside(root), wanted.content, "; ".join(wanted.notes)
    target = artifacts / path
    if is_link_of_another(artifacts, root):
        return _kept_or(SharedChange(path, Action.CONFLICT, content, f"{artifacts} is a link that user {owner_of(artifacts)} made", forcible=False))
    if not target.exists() and not target.is_symlink():
        return SharedChange(path, Action.KEEP if content is None else Action.CREATE, content, notes)
    if target.is_symlink() or not target.is_file():
        return _kept_or(SharedChange(path, Action.CONFLICT, content, f"{target} is no file", forcible=False))
    found = content_of_text(target)
    if found == content and target.stat().st_mode & stat.S_IXUSR:
        return SharedChange(path, Action.KEEP, content)
    stamp = read_stamp(found.decode("utf-8", "replace")) if found is not None else None
    if (force and content is not None) or (stamp is not None and not stamp.edited):
        return SharedChange(path, Action.REPLACE, content, notes)
    why = "was edited by hand" if stamp is not None else "was not made by tritongen"
    return _kept_or(SharedChange(path, Action.CONFLICT, content, f"{target} {why}"))


def _kept_or(conflict: SharedChange) -> SharedChange:
    """The conflict, where the place is needed at all."""
    return conflict if conflict.content is not None else SharedChange(conflict.path, Action.KEEP)


def shared_conflict(artifacts: Path, change: SharedChange) -> Diagnostic:
    """The finding for a script that is somebody's work."""
    hint = "what it does is in the spec (models.tensorrt.build) and in its environment variables; overwrite it with `tritongen render --force`"
    message = f"{change.path} would be overwritten: {change.reason}"
    return Diagnostic("TG043", message, Location(str(artifacts / change.path)), hint=hint if change.forcible else "remove it, or move it away")


def stage_shared(change: SharedChange, target: Path, *, heritage: Heritage | None) -> None:
    """Write what should be there to a new file, which gets the `heritage`. Raises OSError."""
    assert change.content is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as stream:
        stream.write(change.content)
    target.chmod(_MODE)
    if heritage is not None:
        heritage.hand_to(target, mode=_MODE)
