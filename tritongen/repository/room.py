"""What a plan writes on each filesystem, in bytes and in files, and whether there is room for it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritongen.repository.copying import can_clone, source_size
from tritongen.repository.entry import CopiedFile, EntryFile, KeptFile, TextFile
from tritongen.repository.plan import Change, Plan

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


@dataclass(frozen=True)
class Need:
    """What a plan writes on one filesystem.

    Attributes:
        folder: a folder on it that is there.
        names: the models and scripts that it is for.
        files: what is made anew; a file that is linked needs no room.
    """

    folder: Path
    names: tuple[str, ...]
    files: tuple[EntryFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes of content. Raises RepositoryError where a source is gone, OSError."""
        return sum(_size(file) for file in self.files)

    @property
    def bytes_free(self) -> int:
        """Bytes that this user can still write there. Raises OSError."""
        return bytes_free(self.folder)

    @property
    def entries(self) -> int:
        """How many entries (inodes) it takes: the files, and for each model its folder and one for its version."""
        return len(self.files) + 2 * len(self.names)

    @property
    def lacks_files(self) -> bool:
        """Whether the filesystem has not as many entries (inodes) left; some have no such limit. Raises OSError."""
        status = os.statvfs(self.folder)
        return status.f_files > 0 and self.entries > (status.f_ffree if os.geteuid() == 0 else status.f_favail)

    def lacks_room(self) -> bool:
        """Whether there is no room, in bytes or in files. Files that can be copied by reference need no bytes; it is tried in `folder`. Raises OSError."""
        if self.lacks_files:
            return True
        if self.bytes <= self.bytes_free:
            return False
        devices: dict[int, bool] = {}
        needed = 0
        for file in self.files:
            if isinstance(file, CopiedFile):
                device = file.source.stat().st_dev
                if device not in devices:
                    devices[device] = can_clone(file.source, self.folder)
                if devices[device]:
                    continue
            needed += _size(file)
        return needed > self.bytes_free


def needs(plan: Plan, repository: Path, artifacts: Path) -> list[Need]:
    """What is written to the repository and beside it: one need where both are on one filesystem.

    `repository`, `artifacts`: where these lie, or will; the nearest folders that are there count. Raises OSError.
    """
    scripts = [(str(script.path), TextFile(script.content)) for script in plan.shared_written if script.content is not None]
    models = [(change.name, file) for change in plan.written for file in _model_files(change)]
    aside = [*((change.name, file) for change in plan.written for file in _artifact_files(change)), *scripts]
    here, there = _nearest(repository), _nearest(artifacts)
    parts = [(here, [*models, *aside])] if here.stat().st_dev == there.stat().st_dev else [(here, models), (there, aside)]
    return [Need(folder, tuple(dict.fromkeys(name for name, _ in files)), tuple(file for _, file in files)) for folder, files in parts if files]


def bytes_to_copy(plan: Plan, change: Change | None = None) -> int:
    """How many bytes of files `apply_plan` copies: for all models that it writes, or for one of them. Raises RepositoryError where one is gone."""
    changes = plan.written if change is None else [change]
    files = [file for each in changes for file in (*_model_files(each), *_artifact_files(each))]
    return sum(source_size(file) for file in files if isinstance(file, CopiedFile))


def bytes_free(folder: Path) -> int:
    """How many bytes this user can still write on the filesystem of a folder. Raises OSError."""
    status = os.statvfs(folder)
    return status.f_frsize * (status.f_bfree if os.geteuid() == 0 else status.f_bavail)


def size_text(count: int) -> str:
    """A number of bytes for people, such as `2.0 GiB`."""
    value, unit = float(count), 0
    while value >= _STEP and unit + 1 < len(_UNITS):
        value, unit = value / _STEP, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def _model_files(change: Change) -> Iterator[EntryFile]:
    """What is written anew into the model's folder: what is there already is linked."""
    if change.entry is not None:
        there = {*change.unchanged, *change.linked}
        yield from _made(file for path, file in change.entry.files.items() if path not in there)


def _artifact_files(change: Change) -> Iterator[EntryFile]:
    if change.entry is not None:
        yield from _made(file for path, file in change.entry.artifacts.items() if path not in change.unchanged_artifacts)


def _made(files: Iterable[EntryFile]) -> Iterator[EntryFile]:
    return (file for file in files if not isinstance(file, KeptFile))


def _size(file: EntryFile) -> int:
    if isinstance(file, CopiedFile):
        return source_size(file)
    return len(file.content) if isinstance(file, TextFile) else 0


def _nearest(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.is_dir())
