"""What serving needs of this machine, checked one by one. Data only; the command line prints it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tritongen.errors import EnvironmentProblem
from tritongen.server import gpu, ports, runtime
from tritongen.server.environment import (
    EMBEDDED_RELEASE,
    OLDEST_GLIBC,
    SETUP_COMMAND,
    glibc,
    private_environment,
    private_is_complete,
    private_python,
    shortcomings,
)
from tritongen.server.interpreter import Interpreter, clean_environment, probe

SMALLEST_SHM = 64 * 2**20
"""Bytes of /dev/shm below which a model or two with larger tensors fail; it is Docker's default size."""

_PROVIDERS = "import json, onnxruntime; print(json.dumps([onnxruntime.__version__, onnxruntime.get_available_providers()]))"
_PROVIDERS_TIMEOUT_S = 60


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what was looked at.
        ok: whether it is as it should be.
        found: what is there.
        consequence: what follows where it is not ok.
        fix: what to do then.
        required: whether serving is impossible without it; others are for information.
    """

    name: str
    ok: bool
    found: str
    consequence: str = ""
    fix: str = ""
    required: bool = True


def diagnose() -> list[Check]:
    """Every check, in the order in which problems are best solved. Takes about half a second."""
    interpreter, serving = _interpreters()
    checks = [_platform(), _glibc(), *_python(interpreter, spare=serving is not None and serving != interpreter), _private(interpreter, serving)]
    if serving is not None:
        checks.append(_onnxruntime(serving))
    return [*checks, _shared_memory(), _private_folder(), *_ports(), _gpu(), _leftovers()]


def can_serve(checks: list[Check]) -> bool:
    """Whether nothing that is required is missing."""
    return all(check.ok for check in checks if check.required)


def _interpreters() -> tuple[Interpreter | None, Interpreter | None]:
    """The current interpreter, and the one that would serve (the current one, the private environment's, or none)."""
    current = private = None
    try:
        current = probe(Path(sys.executable)) if sys.executable else None
        private = probe(private_python()) if private_is_complete() else None
    except EnvironmentProblem:
        private = None
    usable = (candidate for candidate in (current, private) if candidate is not None and not shortcomings(candidate))
    return current, next(usable, None)


def _platform() -> Check:
    found = f"{platform.system()} {platform.machine()}"
    ok = platform.system() == "Linux" and platform.machine() == "x86_64"
    return Check("operating system", ok, found, "NVIDIA's wheel holds Linux x86-64 binaries only", "serve with NVIDIA's container, or on another machine")


def _glibc() -> Check:
    found = ".".join(map(str, glibc()))
    needed = ".".join(map(str, OLDEST_GLIBC))
    ok = glibc() >= OLDEST_GLIBC
    return Check(
        "C library", ok, f"glibc {found}" if found else "not glibc", f"tritonserver needs glibc {needed}", "use a newer distribution, or NVIDIA's container"
    )


def _python(interpreter: Interpreter | None, *, spare: bool) -> list[Check]:
    """The current interpreter, part by part; `spare` says that another one serves, so that nothing here is required."""
    if interpreter is None:
        return [Check("Python", spare, "this Python does not say where its executable is", "it cannot serve", f"run: {SETUP_COMMAND}", required=not spare)]
    lacking = {item.part: item for item in shortcomings(interpreter)}
    libpython = f"libpython{interpreter.minor}.so.1.0"
    parts = {
        "Python": f"{'.'.join(map(str, interpreter.version))} ({interpreter.executable})",
        "nvidia-pytriton": f"{interpreter.wheel} (Triton {EMBEDDED_RELEASE})",
        libpython: str(interpreter.libpython),
        "numpy": str(interpreter.numpy),
        "onnxruntime": str(interpreter.onnxruntime),
    }
    return [
        Check(part, False, lacking[part].found, lacking[part].consequence, lacking[part].fix, required=not spare)
        if part in lacking
        else Check(part, True, found)
        for part, found in parts.items()
    ]


def _private(interpreter: Interpreter | None, serving: Interpreter | None) -> Check:
    name = "private environment"
    folder = private_environment()
    if private_is_complete():
        damaged = serving is None
        found = f"{folder}{' (damaged)' if damaged else ''}"
        return Check(name, not damaged, found, "it cannot serve", f"make it again: {SETUP_COMMAND}", required=False)
    needed = serving is None and interpreter is not None
    return Check(
        name, not needed, "none" if needed else "none, and none needed", "this Python cannot serve by itself", f"make one: {SETUP_COMMAND}", required=False
    )


def _onnxruntime(serving: Interpreter) -> Check:
    """Import onnxruntime where it will run, in a process of its own."""
    name = "onnxruntime's providers"
    fix = f"reinstall it, or make a private environment: {SETUP_COMMAND}"
    try:
        done = subprocess.run(
            [str(serving.executable), "-c", _PROVIDERS],
            env=clean_environment() | {"ORT_DISABLE_TELEMETRY": "1"},
            capture_output=True,
            text=True,
            timeout=_PROVIDERS_TIMEOUT_S,
            check=False,
            cwd=tempfile.gettempdir(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, False, str(error), "no ONNX model can be served", fix)
    if done.returncode != 0:
        return Check(name, False, (done.stderr.strip().splitlines() or ["it does not import"])[-1], "no ONNX model can be served", fix)
    version, providers = json.loads(done.stdout)
    return Check(name, True, f"{version}: {', '.join(item.removesuffix('ExecutionProvider') for item in providers)}")


def _shared_memory() -> Check:
    name = str(runtime.SHM)
    consequence = "tensors pass between Triton and its stubs there: requests fail, or the server dies"
    fix = "make it larger (docker run --shm-size=1g; elsewhere: mount -o remount,size=1g /dev/shm)"
    if not os.access(runtime.SHM, os.W_OK):
        return Check(name, False, "missing or not writable", consequence, "mount a tmpfs there")
    usage = shutil.disk_usage(runtime.SHM)
    return Check(name, usage.free >= SMALLEST_SHM, f"{usage.free / 2**20:.0f} of {usage.total / 2**20:.0f} MiB free", consequence, fix)


def _private_folder() -> Check:
    name = "temporary folder"
    try:
        return Check(name, True, str(runtime.base_folder()))
    except EnvironmentProblem as problem:
        return Check(name, False, str(problem), "the server's backends cannot be executed", problem.hint)


def _ports() -> list[Check]:
    fix = "nothing: a free port is chosen; name one with --http-port, --grpc-port, --metrics-port to be sure"
    return [
        Check(f"port {port} ({name})", free, "free" if free else "taken", "Triton's default port is not used", fix, required=False)
        for name, port in ports.DEFAULTS.items()
        for free in (ports.is_free("127.0.0.1", port),)
    ]


def _gpu() -> Check:
    number = gpu.count()
    return Check("GPU", True, f"{number} found" if number else "none: models for a GPU are served on the CPU, with a warning", required=False)


def _leftovers() -> Check:
    left = runtime.leftovers()
    found = f"{len(left)} of crashed servers ({', '.join(map(str, left[:3]))}{', …' if len(left) > 3 else ''})" if left else "none"
    return Check("leftovers", not left, found, "they take up memory and disk space", "nothing: the next start removes them", required=False)
