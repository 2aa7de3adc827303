"""What a render would do to a repository, decided before anything is written.

`make_plan` looks at the disk and never changes it; `--dry-run`, `--check` and the real run share its result.
"""

from __future__ import annotations

import enum
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.entry import Entry, EntryFile, KeptFile, TextFile
from tritongen.repository.stamp import Stamp, content_sha256, file_sha256, read_stamp

CONFIG = PurePosixPath("config.pbtxt")


class Action(enum.Enum):
    """What happens to one model's folder."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    CONFLICT = "conflict"
    ORPHAN = "orphan"


@dataclass(frozen=True)
class Change:
    """What a plan does with one model.

    Attributes:
        name: the model.
        action: create, replace or keep; conflict where that would destroy somebody's work; orphan for a model of ours that is no longer asked for.
        entry: what should be there; None for an orphan.
        reasons: for a replace, which files differ and how; for a conflict, whose work it would destroy.
        forcible: for a conflict, whether `force` would take it over.
        carried: files in the folder that stay as they are: made on the target, or not made by tritongen and in nobody's way.
    """

    name: str
    action: Action
    entry: Entry | None = None
    reasons: tuple[str, ...] = ()
    carried: tuple[PurePosixPath, ...] = ()
    forcible: bool = True


@dataclass(frozen=True)
class Plan:
    """All changes, in the order of the entries, orphans last. `root` is the repository's folder."""

    root: Path
    changes: tuple[Change, ...]

    @property
    def artifacts_root(self) -> Path:
        """Where files lie that Triton must not see."""
        return self.root.with_name(self.root.name + ".artifacts")

    def with_action(self, *actions: Action) -> tuple[Change, ...]:
        """The changes of these kinds."""
        return tuple(change for change in self.changes if change.action in actions)

    @property
    def is_clean(self) -> bool:
        """True where the disk already looks as it should; orphans count as a difference."""
        return not self.with_action(Action.CREATE, Action.REPLACE, Action.CONFLICT, Action.ORPHAN)


def make_plan(root: Path, entries: Sequence[Entry], *, force: bool = False) -> Plan:
    """Compare `entries` with the repository at `root` (which need not exist).

    With `force`, work that a replace would destroy is no conflict; a place that is not a folder stays one. Raises RepositoryError where `root` cannot be a
    repository or cannot be read.
    """
    # A root that is a link: what is staged must lie beside the folder itself, on its filesystem.
    root = root.resolve()
    try:
        _check_root(root)
        changes = [_compare(root, entry, force=force) for entry in entries]
        changes += _orphans(root, {entry.name for entry in entries})
    except OSError as error:
        raise RepositoryError([unreadable(error, root)]) from error
    return Plan(root, tuple(changes))


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


def _compare(root: Path, entry: Entry, *, force: bool) -> Change:
    folder = root / entry.name
    if not folder.exists() and not folder.is_symlink():
        return Change(entry.name, Action.CREATE, entry)
    if folder.is_symlink() or not folder.is_dir():
        return Change(entry.name, Action.CONFLICT, entry, (f"{folder} is no folder",), forcible=False)
    stamp = _stamp_of(folder)
    found = _listing(folder)
    carried = tuple(path for path in found if _is_carried(path, entry, stamp))
    differences = _differences(folder, [path for path in found if path not in carried], entry.files)
    artifacts = root.with_name(root.name + ".artifacts") / entry.name
    differences += [f"artifact {text}" for text in _differences(artifacts, [path for path in _listing(artifacts) if path in entry.artifacts], entry.artifacts)]
    if not differences:
        return Change(entry.name, Action.KEEP, entry, carried=carried)
    foreign = [] if force else _foreign_work(folder, found, entry, stamp)
    if foreign:
        return Change(entry.name, Action.CONFLICT, entry, tuple(foreign))
    return Change(entry.name, Action.REPLACE, entry, tuple(differences), carried)


def _stamp_of(folder: Path) -> Stamp | None:
    config = folder / CONFIG
    return read_stamp(config.read_text(encoding="utf-8", errors="replace")) if config.is_file() else None


def _listing(folder: Path) -> list[PurePosixPath]:
    """All files under `folder` by path relative to it, sorted; links count as files."""
    if not folder.is_dir():
        return []
    return sorted(PurePosixPath(path.relative_to(folder).as_posix()) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def _is_carried(path: PurePosixPath, entry: Entry, stamp: Stamp | None) -> bool:
    """Whether a file stays through a replace: one that is made on the target, or one that is neither wanted nor ours."""
    wanted = entry.files.get(path)
    if isinstance(wanted, KeptFile):
        # What was built from another model is stale: it goes, and is built again.
        return stamp is not None and dict(stamp.artifacts) == {
            path: content_sha256(file) for path, file in entry.artifacts.items() if not isinstance(file, KeptFile)
        }
    return wanted is None and (stamp is None or path not in (*stamp.files, *stamp.kept))


def _differences(folder: Path, found: Sequence[PurePosixPath], wanted: Mapping[PurePosixPath, EntryFile]) -> list[str]:
    missing = [path for path, file in wanted.items() if path not in found and not isinstance(file, KeptFile)]
    extra = [path for path in found if path not in wanted]
    changed = [path for path in found if path in wanted and not _same(folder / path, wanted[path])]
    return [f"{path}: {what}" for what, paths in (("missing", missing), ("no longer wanted", extra), ("differs", changed)) for path in sorted(paths)]


def _same(path: Path, wanted: EntryFile) -> bool:
    if isinstance(wanted, KeptFile):
        return False
    if path.is_symlink() or not path.is_file():
        return False
    if isinstance(wanted, TextFile):
        return path.stat().st_size == len(wanted.content) and path.read_bytes() == wanted.content
    return path.stat().st_size == wanted.source.stat().st_size and file_sha256(path) == wanted.sha256


def _foreign_work(folder: Path, found: Sequence[PurePosixPath], entry: Entry, stamp: Stamp | None) -> list[str]:
    """Everything in `folder` that writing `entry` would destroy and that no earlier render wrote."""
    if stamp is None:
        why = "its config.pbtxt has no stamp" if CONFIG in found else "it has no config.pbtxt"
        return [f"{folder} was not made by tritongen, or not left as it was: {why}"]
    reasons = [f"{folder / CONFIG} was edited by hand"] if stamp.edited else []
    for path in found:
        if path == CONFIG or path in stamp.kept or _is_carried(path, entry, stamp) or (path in entry.files and _same(folder / path, entry.files[path])):
            continue
        if path not in stamp.files:
            reasons.append(f"{folder / path} was not made by tritongen, and its place is needed")
        elif not (folder / path).is_file() or file_sha256(folder / path) != stamp.files[path]:
            reasons.append(f"{folder / path} was changed by hand")
    return reasons


def _orphans(root: Path, wanted: Iterable[str]) -> list[Change]:
    if not root.is_dir():
        return []
    names = set(wanted)
    others = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink() and path.name not in names)
    return [Change(path.name, Action.ORPHAN) for path in others if _stamp_of(path) is not None]
