"""Files that a build of a plan, or a file put in place by `write_whole`, had not finished when its process was killed.

They are nobody's work: they stand in nobody's way, are carried nowhere, and go with the model. Until they are old, their process may live, here or on another
machine that has the folder mounted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path, PurePath

from tritongen.repository.writing import TEMPORARY

_NAMES = re.compile(
    r"\.tritongen-(build|manifest)-[A-Za-z0-9]{6}"  # templates/build_plans.sh.j2
    rf"|{re.escape(TEMPORARY)}[a-z0-9_]{{8}}"
)
OLD_S = 24 * 3600.0
"""No build of one plan takes a day."""


def is_unfinished(path: PurePath) -> bool:
    """Whether a file has the name of one that is being written, or was when its process was killed."""
    return _NAMES.fullmatch(path.name) is not None


def abandoned(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Such files in and below folders that nobody has written to for a day. Raises OSError."""
    deadline = time.time() - OLD_S
    return tuple(sorted(path for folder in folders for path in folder.rglob(".*") if is_unfinished(path) and _is_older(path, deadline)))


def _is_older(path: Path, deadline: float) -> bool:
    try:
        return path.is_file() and not path.is_symlink() and path.stat().st_mtime < deadline
    except FileNotFoundError:
        return False  # its process has just finished it
