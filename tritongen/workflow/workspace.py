"""A place for files between two stages: rewritten models wait there until they are put into the repository."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

from tritongen.repository.private import make_private


class Workspace:
    """A folder that is made when it is first asked for, and gone with `close`, with the last reference, or at the end of the process, Ctrl-C included.

    It lies beside the repository, where a render stages its files too: a rewritten model is then on the disk that it is written to, and what a killed render
    left of it is removed by the next one. Where nothing can be written there (a check of somebody else's repository), it lies in the system's folder for
    temporary files.
    """

    def __init__(self, repository: Path) -> None:
        """`repository`: its folder, as `repository_root` has it."""
        self._repository = repository
        self._path: Path | None = None
        self._remove: weakref.finalize[[], Workspace] | None = None

    def folder(self, *names: str) -> Path:
        """A new folder of that name in it. Raises OSError where it cannot be made."""
        if self._path is None:
            private = make_private(self._place(), self._repository)
            self._remove = weakref.finalize(self, private.remove)
            self._path = private.path
        folder = self._path.joinpath(*names)
        folder.mkdir(parents=True)
        return folder

    def holds(self, path: str) -> bool:
        """Whether a path lies in it."""
        return self._path is not None and Path(path).is_relative_to(self._path)

    def close(self) -> None:
        """Remove it with everything in it."""
        if self._remove is not None:
            self._remove()
        self._path = None

    def _place(self) -> Path:
        place = next(folder for folder in self._repository.parents if folder.is_dir())
        return place if os.access(place, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
