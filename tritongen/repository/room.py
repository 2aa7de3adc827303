"""How many bytes a plan copies, and whether the disk has room for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tritongen.repository.copying import can_clone, source_size
from tritongen.repository.entry import CopiedFile, TextFile
from tritongen.repository.plan import Change, Plan

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


def copied_files(plan: Plan, changes: Iterable[Change]) -> Iterator[CopiedFile]:
    """The files whose content has to be copied into the repository: those that are there already, or lie in it, are linked. Artifacts are always copied."""
    for change in changes:
        assert change.entry is not None
        for path, file in change.entry.files.items():
            if isinstance(file, CopiedFile) and path not in change.unchanged and not file.source.is_relative_to(plan.root):
                yield file
        yield from (file for file in change.entry.artifacts.values() if isinstance(file, CopiedFile))


def bytes_to_copy(plan: Plan, change: Change | None = None) -> int:
    """How many bytes of files `apply_plan` copies: for all models that it writes, or for one of them. Raises RepositoryError where one is gone."""
    return sum(source_size(file) for file in copied_files(plan, plan.written if change is None else [change]))


def bytes_needed(plan: Plan) -> int:
    """How many bytes of content a plan writes, with texts, warmup data and scripts. Raises OSError."""
    texts = 0
    for change in plan.written:
        assert change.entry is not None
        texts += sum(len(file.content) for path, file in change.entry.files.items() if isinstance(file, TextFile) and path not in change.unchanged)
        texts += sum(len(file.content) for file in change.entry.artifacts.values() if isinstance(file, TextFile))
    return bytes_to_copy(plan) + texts + sum(len(script.content or b"") for script in plan.shared_written)


def bytes_free(folder: Path) -> int:
    """How many bytes this user can still write on the filesystem of a folder. Raises OSError."""
    status = os.statvfs(folder)
    return status.f_frsize * (status.f_bfree if os.geteuid() == 0 else status.f_bavail)


def lacks_room(plan: Plan, folder: Path) -> bool:
    """Whether the filesystem of `folder` has no room for the plan. Files that it can copy by reference need none. Raises OSError."""
    if bytes_needed(plan) <= bytes_free(folder):
        return False
    devices: dict[int, bool] = {}
    needed = 0
    for file in copied_files(plan, plan.written):
        status = file.source.stat()
        if status.st_dev not in devices:
            devices[status.st_dev] = can_clone(file.source, folder)
        needed += 0 if devices[status.st_dev] else status.st_size
    return needed > bytes_free(folder)


def size_text(count: int) -> str:
    """A number of bytes for people, such as `2.0 GiB`."""
    value, unit = float(count), 0
    while value >= _STEP and unit + 1 < len(_UNITS):
        value, unit = value / _STEP, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
