"""What the stub can learn about its server from the process table, since its own interface does not say.

That is the server's command-line settings, and the model's file during auto-complete.
"""

from __future__ import annotations

import os
from pathlib import Path

BACKEND = "onnxruntime"


def server_settings() -> dict[str, str]:
    """The server's `--backend-config` settings for this backend, and the global ones (such as `default-max-batch-size`)."""
    return backend_settings(_command_line(os.getppid()))


def backend_settings(arguments: list[str]) -> dict[str, str]:
    """Settings in a command line of tritonserver: `--backend-config=onnxruntime,key=value`, or without a backend's name for all of them; the backend's own
    come first.
    """
    everywhere: dict[str, str] = {}
    own: dict[str, str] = {}
    joined = [
        f"{argument}={following}" if argument == "--backend-config" else argument for argument, following in zip(arguments, [*arguments[1:], ""], strict=True)
    ]
    for argument in joined:
        option, _, text = argument.partition("=")
        if option != "--backend-config":
            continue
        backend, comma, setting = text.partition(",")
        key, _, value = (setting if comma else text).partition("=")
        if not comma:
            everywhere[key] = value
        elif backend == BACKEND:
            own[key] = value
    return everywhere | own


def model_file() -> Path:
    """The model's file, from this stub's own command line: its first argument."""
    return Path(_command_line(os.getpid())[1])


def _command_line(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="surrogateescape").rstrip("\0").split("\0")
