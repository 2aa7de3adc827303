"""Where tritongen keeps what it can make again: nothing is lost with it, and nothing depends on it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/tritongen`, by default `~/.cache/tritongen`; it need not exist.

    A user without a home folder (a container started with a number as its user) has it among the temporary files.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "tritongen"
    try:
        return Path.home() / ".cache" / "tritongen"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"tritongen-cache-{os.getuid()}"
