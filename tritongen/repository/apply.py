"""Make the disk look like a plan.

A model's folder is staged whole beside the repository (Triton takes every folder *in* it for a model) and put in place with one rename, or, where a folder
is there already, with one `renameat2(RENAME_EXCHANGE)`: a server that polls the repository sees the old model or the new one, never half of one. All of it is
on the disk before its name is, and the old one is deleted after that, so that this holds for a crash of the machine too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritongen.diagnostics import Diagnostic
from tritongen.errors import RepositoryError
from tritongen.repository.comparing import look
from tritongen.repository.copying import Progress
from tritongen.repository.inheriting import Heritage
from tritongen.repository.placing import Places, place_model, place_script, remove_model
from tritongen.repository.plan import Change, Plan
from tritongen.repository.planning import replan
from tritongen.repository.refusals import Done, changed_meanwhile, changed_since, conflict, disk_refuses, no_artifacts, no_room
from tritongen.repository.room import needs
from tritongen.repository.shared import shared_conflict, stage_shared
from tritongen.repository.stage import stage
from tritongen.repository.staging import LOCK_WAIT_S, clear, half_done_by_others, leftovers, locked, no_locks, staging, staging_place
from tritongen.repository.system import owner_of, sync_filesystem, sync_folder


@dataclass(frozen=True)
class Applied:
    """What was done.

    Attributes:
        plan: what the disk needed when it was written; another render may have changed it since the plan was made.
        notes: what a user should know, such as a filesystem that cannot swap folders in one step.
    """

    plan: Plan
    notes: tuple[str, ...] = ()

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the models whose folders were made or replaced."""
        return tuple(change.name for change in self.plan.written)

    @property
    def pruned(self) -> tuple[str, ...]:
        """Names of the models that were removed."""
        return tuple(change.name for change in self.plan.pruned)


@dataclass
class _Work:
    """One run of `apply_plan`: what was done so far."""

    plan: Plan
    done: Done = field(default_factory=Done)
    notes: list[str] = field(default_factory=list)


def apply_plan(plan: Plan, *, link: bool = False, skip_conflicts: bool = False, wait_s: float = LOCK_WAIT_S, progress: Progress | None = None) -> Applied:
    """Write what the plan says, model by model, holding the repository against other renders; remove the orphans where the plan prunes.

    The plan is made anew once the repository is held, so that what another render wrote in between is not undone unseen. What a killed render left is cleared
    away first.

    Args:
        plan: what `make_plan` found.
        link: for a repository that lives no longer than its sources stay as they are: large files are hard-linked where they can be, instead of copied, and
            nothing is forced to the disk.
        skip_conflicts: leave the models that have conflicts as they are, and write the others.
        wait_s: seconds to wait for another render that writes.
        progress: told how many bytes of large files more are in place.

    Raises:
        RepositoryError: with nothing written, where the plan has conflicts, there is no room, a source changed, or another render writes and does not end; and
            where the disk refuses, with the models that were not reached left as they were.
    """
    _refuse_conflicts(plan, skip_conflicts=skip_conflicts)
    work = _Work(plan)
    try:
        if not plan.writes and not plan.abandoned and not leftovers(plan.root):
            return Applied(plan)
        missing = [folder for folder in (plan.artifacts_root, plan.root, *plan.root.parents) if not folder.exists()]
        with locked(plan.root, wait_s=wait_s) as is_held, _taken_away_again(missing):
            if not is_held:
                work.notes.append(no_locks(plan.root))
            clear(plan.root)
            work.plan = replan(plan)
            _refuse_conflicts(work.plan, skip_conflicts=skip_conflicts)
            if stale := changed_meanwhile(work.plan):
                raise RepositoryError(stale)
            _remove_abandoned(work)
            _write(work, link=link, progress=progress)
    except OSError as error:
        raise RepositoryError([disk_refuses(work.plan, error, work.done)]) from error
    return Applied(work.plan, tuple(work.notes))


def _remove_abandoned(work: _Work) -> None:
    """Remove files that killed builds left long ago. One that does not go, such as in a folder that a container's user made, is in nobody's way."""
    for path in work.plan.abandoned:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            work.notes.append(f"{path}: what a killed build left cannot be removed: {error.strerror}")


def _refuse_conflicts(plan: Plan, *, skip_conflicts: bool) -> None:
    if plan.has_conflicts and not skip_conflicts:
        raise RepositoryError(conflicts(plan))


def conflicts(plan: Plan) -> list[Diagnostic]:
    """A finding for everything that holds somebody's work."""
    if not plan.has_conflicts:
        return []
    half_done = half_done_by_others(plan.root, plan.root.parent, plan.root, plan.artifacts_root)
    found = [conflict(plan, change) for change in plan.conflicts] + [shared_conflict(plan.artifacts_root, change) for change in plan.shared_conflicts]
    return [dataclasses.replace(finding, hint=half_done + finding.hint) for finding in found]


@contextlib.contextmanager
def _taken_away_again(folders: Sequence[Path]) -> Iterator[None]:
    """Remove folders that were made for a repository into which nothing could be written, the innermost first; what is not empty stays."""
    try:
        yield
    except BaseException:
        for folder in folders:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _write(work: _Work, *, link: bool, progress: Progress | None) -> None:
    plan = work.plan
    if not plan.writes:
        return
    with _staged(work, link=link, progress=progress) as places:
        for change in plan.written:
            _refuse_changed(work, change)
            if not place_model(plan, change, places):
                work.notes.append(f"{change.name}: this filesystem cannot exchange two folders in one step; the model was absent for a moment")
            work.done.in_place.append(change.name)
        for change in plan.pruned:
            _refuse_changed(work, change)
            remove_model(plan, change, places)
            work.done.removed.append(change.name)
        for script in plan.shared_written:
            # After the models: it holds each one's files against what it was made from, and an old one builds nothing from new files.
            place_script(plan, script, places)
            (work.done.removed if script.content is None else work.done.in_place).append(str(script.path))
        if places.durable:
            sync_folder(plan.root)
    work.notes += [
        f"{folder}: what was replaced could not all be removed; the next render of user {owner_of(folder)}, or of root, tries again"
        for folder in sorted({places.staged, places.beside})
        if folder.exists()
    ]


def _refuse_changed(work: _Work, change: Change) -> None:
    """Stop before a folder that is not as it was when the plan was made: staging large weights takes minutes, and builders and people hold no lock."""
    if look(work.plan.root / change.name) != change.seen:
        raise RepositoryError([changed_since(work.plan, change, work.done)])


@contextlib.contextmanager
def _staged(work: _Work, *, link: bool, progress: Progress | None) -> Iterator[Places]:
    """Everything that the plan writes, on the disk and where no server looks."""
    plan, artifacts = work.plan, work.plan.artifacts_root
    place = staging_place(plan.root)
    if place == plan.root:
        why = "its parent is another filesystem, or cannot be written to"
        work.notes.append(f"{plan.root}: models were staged inside it, since {why}; a server that polls it may say that the staging folder is no model")
    aside = staging_place(artifacts) if artifacts.is_dir() else artifacts.parent
    needs_aside = aside != place and (
        any(change.stale or (change.entry is not None and change.entry.artifacts) for change in (*plan.written, *plan.pruned)) or bool(plan.shared_written)
    )
    if needs_aside and not os.access(aside, os.W_OK | os.X_OK):
        raise RepositoryError([no_artifacts(plan, aside)])
    with contextlib.ExitStack() as stack:
        staged = stack.enter_context(staging(place, plan.root))
        beside = stack.enter_context(staging(aside, plan.root)) if needs_aside else staged
        heritage = None if link else Heritage.of(plan.root, [staged / "new", beside / "artifacts", beside / "shared"])
        places = Places(staged, beside, heritage)
        if not link and (short := [need for need in needs(plan, staged, places.beside) if need.lacks_room()]):
            raise RepositoryError([no_room(plan, need) for need in short])
        for change in plan.written:
            stage(plan, change, places.model(change.name), places.artifacts(change.name), heritage=heritage, progress=progress)
        for script in plan.shared_written:
            if script.content is not None:
                stage_shared(script, places.script(script.path), heritage=heritage)
        if places.durable:
            for folder in {places.staged, places.beside}:
                sync_filesystem(folder)
        yield places
        if heritage is not None and (note := heritage.note(plan.root)):
            work.notes.append(note)
