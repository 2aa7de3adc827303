"""Whether the users that containers run as may read what lies on this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def may_read(found: os.stat_result, user: str) -> bool:
    """Whether a container's user, `number` or `number:group`, may read a file; a folder must be one that it may enter, too. Further groups are not known."""
    number, _, group = user.partition(":")
    shift = 6 if found.st_uid == int(number) else 3 if group and found.st_gid == int(group) else 0
    wanted = 0o5 if stat.S_ISDIR(found.st_mode) else 0o4
    return int(number) == 0 or found.st_mode >> shift & wanted == wanted


def first_unreadable(root: Path, user: str) -> Path | None:
    """A folder, or the first below it, that a container's user may not read; None where there is none."""
    return next((path for path in _paths(root) if not may_read(path.stat(), user)), None)


def _paths(root: Path) -> Iterator[Path]:
    """A folder and all below it that this process can see; of links, what they lead to."""
    if root.is_dir():
        yield root
        for folder, folders, files in os.walk(root):
            yield from (path for name in sorted((*folders, *files)) if (path := Path(folder, name)).exists())
