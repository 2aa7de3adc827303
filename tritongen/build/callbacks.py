"""What a builder calls back: the log, of which the errors are kept, and the progress of a build, which can be stopped.

The classes derive from those of the library at hand, and are made for it. TensorRT calls them from threads of its own: they only append and ask.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from tritongen.build.libraries import Library

if TYPE_CHECKING:
    import tensorrt


class Progress(Protocol):
    """Who is told how a build gets on. Phases have names, lie in each other, and take a known number of steps. Called from other threads."""

    def start(self, phase: str, parent: str, steps: int) -> None:
        """A phase begins; `parent` is the one that it lies in, empty for the outermost."""

    def step(self, phase: str, done: int) -> None:
        """`done` steps of a phase are done."""

    def finish(self, phase: str) -> None:
        """A phase ends. Not called for those in which a build is stopped or fails."""


class Silent:
    """A `Progress` that nobody sees."""

    def start(self, phase: str, parent: str, steps: int) -> None:
        """Nothing."""

    def step(self, phase: str, done: int) -> None:
        """Nothing."""

    def finish(self, phase: str) -> None:
        """Nothing."""


def make_log(library: Library, errors: list[str]) -> tensorrt.ILogger:
    """A logger that appends what the library calls an error to `errors`, and drops the rest."""
    if TYPE_CHECKING:
        import tensorrt as module
    else:
        module = library.module

    class Log(module.ILogger):  # type: ignore[misc]  # its type is known where the stubs are
        def __init__(self) -> None:
            # Not super(): the library's own documentation asks for the call of the base class.
            module.ILogger.__init__(self)
            self.serious = (module.ILogger.Severity.ERROR, module.ILogger.Severity.INTERNAL_ERROR)

        def log(self, severity: tensorrt.ILogger.Severity, msg: str) -> None:
            if severity in self.serious:
                errors.append(" ".join(msg.split()))

    return Log()


def make_monitor(library: Library, progress: Progress, stop: threading.Event) -> tensorrt.IProgressMonitor:
    """A monitor that tells `progress`, and ends the build once `stop` is set."""
    if TYPE_CHECKING:
        import tensorrt as module
    else:
        module = library.module

    class Monitor(module.IProgressMonitor):  # type: ignore[misc]  # likewise
        def __init__(self) -> None:
            module.IProgressMonitor.__init__(self)

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            progress.start(phase_name, parent_phase or "", num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            progress.step(phase_name, step + 1)
            return not stop.is_set()

        def phase_finish(self, phase_name: str) -> None:
            progress.finish(phase_name)

    return Monitor()
