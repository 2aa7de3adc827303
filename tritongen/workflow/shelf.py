"""What an earlier render left of a model: which version folders it wrote, with which files, and how these were made."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.errors import RepositoryError
from tritongen.recipe import RECIPES
from tritongen.render import ModelFiles
from tritongen.render.entry import SOURCE_NAME
from tritongen.render.versions import served_versions
from tritongen.repository import (
    LOCK_WAIT_S,
    CopiedFile,
    Made,
    artifacts_beside,
    config_sha256,
    file_sha256,
    looked_at,
    stamp_of,
    unreadable,
    version_folders,
)
from tritongen.repository.stamp import version_of
from tritongen.spec import ModelSpec

_MODEL = PurePosixPath(SOURCE_NAME)
_NUMBER = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class Stored:
    """One version's model file with its external data: the folder that holds them, and their SHA-256 (hex) by path in it, as they were written."""

    folder: Path
    hashes: Mapping[PurePosixPath, str]

    @property
    def is_intact(self) -> bool:
        """Whether the files are there, and as they were written. Raises RepositoryError where one cannot be read."""
        with _reading(self.folder):
            return _MODEL in self.hashes and all(_is_there(self.folder / name, sha) for name, sha in self.hashes.items())

    def files(self, number: int) -> dict[PurePosixPath, CopiedFile]:
        """The files as those of version `number`, by path in the model's folder."""
        return {PurePosixPath(str(number), name): CopiedFile(self.folder / name, sha) for name, sha in self.hashes.items()}


@dataclass(frozen=True)
class Shelf:
    """All versions of one model, by number, how those that were rewritten came about, and the SHA-256 (hex) of the config that says so ("": there is none).

    `foreign`: version folders that no render made, ascending; empty ones do not stay. `beyond`: folders whose names are higher numbers than Triton can read.
    """

    stored: Mapping[int, Stored]
    made: Mapping[int, Made]
    basis: str = ""
    foreign: tuple[int, ...] = ()
    beyond: tuple[str, ...] = ()

    def find(self, made: Made) -> Path | None:
        """A model file that was made the same way from the same source, and is as it was written; None where there is none."""
        alike = (self.stored[version] for version, how in self.made.items() if how == made and version in self.stored)
        return next((stored.folder / _MODEL for stored in alike if stored.is_intact), None)


def read_shelves(root: Path, names: Sequence[str]) -> list[Shelf | RepositoryError]:
    """What the stamps of models in the repository at `root` say, in the order of their names, or why one cannot be read; empty where there is none.

    No other render writes meanwhile: half of it from before a swap and half from after it would give one number to two versions. Raises RepositoryError where
    another one writes and does not end.
    """
    with _reading(root), looked_at(root, wait_s=LOCK_WAIT_S):
        return [_shelf_or_why_not(root, name) for name in names]


def _shelf_or_why_not(root: Path, name: str) -> Shelf | RepositoryError:
    try:
        return _shelf(root, name)
    except RepositoryError as error:
        return error


def _shelf(root: Path, name: str) -> Shelf:
    with _reading(root):
        stamp, basis = stamp_of(root / name), config_sha256(root / name)
        there = [number for number, has_files in version_folders(root / name).items() if has_files]
        beyond = tuple(
            sorted(path.name for path in (root / name).glob("[1-9]*") if _NUMBER.fullmatch(path.name) and path.is_dir() and not version_of(path.name))
        )
    if stamp is None:
        return Shelf({}, {}, basis, tuple(there), beyond)
    artifacts = artifacts_beside(root) / name
    stored = {number: Stored(root / name / str(number), _below(number, stamp.files)) for number in _numbers(stamp.files)}
    for number in _numbers(stamp.kept):
        # A plan's source lies beside the repository: for the model as a whole, or for each version.
        sources = {path: sha for path, sha in stamp.artifacts.items() if path != RECIPES}
        stored[number] = Stored(artifacts, sources) if _MODEL in sources else Stored(artifacts / str(number), _below(number, sources))
    return Shelf(stored, stamp.made, basis, tuple(number for number in there if number not in stored), beyond)


@contextlib.contextmanager
def _reading(place: Path) -> Iterator[None]:
    """Says of what the operating system does not let us read in the repository that it does not."""
    try:
        yield
    except OSError as error:
        raise RepositoryError([unreadable(error, place)]) from error


def _is_there(file: Path, written: str) -> bool:
    """Whether a file is there and has that SHA-256 (hex). Raises OSError."""
    try:
        return file.is_file() and file_sha256(file) == written
    except FileNotFoundError:  # another render has just replaced the folder
        return False


def _numbers(paths: Iterable[PurePosixPath]) -> list[int]:
    """The versions whose folders the paths lie in, ascending."""
    return sorted({number for path in paths if (number := version_of(next(iter(path.parts), "")))})


def _below(version: int, hashes: Mapping[PurePosixPath, str]) -> dict[PurePosixPath, str]:
    return {PurePosixPath(*path.parts[1:]): sha for path, sha in hashes.items() if path.parts[:1] == (str(version),)}


def next_version(model: ModelSpec, shelf: Shelf, files: ModelFiles) -> tuple[int, dict[PurePosixPath, CopiedFile]]:
    """The version folder that a model's `source` goes to, and the files of earlier versions that stay.

    With `version: auto`, the newest version that we wrote is kept where its weights are the same, and followed by the next free number where they are not. An
    earlier version stays where `versions` serves it, as long as it is as it was written: one that was deleted by hand is not missed.

    Raises RepositoryError where a file cannot be read.
    """
    if model.version != "auto":
        return model.version, {}
    newest = max(shelf.stored, default=0)
    version = newest if newest and shelf.stored[newest].hashes == dict(files.hashes) else max((newest, *shelf.foreign)) + 1
    # Of a plan only the newest source is kept, so that an older one could not be built again.
    served = [] if model.backend == "tensorrt" else served_versions(model, sorted({*shelf.stored, version}))
    kept = [number for number in served if number != version]
    return version, {path: file for number in kept if shelf.stored[number].is_intact for path, file in shelf.stored[number].files(number).items()}
