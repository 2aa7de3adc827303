"""SHA-256 of files. That of a large one is kept in the user's cache folder, so that a render that changes nothing need not read it again.

A digest is taken from there only for the file that it was made of: the same inode of the same device, with the same size and the same times. A program can set
a file's time of modification but not that of its last change (`ctime`), which every write moves. A file that changed less than a moment before its digest was
made is not kept: a further write in the same tick of the clock would not show.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from pathlib import Path

from tritongen.cache import cache_folder

LARGE_BYTES = 64 << 20
"""Files from this size on are remembered; a smaller one is read in some 50 ms."""

_CHUNK = 1 << 20
TICK_NS = 2_000_000_000
"""The coarsest clock of a filesystem (FAT's)."""

_MOST_KEPT = 1000
_DIGEST = re.compile(r"[0-9a-f]{64}")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, as hex, read in pieces or known from before. Raises OSError where it cannot be read."""
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        large = before.st_size >= LARGE_BYTES
        if large and (known := _known(before)):
            return known
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        digest = hashlib.sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        if large and _state(os.fstat(file.fileno())) == _state(before) and before.st_ctime_ns + TICK_NS < time.time_ns():
            _remember(before, digest.hexdigest())
    return digest.hexdigest()


def _state(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _place(status: os.stat_result) -> Path:
    """Where a file's digest is kept. Raises FileNotFoundError where this machine has neither a home folder nor one for temporary files."""
    return cache_folder() / "digests" / f"{status.st_dev:x}-{status.st_ino:x}"


def _known(status: os.stat_result) -> str:
    """The digest that this user kept for a file in this state; empty where there is none."""
    try:
        place = _place(status)
        text = place.read_text(encoding="ascii")
        owner = place.stat().st_uid
    except (OSError, UnicodeDecodeError):
        return ""
    state, _, digest = text.rpartition(" ")
    return digest if state == _state(status) and owner == os.geteuid() and _DIGEST.fullmatch(digest) else ""


def _remember(status: os.stat_result, digest: str) -> None:
    """Keep a digest. Where the cache cannot be written, the file is read again next time: nothing else follows."""
    with contextlib.suppress(OSError):
        target = _place(status)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
        fresh.write_text(f"{_state(status)} {digest}", encoding="ascii")
        fresh.replace(target)
        kept = sorted(target.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-_MOST_KEPT]:
            path.unlink()
