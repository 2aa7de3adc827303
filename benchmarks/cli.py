"""How long `tritongen --help` and a few renders take.

Prints medians with their spread, in one run: `--help` beside a bare `python -c pass` and an `import onnx`; a first and an unchanged second render of many
small models.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "tritongen --help": [sys.executable, "-c", "from tritongen.cli.main import main; main(['--help'])"],
        "python -c 'import onnx'": [sys.executable, "-c", "import onnx"],
    }
    for name, command in commands.items():
        report(name, [timed(lambda command=command: subprocess.run(command, check=True, capture_output=True)) for _ in range(options.repeats)])
    with tempfile.TemporaryDirectory() as folder:
        spec = make_spec(Path(folder), options.models)
        render = [sys.executable, "-c", "from tritongen.cli.main import main; main()", "render", str(spec)]
        report(f"render {options.models} models, first", [timed(lambda: subprocess.run(render, check=True, capture_output=True))])
        before = stamps(Path(folder))
        report(f"render {options.models} models, unchanged", [timed(lambda: subprocess.run(render, check=True, capture_output=True)) for _ in range(3)])
        print(f"files touched by the unchanged renders: {len(set(before.items()) ^ set(stamps(Path(folder)).items()))}")


def make_spec(folder: Path, count: int) -> Path:
    """`count` models of one matrix each, and their spec."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lines = ["version: 1", "models:"]
    for index in range(count):
        weights = numpy_helper.from_array(rng.standard_normal((8, 4)).astype(np.float32), "w")
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name, size in (("x", 8), ("y", 4))]
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / f"m{index}.onnx")
        lines.append(f"  - {{name: m{index}, source: m{index}.onnx, batching: {{max: 8}}}}")
    (folder / "spec.yaml").write_text("\n".join(lines) + "\n")
    return folder / "spec.yaml"


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """Inode and modification time of everything under a folder."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def timed(action: Callable[[], object]) -> float:
    """Seconds that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def report(name: str, seconds: list[float]) -> None:
    """One line: median and spread in milliseconds."""
    values = [second * 1000 for second in seconds]
    print(f"{name:<40} median {statistics.median(values):8.1f} ms   {min(values):8.1f} to {max(values):8.1f}   n={len(values)}")


if __name__ == "__main__":
    main()
