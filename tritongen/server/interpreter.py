"""A Python interpreter as the embedded server sees it: which Triton, numpy and onnxruntime it has, and where its shared library lies.

Facts only, got by running the interpreter; `environment` decides what they mean. Nothing is imported there but the standard library: not numpy, not
onnxruntime, not pytriton.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tritongen.errors import EnvironmentProblem

_PROBE = """
import importlib.metadata as metadata, importlib.util as util, json, sys, sysconfig
def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
def folder(name):
    spec = util.find_spec(name)
    return next(iter(spec.submodule_search_locations or ()), None) if spec else None
libdir, library, multiarch = sysconfig.get_config_vars("LIBDIR", "INSTSONAME", "MULTIARCH")
print(json.dumps({
    "version": list(sys.version_info[:3]), "prefix": sys.prefix, "base_prefix": sys.base_prefix, "executable": sys.executable,
    "libdir": libdir, "library": library, "multiarch": multiarch, "pytriton": folder("pytriton"), "wheel": version("nvidia-pytriton"),
    "numpy": version("numpy"), "ml_dtypes": version("ml_dtypes"), "ort_folder": folder("onnxruntime"),
    "onnxruntime": version("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-training"),
}))
"""

_PROBE_TIMEOUT_S = 60.0

_KEPT_PYTHON_VARIABLES = ("PYTHONUSERBASE", "PYTHONNOUSERSITE")


@dataclass(frozen=True)
class Interpreter:
    """What one Python has to offer to the server.

    Attributes:
        executable: the interpreter; in a virtual environment, the environment's own.
        version: major, minor and patch level.
        prefix: `sys.prefix`; differs from `base_prefix` in a virtual environment.
        libpython: the interpreter's shared library, or None where it was built without one (or its package is not installed).
        pytriton: folder of the installed `pytriton` package, whose `tritonserver` folder holds NVIDIA's binaries.
        wheel: version of nvidia-pytriton.
        numpy: version of numpy.
        onnxruntime: version of onnxruntime, whichever distribution provides it.
        ml_dtypes: version of ml_dtypes.
    """

    executable: Path
    version: tuple[int, int, int]
    prefix: Path
    base_prefix: Path
    libpython: Path | None
    pytriton: Path | None
    wheel: str | None
    numpy: str | None
    onnxruntime: str | None
    ml_dtypes: str | None

    @property
    def minor(self) -> str:
        """Major and minor version, such as `3.11`; Triton has one stub for each."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def is_virtual(self) -> bool:
        """True for a virtual environment."""
        return self.prefix != self.base_prefix


def clean_environment() -> dict[str, str]:
    """This process's environment variables without those that change what a Python imports.

    The server and every probe of an interpreter run with these, so that the probe sees what Triton's stub will see, and so that `PYTHONPATH` cannot slip a
    module under Triton.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name in _KEPT_PYTHON_VARIABLES}
    kept.pop("VIRTUAL_ENV", None)
    kept.pop("__PYVENV_LAUNCHER__", None)
    return kept


def probe(executable: Path) -> Interpreter:
    """Ask an interpreter what it has. Takes some 0.1 s.

    Raises EnvironmentProblem where it cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="tritongen-probe-") as empty:
        try:
            done = subprocess.run(
                [str(executable), "-c", _PROBE],
                cwd=empty,
                env=clean_environment(),
                capture_output=True,
                text=True,
                timeout=_PROBE_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentProblem(f"the Python interpreter {executable} cannot be run: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise EnvironmentProblem(f"the Python interpreter {executable} does not work: {last}")
    found = json.loads(done.stdout)
    major, minor, patch = found["version"]
    return Interpreter(
        executable=executable,
        version=(major, minor, patch),
        prefix=Path(found["prefix"]),
        base_prefix=Path(found["base_prefix"]),
        libpython=_libpython(f"libpython{major}.{minor}.so.1.0", found),
        pytriton=Path(found["pytriton"]) if found["pytriton"] else None,
        wheel=found["wheel"],
        numpy=found["numpy"],
        onnxruntime=found["onnxruntime"] or ("unknown" if found["ort_folder"] else None),
        ml_dtypes=found["ml_dtypes"],
    )


def _libpython(soname: str, found: dict[str, str | None]) -> Path | None:
    """Where the interpreter's shared library is: beside its own libraries first, then where it was built for, then where distributions put it."""
    base = Path(found["base_prefix"] or "/usr")
    folders = [base / "lib", base / "lib64", Path(found["libdir"] or base / "lib")]
    if found["multiarch"]:
        folders += [folder / found["multiarch"] for folder in (*folders, Path("/usr/lib"))]
    folders += [Path("/usr/lib64"), Path("/usr/local/lib")] if str(base) == "/usr" else []
    return next((folder / soname for folder in folders if (folder / soname).exists()), None)
