"""Folders of one process's own beside a repository, in which files wait until they are put in place.

Such a folder is called `.<repository>.tritongen-<16 hex digits>` and holds a file `owner`, with the repository's path, that its process keeps locked. The lock
goes with the process, also with one that is killed: whoever can take it may remove the folder. Only a folder of that name and of this user, with that file and
without its lock, is taken for a leftover (or one with nothing in it: its process was killed between two steps). For root, those of the users to whom the
repository and the place belong are leftovers too; they are put right with these users' rights (`as_owners`), and so nothing changes that these could not change
themselves. In a place that several repositories of one name share, such as the system's folder for temporary files, the path says whose it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritongen.repository.system import Hold, acting_as, mounts_below, try_lock

_OWNER = "owner"


@dataclass(frozen=True)
class PrivateFolder:
    """A folder that is this process's until it is removed, or the process ends. `descriptor`: its `owner` file, open and locked."""

    path: Path
    descriptor: int

    def remove(self) -> None:
        """Remove it with all that is in it; what the disk does not let go is left to the next render."""
        _remove(self.path, self.descriptor)


def make_private(place: Path, repository: Path) -> PrivateFolder:
    """A new folder in `place` for the repository at that path. Raises OSError where it cannot be made."""
    while True:
        path = place / private_name(repository.name)
        path.mkdir(mode=0o700)
        try:
            descriptor = os.open(path / _OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue  # another render took it for a leftover before it had its file
        if try_lock(descriptor) is not Hold.BUSY and _is_at(path / _OWNER, descriptor):
            os.write(descriptor, os.fsencode(repository))
            return PrivateFolder(path, descriptor)
        _remove(path, descriptor)  # another render took it for a leftover before it was locked


def find_leftovers(place: Path, repository: Path, *, own: bool = True) -> list[Path]:
    """Folders in `place` that a process made for the repository at that path and left; the lock of each is free at this moment. Raises OSError.

    `own`: no other repository of that name has its folders there; else those without the repository's path in them are left alone.
    """
    users = {os.geteuid()} | ({user for _, user in _with_owners([place, repository], follow=True)} if os.geteuid() == 0 and own else set())
    found = [folder for folder, user in _private_folders(place, repository) if user in users]
    return [folder for folder in found if _is_abandoned(folder) and (own or _is_for(folder, repository))]


def strangers(place: Path, repository: Path) -> list[tuple[Path, int]]:
    """Folders in `place` that processes of other users made for a repository of that name, and the numbers of these users. Raises OSError.

    Whether such a process lives, this user cannot see.
    """
    return [(folder, user) for folder, user in _private_folders(place, repository) if user != os.geteuid()]


def as_owners(leftovers: Sequence[Path], work: Callable[[list[Path]], None]) -> None:
    """Do some work for the leftovers of each user, for root with that user's rights: what another may not do himself is left alone. Raises OSError."""
    owners = [*_with_owners(leftovers, follow=False)]
    for user in sorted({user for _, user in owners}):
        try:
            with acting_as(user):
                work([leftover for leftover, owner in owners if owner == user])
        except PermissionError:
            if user == os.geteuid():
                raise


def _with_owners(paths: Iterable[Path], *, follow: bool) -> Iterator[tuple[Path, int]]:
    """Those of some paths that are there, and the numbers of the users to whom they, or what links lead to, belong: other renders remove theirs meanwhile.

    Raises OSError.
    """
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield path, path.stat(follow_symlinks=follow).st_uid


@contextlib.contextmanager
def taken_over(leftover: Path) -> Iterator[bool]:
    """Own a leftover until the block ends, and remove it then. False where its process lives, or it is gone."""
    try:
        descriptor = os.open(leftover / _OWNER, os.O_RDWR)
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            leftover.rmdir()  # empty, or another process's business
        yield False
        return
    owned = False
    try:
        owned = try_lock(descriptor) is Hold.HELD and _is_at(leftover / _OWNER, descriptor)
        yield owned
    except BaseException:
        os.close(descriptor)
        raise
    if owned:
        _remove(leftover, descriptor)
    else:
        os.close(descriptor)


def private_name(repository: str) -> str:
    """A new name for such a folder; all of a repository's are of one length."""
    return _prefix(repository) + secrets.token_hex(8)


def _prefix(repository: str) -> str:
    return f".{repository}.tritongen-"


def _private_folders(place: Path, repository: Path) -> Iterator[tuple[Path, int]]:
    """The folders of such a name in `place`, in order, and the users that they belong to."""
    names = re.compile(re.escape(_prefix(repository.name)) + "[0-9a-f]{16}")
    try:
        with os.scandir(place) as listed:
            entries = sorted((entry for entry in listed if names.fullmatch(entry.name)), key=lambda entry: entry.name)
    except FileNotFoundError:  # another render has just removed it: the last plan's artifacts went with its model
        return
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # its process has just removed it
            if entry.is_dir(follow_symlinks=False):
                yield place / entry.name, entry.stat(follow_symlinks=False).st_uid


def _is_abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError):
            return not any(folder.iterdir())
        return False
    except OSError:
        return False
    try:
        return try_lock(descriptor) is Hold.HELD
    finally:
        os.close(descriptor)


def _is_for(folder: Path, repository: Path) -> bool:
    """Whether an abandoned folder has the repository's path in it, or nothing at all: its process was killed as it made it."""
    try:
        written = (folder / _OWNER).read_bytes()
        return written == os.fsencode(repository) or (not written and [path.name for path in folder.iterdir()] == [_OWNER])
    except FileNotFoundError:
        return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether a path still leads to the file that is open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(folder: Path, descriptor: int) -> None:
    """Remove a folder, its `owner` last: what is left half removed by a kill must still say whose it was.

    The folder goes after `owner` is closed: where a file is open, network filesystems keep it under another name.
    """
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name != _OWNER and not mounts_below(path):  # which are somebody's, with all that is in them
                _remove_tree(path)
        if [path.name for path in folder.iterdir()] == [_OWNER]:
            (folder / _OWNER).unlink()
    os.close(descriptor)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)
        if path.is_dir():
            for _, _, _, descriptor in os.fwalk(path):  # folders of others keep their permissions, which may be that nothing is removed from them
                with contextlib.suppress(OSError):
                    os.fchmod(descriptor, 0o700)
            shutil.rmtree(path, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise
