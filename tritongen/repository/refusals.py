"""What is said where a repository is not written."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.repository.comparing import config_sha256
from tritongen.repository.entry import CONFIG
from tritongen.repository.place import ELSEWHERE
from tritongen.repository.plan import Change, Plan
from tritongen.repository.room import Need, needs, size_text
from tritongen.repository.system import owner_of

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_HELD = (errno.EXDEV, errno.EBUSY)
"""What is said of a folder that cannot be renamed, since it is a mount or part of a container's image."""


@dataclass
class Done:
    """What was done so far: names of models and of files that belong to none, that are in place, and that were taken away."""

    in_place: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """That, for people."""
        parts = [
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {what}"
            for names, what in ((self.in_place, "in place"), (self.removed, "removed"))
            if names
        ]
        return f"{', and '.join(parts)}; everything else is as it was" if parts else "nothing was changed"


class NamesCollide(OSError):
    """Two names of one model, or of two models, are one name to the disk."""


def conflict(plan: Plan, change: Change) -> Diagnostic:
    """The finding for a model whose folder holds somebody's work."""
    verb = "overwritten" if change.entry is not None else "removed"
    if not change.readable:
        message = f"model '{change.name}' would be {verb}, and what that takes away cannot be seen: {'; '.join(change.reasons)}"
        return Diagnostic("TG040", message, Location(str(plan.root / change.name)), hint="check the permissions of what is in the folder", model=change.name)
    hint = "remove it, or move it away: `tritongen render --force` does not replace it"
    if change.entry is None:
        hint = "move the files away, or remove the folder by hand: `tritongen render --prune` removes only what tritongen made"
    if change.forcible:
        hint = "move your change into the spec (`config:` takes any field of config.pbtxt), or overwrite it with `tritongen render --force`"
        if change.entry is None:
            hint = "save what you need, and remove it with `tritongen render --prune --force`"
        elif not (plan.root / change.name / CONFIG).exists():
            hint = "without its config.pbtxt nothing says whose it is: move the folder away, or overwrite what is in the way with `tritongen render --force`"
    return Diagnostic(
        "TG043",
        f"model '{change.name}' would be {verb}: {'; '.join(change.reasons)}",
        Location(str(plan.root / change.name)),
        hint=hint,
        model=change.name,
    )


def lost_plans(plan: Plan) -> list[Diagnostic]:
    """A warning for each model that is served now and has no plan once the plan is applied: it is left out until it is built again."""
    return [
        Diagnostic(
            "TG050",
            f"{', '.join(map(str, change.left_out))} {'is' if len(change.left_out) == 1 else 'are'} not what is asked for any more, and not kept",
            Location(str(plan.root / change.name)),
            consequence="Triton cannot load the model until it is built again; a server that has it loaded goes on with the old one, and must not be restarted",
            hint=f"build it now, with tritongen build or the script in {plan.artifacts_root}",
            model=change.name,
            severity=Severity.WARNING,
        )
        for change in plan.written
        if change.left_out
    ]


def no_room(plan: Plan, short: Need) -> Diagnostic:
    """The finding for a filesystem that cannot hold its part of the plan. Raises OSError."""
    beside = short.folder.is_relative_to(plan.artifacts_root) and plan.artifacts_root != plan.root
    what = "what lies beside the model repository" if beside else "the model repository"
    return _full(plan, short, f"there is not enough room for {what}", Done())


def disk_refuses(plan: Plan, error: OSError, done: Done) -> Diagnostic:
    """The finding for what the operating system said while a plan was applied."""
    if error.errno in _FULL:
        return _full(plan, _short(plan, error), f"cannot write the model repository: {error.strerror}", done)
    hint = _anothers(error) or f"check that the place exists and may be written to, or {ELSEWHERE}"
    if isinstance(error, NamesCollide):
        hint = "give models and files names that differ in more than upper and lower case, or write to a disk that tells them apart"
    elif error.errno == errno.EXDEV and Path(_where(plan, error)).is_relative_to(plan.artifacts_root):
        hint = f"a mount of its own in {plan.artifacts_root} cannot be written in one step: mount that folder as a whole, or {ELSEWHERE}"
    elif error.errno in _HELD:
        hint = (
            "a model's folder that is a mount of its own, or part of a container's image, cannot be swapped: mount the repository's folder as a whole, "
            f"or {ELSEWHERE}"
        )
    elif error.errno == errno.EROFS:
        hint = f"the filesystem is mounted read-only: {ELSEWHERE}"
    return Diagnostic("TG044", f"cannot write the model repository: {error.strerror or error}", Location(_where(plan, error)), done.words, hint)


def _anothers(error: OSError) -> str:
    """The hint for what belongs to another user, whose folders cannot be moved; empty for all else."""
    named = [Path(name) for name in (error.filename, error.filename2) if name] if error.errno in (errno.EACCES, errno.EPERM) else []
    there = [next(each for each in (path, *path.parents) if os.path.lexists(each)) for path in named]  # what cannot be made: it is its folder's owner who may
    found = next((path for path in there if path.lstat().st_uid != os.geteuid()), None)
    if found is None:
        return ""
    return f"{found} belongs to user {owner_of(found)}: render as that user or as root, give it to yours (chown -R), or {ELSEWHERE}"


def no_artifacts(plan: Plan, place: Path) -> Diagnostic:
    """The finding for a repository beside which nothing can be made or written, since that place does not let us."""
    verb = "write to" if place == plan.artifacts_root else "make"
    return Diagnostic(
        "TG044",
        f"cannot {verb} {plan.artifacts_root}, where sources of TensorRT plans lie that Triton must not see: this user may not write to {place}",
        Location(str(plan.root)),
        "nothing was changed",
        f"make that folder for this user, mount the parent of both in place of the repository alone, or {ELSEWHERE}",
    )


def _short(plan: Plan, error: OSError) -> Need | None:
    """What is written on the filesystem that is full; None where nothing is."""
    where = Path(_where(plan, error))
    device = next(folder for folder in (where, *where.parents) if folder.is_dir()).stat().st_dev
    found = needs(plan, plan.root, plan.artifacts_root)
    return next((need for need in found if need.folder.stat().st_dev == device), found[0] if found else None)


def _full(plan: Plan, short: Need | None, message: str, done: Done) -> Diagnostic:
    if short is None:
        return Diagnostic("TG044", message, Location(str(plan.root)), done.words, f"free some room, or {ELSEWHERE}")
    place = Location(str(plan.artifacts_root if short.folder.is_relative_to(plan.artifacts_root) else plan.root))
    names, needed, free = ", ".join(short.names), short.bytes, short.bytes_free
    if short.lacks_files:
        message = f"{message}: {names} need {short.entries} files and folders, and the filesystem has no entries (inodes) left for so many"
        return Diagnostic("TG044", message, place, done.words, f"remove small files there (`df -i` shows how many it can have), or {ELSEWHERE}")
    hint = f"look for a quota, a limit on the size of files (`ulimit -f`) or on their number (`df -i`), or {ELSEWHERE}"
    if needed > free:
        hint = f"free {size_text(needed - free)} or more, or {ELSEWHERE}; a replaced model is deleted only after its successor is in place"
    return Diagnostic("TG044", f"{message}: {names} need {size_text(needed)}, and {size_text(free)} are free", place, done.words, hint)


def _where(plan: Plan, error: OSError) -> str:
    return str(error.filename2 or error.filename or plan.root)


def changed_meanwhile(plan: Plan) -> list[Diagnostic]:
    """Findings for models that were made from earlier versions in a folder that another render has replaced since. Raises OSError."""
    return [
        Diagnostic(
            "TG049",
            "another render wrote the model while this one was preparing it, and its number follows from what is there",
            Location(str(plan.root / change.name)),
            "nothing was changed",
            "run it again",
            model=change.name,
        )
        for change in plan.written
        if change.entry is not None and change.entry.basis is not None and change.entry.basis != config_sha256(plan.root / change.name)
    ]


def changed_since(plan: Plan, change: Change, done: Done) -> Diagnostic:
    """The finding for a model's folder in which somebody wrote between the plan and its execution."""
    return Diagnostic(
        "TG049",
        "somebody wrote into the model's folder, or built its plan, while it was rendered",
        Location(str(plan.root / change.name)),
        done.words,
        "run it again",
        change.name,
    )
