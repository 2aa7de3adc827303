"""Putting what is staged in place: all of a model or, where the disk refuses one of its steps, nothing of it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.patience import all_or_nothing
from tritongen.recipe import RECIPES
from tritongen.repository.actions import Action
from tritongen.repository.artifacts import folders_of
from tritongen.repository.inheriting import Heritage
from tritongen.repository.plan import Change, Plan
from tritongen.repository.shared import SharedChange
from tritongen.repository.stage import keep
from tritongen.repository.system import exchange, remove_empty, sync_folder


@dataclass(frozen=True)
class Places:
    """Where the files of one render wait.

    Attributes:
        staged: the staging folder that models are swapped from.
        beside: the one for what lies in the artifacts folder; often the same.
        heritage: what all that is made gets of the repository; None for one that lives no longer than its sources stay as they are.
    """

    staged: Path
    beside: Path
    heritage: Heritage | None

    @property
    def durable(self) -> bool:
        """Whether names are forced to the disk."""
        return self.heritage is not None

    def hand_to_kept(self, change: Change, artifacts: Path, undo: contextlib.ExitStack) -> None:
        """Give the heritage to the files that a model keeps, which are waiting under a second name. `artifacts`: where those beside the repository lie."""
        if self.heritage is None:
            return
        for path in (*change.unchanged, *change.linked):
            self.heritage.hand_to_kept(self.model(change.name) / path, undo)
        for path in change.unchanged_artifacts:
            self.heritage.hand_to_kept(artifacts / path, undo)

    def model(self, name: str) -> Path:
        """The model's folder."""
        return self.staged / "new" / name

    def artifacts(self, name: str) -> Path:
        """The model's files for the artifacts folder."""
        return self.beside / "artifacts" / name

    def script(self, path: PurePosixPath) -> Path:
        """A file that belongs to no single model."""
        return self.beside / "shared" / path

    def replaced(self, name: str) -> Path:
        """What the model's artifacts were, until all of the model is in place."""
        return self.beside / "was" / name


def place_model(plan: Plan, change: Change, places: Places) -> bool:
    """Put a model and its artifacts in place. False where it was absent for a moment, since the filesystem cannot exchange two folders. Raises OSError.

    The artifacts go first: what they are is known from the model's stamp, to the next render too where this one is killed in between. So do the permissions of
    what the model keeps: the next render finds the old model, and gives them again.
    """
    with all_or_nothing() as undo:
        _place_artifacts(plan, change, places, undo)
        places.hand_to_kept(change, plan.artifacts_root / change.name, undo)
        in_one_step = _swap(plan, change, places)
    _drop_empty(plan, change)
    return in_one_step


def remove_model(plan: Plan, change: Change, places: Places) -> None:
    """Take a model and its artifacts away. Raises OSError."""
    with all_or_nothing() as undo:
        _drop_artifacts(plan, change, places, undo)
        (plan.root / change.name).rename(places.staged / "gone" / change.name)
    _drop_empty(plan, change)


def place_script(plan: Plan, change: SharedChange, places: Places) -> None:
    """Put a file that belongs to no single model in place, or take it away where it is not wanted. Raises OSError."""
    target = plan.artifacts_root / change.path
    if change.content is None:
        target.unlink()
        remove_empty([target.parent])
        return
    with all_or_nothing() as undo:
        _make_folders(target.parent, places, undo)
        places.script(change.path).replace(target)
    if places.durable:
        sync_folder(target.parent)


def _place_artifacts(plan: Plan, change: Change, places: Places, undo: contextlib.ExitStack) -> None:
    assert change.entry is not None
    folders = set()
    for path in sorted(change.entry.artifacts, key=lambda path: path != RECIPES):  # which tell whose the others are
        target = plan.artifacts_root / change.name / path
        if path in change.unchanged_artifacts:
            continue
        _make_folders(target.parent, places, undo)
        if target.exists() or target.is_symlink():
            old = places.replaced(change.name) / path
            old.parent.mkdir(parents=True, exist_ok=True)
            keep(target, old)
            undo.callback(old.replace, target)
        else:
            undo.callback(target.unlink, missing_ok=True)
        (places.artifacts(change.name) / path).replace(target)
        folders.add(target.parent)
    if places.durable:
        for folder in folders:
            sync_folder(folder)
    _drop_artifacts(plan, change, places, undo)


def _drop_artifacts(plan: Plan, change: Change, places: Places, undo: contextlib.ExitStack) -> None:
    """Move the artifacts of a model out of the way that are no longer wanted."""
    for path in change.stale:
        target, old = plan.artifacts_root / change.name / path, places.replaced(change.name) / path
        old.parent.mkdir(parents=True, exist_ok=True)
        target.rename(old)
        undo.callback(old.rename, target)


def _swap(plan: Plan, change: Change, places: Places) -> bool:
    """Put a staged model where servers look."""
    fresh, target = places.model(change.name), plan.root / change.name
    if change.action is Action.CREATE:
        fresh.rename(target)
    elif not exchange(fresh, target):
        old = places.staged / "old" / change.name
        target.rename(old)
        fresh.rename(target)
        old.rename(places.staged / "gone" / change.name)
        return False
    return True


def _make_folders(folder: Path, places: Places, undo: contextlib.ExitStack) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    undo.callback(remove_empty, missing)
    if places.heritage is not None:
        for each in missing:
            places.heritage.hand_to(each)


def _drop_empty(plan: Plan, change: Change) -> None:
    """Remove the folders that hold nothing since artifacts were removed."""
    if change.stale:
        remove_empty([*folders_of(plan.artifacts_root / change.name, change.stale), plan.artifacts_root])
