"""The private folder of one server: copies of the backends, an empty working directory, the log.

The folder's name says whose it is (`tritongen-<pid>-<start time>-<pid namespace>-…`), and the server's /dev/shm regions carry the same name, so that what a
crash leaves behind is recognised and removed by the next start, while nothing of a running server is ever touched.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tritongen.cache import cache_folder
from tritongen.errors import EnvironmentProblem
from tritongen.server.environment import Environment

PREFIX = "tritongen-"

SHM = Path("/dev/shm")  # noqa: S108 - where shm_open keeps its regions; not a temporary file of ours

_NAME = re.compile(r"tritongen-(?P<pid>\d+)-(?P<start>\d+)-(?P<namespace>\d+)-\w+")

_SHIM = '''"""What Triton's stub imports as `model`."""

from tritongen_backend.server.backends.onnxruntime.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
'''

_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for where nobody says (`env -i`, some service managers): Triton runs its stubs through `bash`."""

_MADE = "made"
"""`supervisor.MADE`: a script of its own, with which this name is shared."""

_EXTRACTED = re.compile(r"/tmp/python_env_[A-Za-z0-9]{6}")  # noqa: S108 - the Python backend's own choice, whatever TMPDIR says

_COPIED = ("server/backends/onnxruntime", "rules/ortload")
"""What runs in the stub: the backend, and the rules that it shares with `tritongen check`."""


@dataclass(frozen=True)
class Runtime:
    """Paths of one server's private folder."""

    folder: Path

    @property
    def backends(self) -> Path:
        """What `--backend-directory` points at."""
        return self.folder / "backends"

    @property
    def cwd(self) -> Path:
        """The server's working directory. It is first on the stubs' `sys.path`, and stays empty for that reason."""
        return self.folder / "cwd"

    @property
    def modules(self) -> Path:
        """What `PYTHONPATH` points at: the backend's folder, so that `model` is ours whatever site-packages holds."""
        return self.backends / "onnxruntime"

    @property
    def log(self) -> Path:
        """All output of tritonserver and its stubs."""
        return self.folder / "server.log"

    @property
    def repository(self) -> Path:
        """Where an adapted copy of the model repository goes."""
        return self.folder / "repository"

    @property
    def shm_prefix(self) -> str:
        """Start of the names of this server's shared-memory regions."""
        return f"{self.folder.name}-"

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def create(environment: Environment) -> Runtime:
    """Make the private folder (mode 0700) and fill it; leftovers of crashed servers are removed first.

    Raises EnvironmentProblem where no folder on this machine allows both writing and executing.
    """
    base = base_folder()
    sweep()
    try:
        runtime = Runtime(owned_folder(base))
        try:
            _fill(runtime, environment)
        except BaseException:
            runtime.remove()
            raise
    except OSError as error:
        raise EnvironmentProblem(
            f"the server's private folder cannot be made in {base}: {error.strerror}", hint="make room there, or point TMPDIR elsewhere"
        ) from error
    return runtime


def owned_folder(base: Path) -> Path:
    """A new private folder in `base` whose name says that it is this process's, so that `sweep` removes it once the process is gone. Raises OSError."""
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{start_time(os.getpid())}-{_namespace()}-", dir=base))


def _fill(runtime: Runtime, environment: Environment) -> None:
    """Copy what the server needs. Triton's backends are copied: the Python backend refuses a symlink to its stub."""
    python = runtime.backends / "python"
    python.mkdir(parents=True)
    runtime.cwd.mkdir()
    source = environment.triton / "backends" / "python"
    for file in (source / "libtriton_python.so", source / "triton_python_backend_utils.py", environment.stub):
        shutil.copy2(file, python / file.name)
    # Where tritongen is not importable: what the backend imports relatively keeps its place below a root of another name.
    tritongen = Path(__file__).parents[1]
    for part in _COPIED:
        shutil.copytree(tritongen / part, runtime.modules / "tritongen_backend" / part, ignore=shutil.ignore_patterns("__pycache__"))
    (runtime.modules / "model.py").write_text(_SHIM, encoding="utf-8")
    libraries = runtime.folder / "lib"
    libraries.mkdir()
    libpython = environment.interpreter.libpython
    assert libpython is not None
    (libraries / libpython.name).symlink_to(libpython)
    executables = runtime.folder / "bin"
    executables.mkdir()
    (executables / "python3").symlink_to(environment.interpreter.executable)


def variables(runtime: Runtime, environment: Environment, base: dict[str, str]) -> dict[str, str]:
    """Environment variables of the server, made from `base` (see `interpreter.clean_environment`).

    The stub embeds Python and finds its site-packages by looking for `python3` on PATH; in a virtual environment that must be the environment's own, whose
    `pyvenv.cfg` lies beside it. `lib` holds nothing but libpython, so that no other library of that folder can come before the system's.
    """
    interpreter = environment.interpreter
    executables = interpreter.prefix / "bin" if interpreter.is_virtual else runtime.folder / "bin"
    made = dict(base)
    made["PATH"] = os.pathsep.join((str(executables), base.get("PATH") or _USUAL_PATH))
    made["LD_LIBRARY_PATH"] = os.pathsep.join(
        part for part in (str(environment.libraries), str(runtime.folder / "lib"), base.get("LD_LIBRARY_PATH", "")) if part
    )
    made["PYTHONPATH"] = str(runtime.modules)
    made["PYTHONDONTWRITEBYTECODE"] = "1"
    # onnxruntime >= 1.29 reports model names and graph hashes to its maker unless this is set (its Privacy.md)
    made.setdefault("ORT_DISABLE_TELEMETRY", "1")
    if interpreter.is_virtual:
        made["VIRTUAL_ENV"] = str(interpreter.prefix)
    return made


def base_folder() -> Path:
    """A folder to work in. Backends are executed from it, so a filesystem mounted `noexec` will not do."""
    candidates = [Path(tempfile.gettempdir()), cache_folder() / "run"]
    for candidate in candidates:
        with contextlib.suppress(OSError):
            candidate.mkdir(parents=True, exist_ok=True)
            if os.access(candidate, os.W_OK | os.X_OK) and not os.statvfs(candidate).f_flag & os.ST_NOEXEC:
                return candidate
    listed = " and ".join(str(candidate) for candidate in candidates)
    raise EnvironmentProblem(f"neither {listed} can be written to and executed from", hint="point TMPDIR to a folder on a filesystem without noexec")


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where there is no such process (a zombie counts as none)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _namespace() -> int:
    """Number of this process's pid namespace: process ids of another container mean nothing here."""
    return Path("/proc/self/ns/pid").stat().st_ino


def leftovers() -> list[Path]:
    """Folders and shared-memory regions of servers whose owner is gone. Only those of this user and this pid namespace."""
    found = []
    for folder in {Path(tempfile.gettempdir()), cache_folder() / "run", SHM}:
        with contextlib.suppress(OSError):
            found += [path for path in folder.iterdir() if _is_leftover(path)]
    return sorted(found)


def _is_leftover(path: Path) -> bool:
    match = _NAME.match(path.name)
    if match is None or int(match["namespace"]) != _namespace():
        return False
    with contextlib.suppress(OSError):
        return path.lstat().st_uid == os.getuid() and start_time(int(match["pid"])) != int(match["start"])
    return False


def _made_elsewhere(folder: Path) -> list[Path]:
    """What a server made outside its folder, as its supervisor wrote it down, where it is still there and this user's."""
    try:
        lines = (folder / _MADE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    paths = [Path(line) for line in lines if _EXTRACTED.fullmatch(line)]
    return [path for path in paths if path.is_dir() and path.lstat().st_uid == os.getuid()]


def sweep() -> list[Path]:
    """Remove what crashed servers left behind; the removed paths."""
    removed = leftovers()
    removed = [made for path in removed for made in _made_elsewhere(path)] + removed
    for path in removed:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    return [path for path in removed if not path.exists()]
