"""What a render would do to a repository, decided before anything is written.

`make_plan` looks at the disk and never changes it; `--dry-run`, `--check` and the real run share its result.
"""

from __future__ import annotations

import enum
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.manifest import LoadedBy, Manifest, load_manifest, manifest_path, stale
from tritongen.recipe import RECIPES
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
class SharedChange:
    """What a plan does with a file that belongs to no single model.

    Attributes:
        path: where it is, relative to the artifacts folder of the repository.
        action: create, replace or conflict.
        content: what should be there; None where it goes.
        reason: for a conflict, whose work it would destroy.
        forcible: for a conflict, whether `force` would take it over.
    """

    path: PurePosixPath
    action: Action
    content: bytes | None = None
    reason: str = ""
    forcible: bool = True


@dataclass(frozen=True)
class Plan:
    """All changes, in the order of the entries, orphans last. `root` is the repository's folder, `shared` what changes beside the models."""

    root: Path
    changes: tuple[Change, ...]
    shared: tuple[SharedChange, ...] = ()

    @property
    def artifacts_root(self) -> Path:
        """Where files lie that Triton must not see."""
        return self.root.with_name(self.root.name + ".artifacts")

    def with_action(self, *actions: Action) -> tuple[Change, ...]:
        """The changes of these kinds."""
        return tuple(change for change in self.changes if change.action in actions)

    @property
    def has_conflicts(self) -> bool:
        """Whether writing it would destroy somebody's work."""
        return bool(self.with_action(Action.CONFLICT)) or any(change.action is Action.CONFLICT for change in self.shared)

    @property
    def would_change(self) -> bool:
        """Whether there is anything to write, or a conflict that keeps it from being written; orphans are left where they are."""
        return bool(self.shared or self.with_action(Action.CREATE, Action.REPLACE, Action.CONFLICT))

    @property
    def is_clean(self) -> bool:
        """True where the disk already looks as it should; orphans count as a difference."""
        return not self.would_change and not self.with_action(Action.ORPHAN)


_NOTHING: Mapping[PurePosixPath, bytes | None] = MappingProxyType({})


def make_plan(root: Path, entries: Sequence[Entry], *, shared: Mapping[PurePosixPath, bytes | None] = _NOTHING, force: bool = False) -> Plan:
    """Compare `entries` with the repository at `root` (which need not exist).

    `shared` are scripts with a stamp that lie in the artifacts folder and belong to no single model; None for one that is not wanted. With `force`, work that
    a replace would destroy is no conflict; a place that is not a folder stays one. Raises RepositoryError where `root` cannot be a repository or cannot be
    read.
    """
    # A root that is a link: what is staged must lie beside the folder itself, on its filesystem.
    root = root.resolve()
    try:
        _check_root(root)
        changes = [_compare(root, entry, force=force) for entry in entries]
        changes += _orphans(root, {entry.name for entry in entries})
        artifacts = root.with_name(root.name + ".artifacts")
        scripts = [_compare_shared(artifacts / path, path, content, force=force) for path, content in shared.items()]
    except OSError as error:
        raise RepositoryError([unreadable(error, root)]) from error
    return Plan(root, tuple(changes), tuple(change for change in scripts if change is not None))


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
    artifacts = root.with_name(root.name + ".artifacts") / entry.name
    left_out = {path: why for path in found if (why := _why_left_out(folder, artifacts, path, entry, stamp))}
    carried = tuple(path for path in found if path not in left_out and _is_carried(path, entry, stamp))
    differences = [f"{path}: {why}" for path, why in left_out.items()]
    differences += _differences(folder, [path for path in found if path not in carried and path not in left_out], entry.files)
    differences += [f"artifact {text}" for text in _differences(artifacts, [path for path in _listing(artifacts) if path in entry.artifacts], entry.artifacts)]
    if not differences:
        return Change(entry.name, Action.KEEP, entry, carried=carried)
    foreign = [] if force else _foreign_work(folder, [path for path in found if path not in carried], entry, stamp)
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
    """Whether a file stays through a replace, if nothing speaks against it: one made on the target, or one that is neither wanted nor ours."""
    wanted = entry.files.get(path)
    return isinstance(wanted, KeptFile) or (wanted is None and (stamp is None or path not in (*stamp.files, *stamp.kept)))


def _why_left_out(folder: Path, artifacts: Path, path: PurePosixPath, entry: Entry, stamp: Stamp | None) -> str:
    """Why a file that is made on the target is not what is asked for any more; empty for all others.

    A plan that is stale is not kept beside the new config: Triton would refuse it, or serve another model than the config's without a word.
    """
    wanted = entry.files.get(path)
    if not isinstance(wanted, KeptFile):
        return ""
    manifest = _manifest_of(folder / path, artifacts, wanted)
    if manifest is not None and wanted.recipe is not None and wanted.plan is not None:
        reasons = stale(manifest, wanted.recipe, wanted.plan, LoadedBy(wanted.recipe.target))
        return f"is stale, and left out until it is built again: it {'; it '.join(reasons)}" if reasons else ""
    if stamp is not None and _sources(stamp.artifacts) == _sources(
        {name: content_sha256(file) for name, file in entry.artifacts.items() if not isinstance(file, KeptFile)}
    ):
        return ""
    return "nothing says what it was built from, and the model is another one: it is left out until it is built again"


def _manifest_of(file: Path, artifacts: Path, wanted: KeptFile) -> Manifest | None:
    """What a plan was built from; None where no manifest is about this very file."""
    if wanted.recipe is None or wanted.plan is None:
        return None
    try:
        manifest = load_manifest(artifacts / manifest_path(wanted.recipe.version, wanted.plan.name))
    except ValueError:
        return None
    return manifest if manifest is not None and file.is_file() and file_sha256(file) == manifest.sha256 else None


def _sources(artifacts: Mapping[PurePosixPath, str]) -> dict[PurePosixPath, str]:
    """What plans are built from: the model files, without how."""
    return {path: sha for path, sha in artifacts.items() if path != RECIPES}


def _compare_shared(target: Path, path: PurePosixPath, content: bytes | None, *, force: bool) -> SharedChange | None:
    """What happens to one script; None where it stays as it is. One that is not wanted and not ours is left alone."""
    if not target.exists() and not target.is_symlink():
        return SharedChange(path, Action.CREATE, content) if content is not None else None
    if target.is_symlink() or not target.is_file():
        return SharedChange(path, Action.CONFLICT, content, f"{target} is no file", forcible=False) if content is not None else None
    found = target.read_bytes()
    if found == content and target.stat().st_mode & stat.S_IXUSR:
        return None
    stamp = read_stamp(found.decode("utf-8", "replace"))
    if force or (stamp is not None and not stamp.edited):
        return SharedChange(path, Action.REPLACE, content)
    why = "was edited by hand" if stamp is not None else "was not made by tritongen"
    return SharedChange(path, Action.CONFLICT, content, f"{target} {why}") if content is not None else None


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
    """Everything in `folder` that writing `entry` would destroy and that no earlier render wrote. `found`: the files that do not stay."""
    if stamp is None:
        why = "its config.pbtxt has no stamp" if CONFIG in found else "it has no config.pbtxt"
        return [f"{folder} was not made by tritongen, or not left as it was: {why}"]
    reasons = [f"{folder / CONFIG} was edited by hand"] if stamp.edited else []
    for path in found:
        if path == CONFIG or path in stamp.kept or (path in entry.files and _same(folder / path, entry.files[path])):
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
