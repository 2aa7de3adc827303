"""Making the private environment of the server: a virtual environment with a Python that Triton's stub can run, numpy 1.x, onnxruntime and NVIDIA's wheel.

It leaves the user's own environment alone. A virtual environment cannot be moved, so it is made in its final place; a marker file says that it is finished.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tritongen.errors import EnvironmentProblem
from tritongen.server import environment as environments
from tritongen.server import http_probe
from tritongen.server.embedded import start
from tritongen.server.environment import WHEEL_VERSION, completion_marker, private_environment, private_python
from tritongen.server.interpreter import Interpreter, clean_environment, probe
from tritongen.server.options import ServerOptions

MINORS = tuple(reversed(environments.WITH_STUB_AND_NUMPY_1))
"""Python versions that can serve, the newest first."""

_PIP_TIMEOUT_S = 1800
_PROOF = [1.5, -2.0, 3.25]


def setup_environment(*, onnxruntime: str = "onnxruntime", say: Callable[[str], None] = lambda _line: None) -> Path:
    """Make the private server environment; its folder. One that is finished and works is kept.

    Args:
        onnxruntime: what pip is to install as onnxruntime, such as `onnxruntime-gpu` or `onnxruntime==1.20.1`.
        say: called with a line for each step.

    Raises EnvironmentProblem where there is no suitable Python, where pip fails, or where the finished environment does not serve.
    """
    folder = private_environment()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if environments.private_is_complete() and not environments.shortcomings(probe(private_python())):
            say(f"{folder} is there already, and complete")
            return folder
        base = find_python()
        say(f"making {folder} with Python {base.minor} ({base.executable})")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            _run([str(base.executable), "-m", "venv", str(folder)], "the virtual environment cannot be made")
            pip = [str(private_python()), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            say(f"installing nvidia-pytriton {WHEEL_VERSION} (some 100 MB), numpy 1.x and {onnxruntime}")
            _run([*pip, "numpy<2", onnxruntime], f"pip cannot install numpy and {onnxruntime}")
            _run([*pip, "--no-deps", f"nvidia-pytriton=={WHEEL_VERSION}"], "pip cannot install nvidia-pytriton")
            say("starting a server in it, once")
            _prove(probe(private_python()))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        completion_marker(folder).write_text(f"nvidia-pytriton {WHEEL_VERSION}\n", encoding="utf-8")
    return folder


def find_python() -> Interpreter:
    """A Python 3.10 to 3.12 with a shared library: the current one, those on PATH, pyenv's and uv's, the system's.

    Raises EnvironmentProblem that names what was looked at.
    """
    looked_at = []
    for candidate in _candidates():
        try:
            found = probe(candidate)
        except EnvironmentProblem:
            continue
        if found.minor in MINORS and found.libpython is not None:
            return found
        looked_at.append(f"{candidate} ({found.minor}{'' if found.libpython else ', without a shared library'})")
    raise EnvironmentProblem(
        f"no Python 3.10, 3.11 or 3.12 with a shared library was found; looked at: {', '.join(looked_at) or 'nothing'}",
        hint="install one (Debian and Ubuntu: apt install python3-venv libpython3-dev; uv: uv python install 3.12; "
        "pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install 3.12)",
    )


def _candidates() -> Iterator[Path]:
    """Interpreters worth a look, each once, the likeliest first."""
    home = Path.home()
    places = [Path(sys.executable)] if sys.executable else []
    places += [Path(found) for minor in MINORS if (found := shutil.which(f"python{minor}"))]
    for minor in MINORS:
        places += sorted(Path(os.environ.get("PYENV_ROOT", home / ".pyenv")).glob(f"versions/{minor}*/bin/python{minor}"), reverse=True)
        places += sorted(home.glob(f".local/share/uv/python/cpython-{minor}*/bin/python{minor}"), reverse=True)
        places += [Path("/usr/bin") / f"python{minor}", Path("/usr/local/bin") / f"python{minor}"]
    seen: set[Path] = set()
    for place in places:
        if place.exists() and place.resolve() not in seen:
            seen.add(place.resolve())
            yield place


def _run(command: list[str], problem: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=_PIP_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{problem}: {error}") from error
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise EnvironmentProblem(
            f"{problem}: {' '.join(lines[-5:])}", hint="pip needs a package index; on Debian and Ubuntu, venv needs: apt install python3-venv"
        )


def _prove(interpreter: Interpreter) -> None:
    """Serve a model that returns its input, and compare: a numpy that Triton's stub cannot work with answers nonsense without an error."""
    if lacking := environments.shortcomings(interpreter):
        raise EnvironmentProblem(f"the new environment is incomplete: {'; '.join(f'{item.part} is {item.found}' for item in lacking)}")
    with tempfile.TemporaryDirectory(prefix="tritongen-proof-") as scratch:
        repository = Path(scratch) / "repository"
        _write_identity(repository)
        options = ServerOptions(http_port=0, grpc_port=0, metrics_port=0)
        with start(repository, options, environment=environments.of(interpreter)) as server:
            body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": _PROOF}]}
            address = urllib.parse.urlsplit(server.http_url)
            assert address.hostname is not None
            assert address.port is not None
            answer = http_probe.post(address.hostname, address.port, "/v2/models/identity/infer", body)
            answered = answer["outputs"][0]["data"] if isinstance(answer, dict) and "outputs" in answer else answer
    if answered != _PROOF:
        raise EnvironmentProblem(f"the new environment answers wrongly: a model that returns its input made {answered} of {_PROOF}")


def _write_identity(repository: Path) -> None:
    """A repository with one model that returns its input."""
    from onnx import TensorProto, helper, save_model

    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3])] for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", inputs, outputs)
    folder = repository / "identity" / "1"
    folder.mkdir(parents=True)
    save_model(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), str(folder / "model.onnx"))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock, so that two set-ups at once do not write over each other."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
