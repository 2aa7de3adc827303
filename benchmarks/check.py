"""How long `tritongen check` takes for a repository of many models, as a user runs it: one process, imports and all.

Prints medians with their spread, in one run: `python -c pass` and the imports of the command beside the check of a single model and of many;
then where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import resource
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

CONFIG = """\
# Served by {name}.
name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [
  {{ name: "x" data_type: TYPE_FP32 dims: [ 8 ] }},
  {{ name: "ids" data_type: TYPE_INT64 dims: [ -1 ] }}
]
output [
  {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }}
]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
dynamic_batching {{ preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 500 }}
optimization {{ graph {{ level: 1 }} }}
parameters {{ key: "intra_op_thread_count" value {{ string_value: "1" }} }}
model_warmup [
  {{
    name: "one"
    batch_size: 1
    inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: [ 8 ] random_data: true }} }}
    inputs {{ key: "ids" value {{ data_type: TYPE_INT64 dims: [ 16 ] zero_data: true }} }}
  }}
]
"""
RUN = [sys.executable, "-c", "from tritongen.cli.main import main; main()", "check"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one, many = make_repository(Path(folder, "one"), 1), make_repository(Path(folder, "many"), options.models)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "check --explain TG216": [*RUN, "--explain", "TG216"],
            "check 1 model": [*RUN, str(one)],
            f"check {options.models} models": [*RUN, str(many)],
            f"check {options.models} models, release and GPUs": [*RUN, str(many), "--release", "25.08", "--gpus", "1"],
        }
        for name, command in commands.items():
            before = cpu_s()
            report(name, [timed(lambda command=command: subprocess.run(command, check=False, capture_output=True)) for _ in range(options.repeats)])
            print(f"{'':<44} CPU    {(cpu_s() - before) / options.repeats * 1000:8.1f} ms a run, which other programs disturb less")
        print(f"cores: {len(os.sched_getaffinity(0))}; one process does all of it\n")
        print(profile(many))


def make_repository(root: Path, count: int) -> Path:
    """`count` models with a config, an ONNX file and a warmup each."""
    rng = np.random.default_rng(0)
    values = [
        helper.make_tensor_value_info(name, kind, ["N", size])
        for name, kind, size in (("x", TensorProto.FLOAT, 8), ("ids", TensorProto.INT64, "L"), ("y", TensorProto.FLOAT, 4))
    ]
    for index in range(count):
        weights = numpy_helper.from_array(rng.standard_normal((8, 4)).astype(np.float32), "w")
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:2], values[2:], [weights])
        name = f"m{index}"
        (root / name / "1").mkdir(parents=True)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), root / name / "1" / "model.onnx")
        (root / name / "config.pbtxt").write_text(CONFIG.format(name=name))
    return root


def cpu_s() -> float:
    """Seconds of CPU that finished children of this process took so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(action: Callable[[], object]) -> float:
    """Seconds that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def report(name: str, seconds: list[float]) -> None:
    """One line: median and spread in milliseconds."""
    values = [second * 1000 for second in seconds]
    print(f"{name:<44} median {statistics.median(values):8.1f} ms   {min(values):8.1f} to {max(values):8.1f}   n={len(values)}")


def profile(repository: Path) -> str:
    """The functions that take the longest, with what they call."""
    from tritongen.check.engine import CheckOptions, check
    from tritongen.check.targets import find_targets

    profiler = cProfile.Profile()
    profiler.runcall(check, find_targets([repository]), CheckOptions())
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats("tritongen", 16)
    return "\n".join(line for line in text.getvalue().splitlines() if "tritongen" in line or "cumtime" in line)


if __name__ == "__main__":
    main()
