"""Shared fixtures: a folder with a model and its spec, and the command line as a user runs it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports onnxruntime: its newer releases report what they run to their maker.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# A suite that was started in the background ignores Ctrl-C, and one under nohup a hang-up; so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.path[:0] = [str(Path(__file__).parent / folder) for folder in (".", "server", "contracts/client")]

import networks

from tritongen.cli.main import run

# The same examples in every run, however slow the machine is; `make fuzz` looks for other ones.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")


@dataclass(frozen=True)
class Result:
    """What a user sees of one command."""

    code: int
    out: str
    err: str


@pytest.fixture
def tritongen(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the command line in this process."""

    def call(*arguments: object) -> Result:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory where there is one: many renders in a row need not wait for a disk there."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else tmp_path_factory.mktemp("memory")) as folder:
        yield Path(folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with `mlp.onnx` (`x[N,8] → y[N,4]`) and a spec that serves it as `mlp`."""
    networks.mlp(tmp_path / "mlp.onnx")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


SPEC = """\
version: 1
triton: {release: "25.08"}
models:
  - name: mlp
    source: mlp.onnx
    batching: {max: 8, preferred: [2, 4, 8], max_queue_delay: 500us}
"""
