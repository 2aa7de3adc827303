"""A model's folder on disk beside what it should hold: what differs, whose each file is, what stays."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.manifest import Manifest, load_manifest, manifest_path
from tritongen.recipe import RECIPES
from tritongen.repository.copying import source_size
from tritongen.repository.digests import file_sha256
from tritongen.repository.entry import CONFIG, Entry, EntryFile, KeptFile, TextFile
from tritongen.repository.stamp import Stamp, content_sha256, read_stamp, version_of
from tritongen.repository.unfinished import is_unfinished
from tritongen.staleness import LoadedBy, stale

MOST_BYTES = 1 << 30
"""No text that we write is longer: a dashboard has some 8 KiB for each model. One of somebody else may be of any size."""

_HEAD_BYTES = 1 << 24
"""Of a longer file only this part is read, where our stamp is not in it."""


@dataclass(frozen=True)
class Compared:
    """A folder beside the files that it should hold: for people, what differs; and which files are as they should be."""

    differences: tuple[str, ...]
    same: tuple[PurePosixPath, ...]


def stamp_of(folder: Path) -> Stamp | None:
    """The stamp of a model's folder; None where tritongen did not write its config. Raises OSError."""
    return stamp_in(folder / CONFIG)


def stamp_in(file: Path) -> Stamp | None:
    """The stamp of a file; None where it has none, or is not there. Raises OSError."""
    content = content_of_text(file) if file.is_file() else None
    return read_stamp(content.decode("utf-8", "replace")) if content is not None else None


def content_of_text(file: Path) -> bytes | None:
    """What a file holds that may be a text of ours; None where it is longer than any of these, or long and its beginning has no stamp. Raises OSError."""
    if file.stat().st_size > MOST_BYTES:
        return None
    with file.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        may_be_ours = len(head) < _HEAD_BYTES or read_stamp(head.decode("utf-8", "replace")) is not None
        return head + stream.read() if may_be_ours else None


def config_sha256(folder: Path) -> str:
    """SHA-256 (hex) of a model's config.pbtxt: what an entry that depends on the folder was made from. "" where there is none that is ours. Raises OSError."""
    config = folder / CONFIG
    content = content_of_text(config) if config.is_file() else None
    return hashlib.sha256(content).hexdigest() if content is not None else ""


def listing(folder: Path) -> list[PurePosixPath]:
    """All files under `folder` by path relative to it, sorted; links count as files.

    Raises OSError for a folder in it that cannot be listed: what nobody can see is not taken for nothing.
    """
    if not folder.is_dir():
        return []
    found: list[PurePosixPath] = []
    for place, folders, files in os.walk(folder, onerror=_unlisted):
        inside = PurePosixPath(Path(place).relative_to(folder).as_posix())
        found += (inside / name for name in (*files, *(name for name in folders if Path(place, name).is_symlink())))
    return sorted(found)


def _unlisted(error: OSError) -> None:
    raise error


def look(folder: Path) -> dict[PurePosixPath, tuple[int, int, int]]:
    """What tells one state of a folder from another: inode, size and time of each file, but for those that are being written. Raises OSError."""
    found = ((path, (folder / path).lstat()) for path in listing(folder) if not is_unfinished(path))
    return {path: (file.st_ino, file.st_size, file.st_mtime_ns) for path, file in found}


def version_folders(folder: Path) -> dict[int, bool]:
    """The version folders of a model by number, ascending, and whether there is a file in each: one without is nobody's, but for a link. Raises OSError."""
    found = {version_of(path.name): path for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else {}
    return {number: path.is_symlink() or bool(listing(path)) for number, path in sorted(found.items()) if number}


def is_carried(path: PurePosixPath, entry: Entry, stamp: Stamp | None) -> bool:
    """Whether a file stays through a replace, if nothing speaks against it: one made on the target, or one that is neither wanted nor ours, nor in the way."""
    wanted = entry.files.get(path)
    if wanted is None and any(path in other.parents or other in path.parents for other in entry.files):
        return False  # a link where a folder must be, or a folder where a file must be
    return isinstance(wanted, KeptFile) or (wanted is None and (stamp is None or path not in (*stamp.files, *stamp.kept)))


def why_left_out(folder: Path, artifacts: Path, path: PurePosixPath, entry: Entry, stamp: Stamp | None) -> str:
    """Why a file that is made on the target is not what is asked for any more; empty for all others. Raises OSError.

    A plan that is stale is not kept beside the new config: Triton would refuse it, or serve another model than the config's without a word.
    """
    wanted = entry.files.get(path)
    if not isinstance(wanted, KeptFile):
        return ""
    manifest = _manifest_of(folder / path, artifacts, wanted)
    if manifest is not None and wanted.recipe is not None and wanted.plan is not None:
        reasons = stale(manifest, wanted.recipe, wanted.plan, LoadedBy(wanted.recipe.release))
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


def compare_folder(folder: Path, found: Sequence[PurePosixPath], wanted: Mapping[PurePosixPath, EntryFile]) -> Compared:
    """Hold the files `found` in a folder against those that it should hold. Raises OSError."""
    missing = [path for path, file in wanted.items() if path not in found and not isinstance(file, KeptFile)]
    extra = [path for path in found if path not in wanted]
    same = tuple(path for path in found if path in wanted and _is_same(folder / path, wanted[path]))
    changed = [path for path in found if path in wanted and path not in same]
    folders = [path for path, file in wanted.items() if isinstance(file, KeptFile) and (folder / path).is_dir()]
    listed = (("missing", missing), ("no longer wanted", extra), ("differs", changed), ("is a folder, and a file belongs there", folders))
    return Compared(tuple(f"{path}: {what}" for what, paths in listed for path in sorted(paths)), same)


def foreign_work(folder: Path, found: Sequence[PurePosixPath], entry: Entry, stamp: Stamp | None) -> list[str]:
    """Everything in `folder` that writing `entry` would destroy and that no earlier render wrote. `found`: the files that do not stay. Raises OSError."""
    if not found:
        return []
    if stamp is None:
        why = "it has no config.pbtxt"
        if CONFIG in found:
            config = folder / CONFIG
            why = "its config.pbtxt is no file" if not config.is_file() and not config.is_symlink() else "its config.pbtxt has no stamp"
        return [f"{folder} was not made by tritongen, or not left as it was: {why}"]
    if stamp.is_of_another(entry.name):
        return [f"{folder} is a copy of the model '{stamp.model}', made by somebody: its {CONFIG} has that name"]
    reasons = _edits_of_config(folder, stamp)
    for path in found:
        if path == CONFIG or path in stamp.kept or (path in entry.files and _is_same(folder / path, entry.files[path])):
            continue
        if path not in stamp.files:
            what = "is a link, which was not made" if (folder / path).is_symlink() else "was not made"
            reasons.append(f"{folder / path} {what} by tritongen, and its place is needed")
        elif is_edited(folder / path, stamp.files[path]):
            reasons.append(f"{folder / path} was changed by hand")
    return reasons


def folders_of_others(folder: Path, wanted: Collection[PurePosixPath], carried: Collection[PurePosixPath], stamp: Stamp | None) -> tuple[PurePosixPath, ...]:
    """The folders in a model's folder that no render made and that stay, outer ones first: with what is `carried` in them, or empty. Raises OSError.

    A version folder that is left without files goes with what is in it: Triton would refuse the model for it. `wanted`: the files that there will be.
    """
    made = {parent for path in wanted for parent in path.parents}
    holding = {parent for path in carried for parent in path.parents} - made
    ours = {parent for path in (*stamp.files, *stamp.kept) for parent in path.parents} if stamp is not None else set()
    staying = []
    for place, folders, _ in os.walk(folder, onerror=_unlisted):
        for path in (PurePosixPath(Path(place, name).relative_to(folder).as_posix()) for name in folders if not Path(place, name).is_symlink()):
            is_in_the_way = any(file == path or file in path.parents for file in wanted)
            top = PurePosixPath(path.parts[0])
            goes = path in ours or is_in_the_way or (version_of(top.name) and top not in made | holding)
            if path in holding or (path not in made and not goes):
                staying.append(path)
    return tuple(sorted(staying))


def others_work(folder: Path, stamp: Stamp) -> tuple[list[str], list[str]]:
    """What removing a folder would destroy: files and empty folders that we did not make, and files of ours that were edited. Raises OSError."""
    found = [path for path in listing(folder) if not is_unfinished(path)]
    ours = (CONFIG, *stamp.files, *stamp.kept)
    empty = [path for path in folders_of_others(folder, ours, (), stamp) if not any(path in other.parents for other in found)]
    others = [f"{folder / path} was not made by tritongen" for path in (*(path for path in found if path not in ours), *empty)]
    edited = _edits_of_config(folder, stamp)
    edited += [f"{folder / path} was changed by hand" for path in found if path in stamp.files and is_edited(folder / path, stamp.files[path])]
    return others, edited


def _edits_of_config(folder: Path, stamp: Stamp) -> list[str]:
    if (folder / CONFIG).is_symlink():
        return [f"{folder / CONFIG} was replaced by a link, to {(folder / CONFIG).readlink()}"]
    return [f"{folder / CONFIG} was edited by hand"] if stamp.edited else []


def is_regular(path: Path) -> bool:
    """Whether a path is a file itself, and no link to one. Raises OSError."""
    return path.is_file() and not path.is_symlink()


def is_edited(path: Path, written: str) -> bool:
    """Whether what is at a path is other than the file that was written there, of that SHA-256 (hex). Raises OSError."""
    return not is_regular(path) or file_sha256(path) != written


def _is_same(path: Path, wanted: EntryFile) -> bool:
    if isinstance(wanted, KeptFile) or not is_regular(path):
        return False
    if isinstance(wanted, TextFile):
        return path.stat().st_size == len(wanted.content) and path.read_bytes() == wanted.content
    return path.stat().st_size == source_size(wanted) and file_sha256(path) == wanted.sha256
