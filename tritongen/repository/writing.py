"""One file, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

NEW_MODE = 0o644
TEMPORARY = ".tritongen-write-"
"""How the name of a file begins that is still being written: as no file is called that people put aside."""


def write_whole(target: Path, content: bytes | memoryview, *, mode: int = NEW_MODE) -> None:
    """Put a file in place in one step; its content is on the disk before it has its name. Raises OSError, and then nothing is changed.

    `mode`: its permissions.
    """
    with _temporary(target) as (descriptor, temporary):
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        temporary.replace(target)


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[int, Path]]:
    """A new file beside `target`, which is gone afterwards unless it was renamed."""
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY, dir=target.parent)
    try:
        yield descriptor, Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
