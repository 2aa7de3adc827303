"""Large models: what a render of one costs in memory, in bytes read, and in bytes copied."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.system

SIZE = 2 << 30
ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from pathlib import Path
from tritongen.cli.main import run
code = run(["render", *sys.argv[1:]])
counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) << 10  # of this program alone: getrusage's also counts the process that it was forked from
print(json.dumps({"code": code, "read": int(counts["rchar"]), "written": int(counts["wchar"]), "peak": peak}))
"""


def render(folder, *options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    command = [sys.executable, "-c", PROGRAM, str(folder / "spec.yaml"), *options]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout.splitlines()[-1])


def test_memory_stays_flat_and_what_has_not_changed_is_neither_copied_nor_read(tmp_path):
    networks.save(
        tmp_path / "m.onnx",
        [helper.make_node("Gather", ["table", "x"], ["y"])],
        [("x", TensorProto.INT64, ["N"])],
        [("y", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(np.zeros((1, 4), np.float32), "table")],
    )
    model = onnx.load(tmp_path / "m.onnx")
    (table,) = model.graph.initializer
    table.dims[0] = SIZE // 16
    table.ClearField("raw_data")
    table.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", str(SIZE))):
        table.external_data.add(key=key, value=value)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(SIZE)
        file.seek(SIZE - 5)
        file.write(b"end")
    time.sleep(2.5)  # what has only just changed is not remembered

    spec = "version: 1\nmodels:\n  - {{name: m, source: m.onnx, prove: false, batching: {{max: {}}}}}\n"
    (tmp_path / "spec.yaml").write_text(spec.format(4))
    first = render(tmp_path)
    assert first["code"] == 0
    assert first["peak"] < 300 << 20
    time.sleep(2.5)
    second = render(tmp_path)
    assert second["written"] < 1 << 20, "no copy"
    assert second["read"] < SIZE + (200 << 20), "the source is remembered, and the copy is read once"
    assert second["peak"] < 300 << 20
    third = render(tmp_path)
    assert third["read"] < 200 << 20, "now the copy is remembered too"
    (tmp_path / "spec.yaml").write_text(spec.format(8))
    inode = (tmp_path / "model_repository/m/1/w.bin").stat().st_ino
    changed = render(tmp_path)
    assert changed["written"] < 1 << 20, "a new config costs no copy of the weights"
    assert (tmp_path / "model_repository/m/1/w.bin").stat().st_ino == inode
    print({"first": first, "second": second, "third": third, "changed": changed})


def test_what_a_run_takes_is_bounded_by_the_limit(tmp_path):
    size = 256 << 20
    networks.save(
        tmp_path / "m.onnx",
        [helper.make_node("Gather", ["table", "x"], ["y"])],
        [("x", TensorProto.INT64, ["N"])],
        [("y", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(np.ones((size // 16, 4), np.float32), "table")],
    )
    (tmp_path / "spec.yaml").write_text("version: 1\nmodels:\n  - {name: m, source: m.onnx, batching: {max: 4}}\n")
    bounded = render(tmp_path, "--prove-limit", "256MiB")
    run = render(tmp_path, "--prove-limit", "257MiB")
    print({"bounded": bounded, "run": run})
    assert (bounded["code"], run["code"]) == (0, 0)
    assert bounded["peak"] < 200 << 20
    assert size < run["peak"] < (300 << 20) + 2 * size, "docs/render.md says how much a run takes"
