"""Writing a model's files where no server looks.

Every file is made anew and exclusively: two names that the disk takes for one are an error, not one file with the content of the last.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from tritongen.repository.copying import Progress, copy_content, source_changed
from tritongen.repository.digests import TICK_NS, file_sha256
from tritongen.repository.entry import CopiedFile, EntryFile, TextFile
from tritongen.repository.inheriting import Heritage
from tritongen.repository.plan import Change, Plan
from tritongen.repository.refusals import NamesCollide


def stage(plan: Plan, change: Change, folder: Path, artifacts: Path, *, heritage: Heritage | None, progress: Progress | None) -> None:
    """Write all of a model's files: those of its folder into `folder`, those for beside the repository into `artifacts`; neither exists.

    What is made gets the `heritage`, and is newer than what it replaces, also where the clock is behind: Triton polls for times above those that it has seen.
    What stays is left as it is, since it is being served; `place_model` gives it the heritage as it is swapped in.
    Without one, files are links to their sources where they can be, and nobody's to change.

    Raises OSError where the disk refuses, and RepositoryError where a source is not what the plan was made from.
    """
    assert change.entry is not None
    current = plan.root / change.name
    _make(folder)
    for path, file in change.entry.files.items():
        target = folder / path
        # Also where the file itself is made on the target: the version folder must be there for it.
        target.parent.mkdir(parents=True, exist_ok=True)
        if path in change.unchanged:
            keep(current / path, target)
        elif path in change.linked and isinstance(file, CopiedFile):
            keep(file.source, target)
            if file_sha256(target) != file.sha256:
                raise source_changed(file.source)
        else:
            # Not linked: an exporter that rewrites its file in place would change the live model.
            _write(file, target, link=heritage is None, progress=progress)
    for path in change.folders:
        (folder / path).mkdir(parents=True, exist_ok=True)
    for path in change.carried:
        keep(current / path, folder / path)
    for path, file in change.entry.artifacts.items():
        if path in change.unchanged_artifacts:
            continue
        (artifacts / path).parent.mkdir(parents=True, exist_ok=True)
        _write(file, artifacts / path, link=heritage is None, progress=progress)
    if heritage is not None:
        served = {folder / path for path in (*change.carried, *change.folders, *change.unchanged, *change.linked)}
        made = [each for each in _below(folder) if each not in served]
        for each in (*made, *_below(artifacts)):
            heritage.hand_to(each)
        _date(made, after_ns=max((each.lstat().st_mtime_ns for each in _below(current)), default=0))
        for path in reversed(change.folders):  # what is put into a folder changes its time
            heritage.leave_as(current / path, folder / path)


def _below(folder: Path) -> Iterator[Path]:
    """Everything below a folder, and then the folder itself; nothing where there is none."""
    for place, folders, files in os.walk(folder, topdown=False):
        yield from (Path(place, name) for name in (*files, *(name for name in folders if Path(place, name).is_symlink())))
        yield Path(place)


def _date(made: Iterable[Path], *, after_ns: int) -> None:
    """Give what was made a time after one, where it has none; folders come after what is in them."""
    for path in made:
        if path.lstat().st_mtime_ns <= after_ns:
            os.utime(path, ns=(after_ns + TICK_NS,) * 2, follow_symlinks=False)


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise NamesCollide(error.errno, "this disk takes two names for one", str(folder)) from error


def _write(file: EntryFile, target: Path, *, link: bool, progress: Progress | None) -> None:
    try:
        if isinstance(file, TextFile):
            with target.open("xb") as stream:
                stream.write(file.content)
        elif isinstance(file, CopiedFile):
            _copy(file, target, link=link, progress=progress)
    except FileExistsError as error:
        raise NamesCollide(error.errno, "this disk takes two names for one", str(target)) from error


def _copy(file: CopiedFile, target: Path, *, link: bool, progress: Progress | None) -> None:
    """Copy a source, and see that what was copied is what was hashed: its exporter may be writing it."""
    if link:
        with contextlib.suppress(OSError):
            os.link(file.source.resolve(), target)
            return
    copied = copy_content(file.source, target, progress=progress)
    # A copy by reference read nothing; what it shares is the source as it is now.
    if (copied or file_sha256(file.source)) != file.sha256:
        raise source_changed(file.source)


def keep(source: Path, target: Path) -> None:
    """Give a file that stays a second name, or a second self where that is not allowed (a file of another user, a disk without hard links)."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError as error:
        raise NamesCollide(error.errno, "this disk takes two names for one", str(target)) from error
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
