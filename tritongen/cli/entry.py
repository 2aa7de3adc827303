"""Where the `tritongen` command begins: it listens for signals before anything is imported, so that Ctrl-C never shows a traceback."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SAID = 130
"""With this, `tritongen.cli.main` ends where it has said `interrupted` itself."""

_IMPORTING = "<frozen importlib._bootstrap>"
_LOOK_AGAIN_S = 0.02

_received: list[int] = []
"""Signals that asked for the end. An exception that comes up afterwards is theirs, whatever its type."""


def main() -> None:
    """Run the command line; a signal ends it with `interrupted` on stderr and 128 + its number as the exit code, after all has been put away."""
    for number in _ASKED:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup, or in the background of a script
            signal.signal(number, _interrupt)
    try:
        from tritongen.cli.main import main as run

        run()
        return
    except BaseException as error:
        code = error.code if isinstance(error, SystemExit) else None
        if not _received or code == 0:  # a server that a signal has stopped ends well
            raise
        said = code == _SAID
    _end(said)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    signal.signal(signal.SIGALRM, _raise_between_imports)
    _raise_between_imports(number, frame)


def _raise_between_imports(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not into an import: extension modules (numpy, onnxruntime) make something else of it, and print that themselves."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _end(said: bool) -> NoReturn:
    """Say it, where the command line has not, and go; what is left of this process needs no more patience."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _ASKED:
        signal.signal(number, signal.SIG_DFL)
    if not said:
        sys.stderr.write("interrupted\n")
    sys.exit(128 + _received[0])


if __name__ == "__main__":
    main()
