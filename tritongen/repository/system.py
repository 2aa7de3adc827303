"""What Linux does with files and folders and Python has no words for; each says so where the system or the filesystem cannot."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import fcntl
import os
import pwd
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_FICLONE = 0x40049409
"""Linux's ioctl for copying a file by reference, on filesystems that can (Btrfs, XFS)."""

_ACL = "system.posix_acl_access"
_DEFAULT_ACL = "system.posix_acl_default"

_NO_GROUP = 65534
"""The group of a user of whom nothing is known: nobody's."""

_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL)
"""What `flock` says of a folder on a filesystem without locks; EBADF is NFS, which locks only what is open for writing."""


class Hold(enum.Enum):
    """What came of asking for a lock."""

    HELD = "held"
    BUSY = "busy"
    IMPOSSIBLE = "impossible"


def try_lock(descriptor: int, *, shared: bool = False) -> Hold:
    """Ask for a lock on an open file or folder without waiting, for oneself or `shared` with others who only look.

    It goes with the last descriptor, and so with a process that is killed. Raises OSError.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return Hold.BUSY
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return Hold.IMPOSSIBLE
    return Hold.HELD


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step. False where the filesystem or the kernel cannot. Raises OSError where it refuses."""
    libc = _libc()
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))


def clone(source: int, target: int) -> bool:
    """Let the open file `target` share the blocks of `source`; False where the filesystem or the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def acl_of(path: Path) -> bytes | None:
    """The ACL of a file or folder, as the kernel gives it (acl(5)); None where it has none, or its filesystem knows none. Raises OSError."""
    return _attribute(path, _ACL)


def give_acl(path: Path, acl: bytes) -> None:
    """Give a file an ACL (see `acl_of`), and its permissions with it, where it has another. Raises OSError."""
    if acl_of(path) != acl:
        os.setxattr(path, _ACL, acl)


@dataclass(frozen=True)
class Standing:
    """Who may do what with a file: the number of its group, its permissions as `chmod` takes them, its ACL (see `acl_of`)."""

    group: int
    mode: int
    acl: bytes | None


def standing_of(file: Path) -> Standing:
    """What a file has of that. Raises OSError."""
    status = file.stat()
    return Standing(status.st_gid, stat.S_IMODE(status.st_mode), acl_of(file))


def give_standing(file: Path, standing: Standing) -> None:
    """Give a file what another, or itself earlier, has or had of that. Raises OSError."""
    has = standing_of(file)
    if has.group != standing.group:
        os.chown(file, -1, standing.group)
    if standing.acl is not None:
        give_acl(file, standing.acl)
    elif has.acl is not None:
        os.removexattr(file, _ACL)
    if has != standing:
        file.chmod(standing.mode)


def copy_default_acl(source: Path, target: Path) -> None:
    """Have what is made in the folder `target` get the permissions that the default ACL of `source` gives (acl(5)); none where it has none.

    Raises OSError.
    """
    acl = _attribute(source, _DEFAULT_ACL)
    if acl is not None:
        os.setxattr(target, _DEFAULT_ACL, acl)
    elif _attribute(target, _DEFAULT_ACL) is not None:  # that of the folder in which it was made
        os.removexattr(target, _DEFAULT_ACL)


def copy_standing(source: Path, target: Path) -> None:
    """Give a folder the owner, permissions, ACLs, further attributes and times of another. Raises OSError, with all given but what the system refused."""
    status = source.stat()
    for name in (_ACL, _DEFAULT_ACL):
        if _attribute(target, name) is not None and _attribute(source, name) is None:
            os.removexattr(target, name)
    try:
        if status.st_gid != target.stat().st_gid:
            os.chown(target, -1, status.st_gid)
        if status.st_uid != target.stat().st_uid:
            os.chown(target, status.st_uid, -1)
    finally:
        shutil.copystat(source, target)


def _attribute(path: Path, name: str) -> bytes | None:
    if sys.platform != "linux":
        return None
    try:
        return os.getxattr(path, name)
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.ENOTSUP):
            raise
        return None


def sync_filesystem(folder: Path) -> None:
    """Have everything below `folder` on the disk. Raises OSError where the disk did not take it.

    One `syncfs` instead of an `fsync` a file: 500 models are some 2,500 files and folders.
    """
    libc = _libc()
    if not hasattr(libc, "syncfs"):
        os.sync()
        return
    with _opened(folder) as descriptor:
        if libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(folder))


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, so that what is done afterwards cannot get there before them."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


def same_mount(one: Path, other: Path) -> bool:
    """Whether something can be renamed from one folder into the other: a mount is a border even where the filesystem is the same one (a container's volume)."""
    if one.stat().st_dev != other.stat().st_dev:
        return False
    mounts = {_mount(one), _mount(other)}
    return len(mounts) == 1


def mounts_below(folder: Path) -> list[Path]:
    """The mounts in a folder, ascending; a folder that is one itself counts not. Empty where the system does not tell."""
    place = folder.resolve()
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except FileNotFoundError:
        return []
    # proc(5): the fifth field is where it is mounted; blanks, tabs, newlines and backslashes in it are written in octal.
    points = {Path(os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4]))) for line in lines}
    return sorted(point for point in points if place in point.parents)


def _mount(folder: Path) -> str:
    """The number of the mount that a folder lies on; empty where the system does not tell."""
    with _opened(folder) as descriptor, contextlib.suppress(FileNotFoundError):
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
        return next((line for line in lines if line.startswith("mnt_id:")), "")
    return ""


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of some folders, the inner ones first, that hold nothing."""
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or not there
            folder.rmdir()


def owner_of(path: Path) -> str:
    """The name of the user to whom something belongs, or the number where there is no name. Raises OSError."""
    return user_name(path.lstat().st_uid)


def user_name(number: int) -> str:
    """The name of a user, or the number where there is no name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


@contextlib.contextmanager
def acting_as(owner: int) -> Iterator[None]:
    """Do what the block does with the rights of a user, where this process is root's; nothing changes for any other.

    What a link leads to that this user placed is then changed only where he may change it himself, and no moment is left to place one after a look.
    Raises OSError where the user does not exist in this container.
    """
    if os.geteuid() != 0 or owner == 0:
        yield
        return
    try:
        entry = pwd.getpwuid(owner)
        group, groups = entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)
    except KeyError:
        group, groups = _NO_GROUP, []
    own_group, own_groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(groups)
        os.setegid(group)
        os.seteuid(owner)
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_group)
        os.setgroups(own_groups)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
