"""Which Python the embedded server runs on: the current one where it has all that is needed, else a private one.

`tritongen doctor --setup` makes the private environment. `shortcomings` is the one list of what an interpreter must have; `doctor` shows it, `choose` acts on
it.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from tritongen.cache import cache_folder
from tritongen.errors import EnvironmentProblem, MissingExtra
from tritongen.server.interpreter import Interpreter, probe

WHEEL_VERSION = "0.7.0"
"""The nvidia-pytriton release whose layout this package knows: Triton core 2.51.0, NGC release 24.10."""

EMBEDDED_RELEASE = "24.10"
"""NGC release of the embedded Triton."""

OLDEST_GLIBC = (2, 35)
"""What NVIDIA's binaries in the wheel are linked against."""

SETUP_COMMAND = "tritongen doctor --setup"


@dataclass(frozen=True)
class Shortcoming:
    """Something that an interpreter lacks: `part` names it, `found` is what is there, `fix` what to do."""

    part: str
    found: str
    consequence: str
    fix: str


@dataclass(frozen=True)
class Environment:
    """An interpreter that has everything, and where Triton's files are.

    Attributes:
        interpreter: the Python that Triton's stubs run.
        triton: the folder with `bin`, `backends`, `caches` and `python_backend_stubs`.
        libraries: the folder with the shared libraries of the wheel.
    """

    interpreter: Interpreter
    triton: Path
    libraries: Path

    @property
    def server(self) -> Path:
        """The tritonserver executable."""
        return self.triton / "bin" / "tritonserver"

    @property
    def stub(self) -> Path:
        """The process that runs Python models, built for this interpreter's minor version."""
        return self.triton / "python_backend_stubs" / self.interpreter.minor / "triton_python_backend_stub"


def private_environment() -> Path:
    """Where the private server environment is, or would be made."""
    return cache_folder() / "server-env" / f"pytriton-{WHEEL_VERSION}"


def private_python() -> Path:
    """The private environment's interpreter, whether it exists or not."""
    return private_environment() / "bin" / "python3"


def completion_marker(environment: Path) -> Path:
    """The file that says that a private environment was finished and has served a model once."""
    return environment / "tritongen-complete"


def private_is_complete() -> bool:
    """Whether there is a finished private environment that belongs to this user (or to root): what it holds is executed."""
    marker = completion_marker(private_environment())
    return marker.exists() and marker.stat().st_uid in (0, os.getuid())


def platform_problem() -> str:
    """Why NVIDIA's binaries cannot run here whatever is installed; empty where they can."""
    if (found := f"{platform.system()} {platform.machine()}") != "Linux x86_64":
        return f"the embedded Triton is a Linux x86-64 program, and this is {found}"
    if glibc() < OLDEST_GLIBC:
        return f"the embedded Triton needs glibc {'.'.join(map(str, OLDEST_GLIBC))}, and this system has {'.'.join(map(str, glibc())) or 'another C library'}"
    return ""


def glibc() -> tuple[int, ...]:
    """Version of the C library; empty where it is another than glibc (os.confstr does not know the name then)."""
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ()
    return tuple(int(part) for part in found.rpartition(" ")[2].split(".")[:2] if part.isdigit())


def numpy_is_old(version: str | None) -> bool:
    """Whether numpy is of the 1.x series: with a later one, Triton's 24.10 stub answers with empty tensors and says nothing."""
    return version is not None and version.partition(".")[0] in ("0", "1")


WITH_STUB_AND_NUMPY_1 = ("3.10", "3.11", "3.12")
"""Python versions in which the `serve` extra brings everything: the wheel has a stub for them, and numpy 1.x exists for them."""


def _install(interpreter: Interpreter) -> str:
    """The command that brings what the `serve` extra holds; on a Python that the extra brings no Triton to, the one that makes an environment."""
    return "pip install 'tritongen[serve]'" if interpreter.minor in WITH_STUB_AND_NUMPY_1 else f"{SETUP_COMMAND} (Python {interpreter.minor} cannot have it)"


def shortcomings(interpreter: Interpreter) -> list[Shortcoming]:
    """What this interpreter lacks for the embedded server; empty where it has everything."""
    found = []
    if interpreter.pytriton is None or not (interpreter.pytriton / "tritonserver" / "bin" / "tritonserver").exists():
        found.append(Shortcoming("nvidia-pytriton", "not installed", "there is no Triton to start", _install(interpreter)))
    elif interpreter.wheel != WHEEL_VERSION:
        found.append(
            Shortcoming(
                "nvidia-pytriton",
                interpreter.wheel or "of unknown version",
                f"only {WHEEL_VERSION} is known to work",
                f"pip install nvidia-pytriton=={WHEEL_VERSION}" if interpreter.minor in WITH_STUB_AND_NUMPY_1 else SETUP_COMMAND,
            )
        )
    elif not (interpreter.pytriton / "tritonserver" / "python_backend_stubs" / interpreter.minor).is_dir():
        found.append(
            Shortcoming("Python", interpreter.minor, "Triton's wheel has no stub for this Python version", f"use Python 3.10 to 3.12, or run: {SETUP_COMMAND}")
        )
    if interpreter.libpython is None:
        found.append(
            Shortcoming(
                f"libpython{interpreter.minor}.so.1.0",
                "not found",
                "Triton's stub is linked to it and does not start",
                f"install it (Debian and Ubuntu: apt install libpython{interpreter.minor}; pyenv: rebuild with PYTHON_CONFIGURE_OPTS=--enable-shared), "
                f"or run: {SETUP_COMMAND}",
            )
        )
    if not numpy_is_old(interpreter.numpy):
        found.append(
            Shortcoming(
                "numpy",
                interpreter.numpy or "not installed",
                "Triton's stub needs numpy 1.x: with numpy 2 every input reads as zeros and every output is empty, without an error",
                f"pip install 'numpy<2', or keep it and run: {SETUP_COMMAND}" if interpreter.minor in WITH_STUB_AND_NUMPY_1 else SETUP_COMMAND,
            )
        )
    if interpreter.onnxruntime is None:
        found.append(Shortcoming("onnxruntime", "not installed", "no ONNX model can be served", _install(interpreter)))
    return found


def choose() -> Environment:
    """The environment to serve with.

    Raises MissingExtra where installing the extra is all that it takes, EnvironmentProblem (with every shortcoming) otherwise.
    """
    if problem := platform_problem():
        raise EnvironmentProblem(problem, hint="serve with NVIDIA's container, or on another machine")
    if not sys.executable:
        raise EnvironmentProblem("this Python does not say where its own executable is", hint=f"run: {SETUP_COMMAND}")
    current = probe(Path(sys.executable))
    lacking = shortcomings(current)
    if not lacking:
        return of(current)
    if private_is_complete():
        private = probe(private_python())
        if not (private_lacks := shortcomings(private)):
            return of(private)
        raise EnvironmentProblem(
            f"the private server environment {private_environment()} is damaged: {_listed(private_lacks)}", hint=f"make it again: {SETUP_COMMAND}"
        )
    if _extra_would_do(current, lacking):
        also = ", as the extra takes numpy back to 1.x" if current.numpy is not None and not numpy_is_old(current.numpy) else ""
        raise MissingExtra(
            "serve", "the embedded Triton", hint=f"or make a private environment for the server, which leaves this one alone{also}: {SETUP_COMMAND}"
        )
    raise EnvironmentProblem(
        f"the embedded Triton cannot run on {current.executable}: {_listed(lacking)}",
        hint=f"make a private environment for the server, which leaves this one alone: {SETUP_COMMAND}",
    )


def _extra_would_do(interpreter: Interpreter, lacking: list[Shortcoming]) -> bool:
    """Whether the extra is what is missing, and brings all that is lacking: NVIDIA's wheel takes numpy 1.x along."""
    absent = any(item.part in ("nvidia-pytriton", "onnxruntime") and item.found == "not installed" for item in lacking)
    brought = {"onnxruntime", "nvidia-pytriton"} | ({"numpy"} if interpreter.pytriton is None else set())
    return absent and interpreter.minor in WITH_STUB_AND_NUMPY_1 and all(item.part in brought for item in lacking)


def of(interpreter: Interpreter) -> Environment:
    """The environment of an interpreter without shortcomings."""
    assert interpreter.pytriton is not None
    return Environment(interpreter, interpreter.pytriton / "tritonserver", interpreter.pytriton.parent / "nvidia_pytriton.libs")


def _listed(lacking: list[Shortcoming]) -> str:
    return "; ".join(f"{item.part} is {item.found} ({item.consequence})" for item in lacking)
