"""How `read_onnx` compares with `onnx.load` on a model with large inline weights: time, as a ratio, and memory, as additional resident MB.

    python benchmarks/signature.py [--size-gb 1.1] [--repeats 5]

Writes a model of random bytes to a temporary folder (so it is in the page cache), then measures both readers in turn, each in a new process, so
that neither profits from what the other left behind. Memory is the kernel's peak resident size while reading (VmHWM) less the resident size before. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TENSOR_BYTES = 16 << 20

MEASURE = """
import json, sys, time
from pathlib import Path
if sys.argv[1] == "read_onnx":
    from tritongen.signature import read_onnx as read
else:
    from onnx import load as read
def kilobytes(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))
Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is resident now
before, start = kilobytes("VmRSS"), time.perf_counter()
read(Path(sys.argv[2]))
time_s = time.perf_counter() - start
print(json.dumps({"time_s": time_s, "memory_mb": (kilobytes("VmHWM") - before) / 1024}))
"""


def varint(number: int) -> bytes:
    """A number in protobuf's encoding."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


def write_model(path: Path, size_bytes: int) -> int:
    """Writes a chain of additions whose weights together take about this many bytes; gives the number of weights.

    The weights are streamed, so this needs little memory; the rest is made with the onnx package.
    """
    import onnx
    from onnx import TensorProto, helper

    count = max(1, size_bytes // TENSOR_BYTES)
    elements = TENSOR_BYTES // 4
    nodes = [helper.make_node("Add", [f"h{index}" if index else "x", f"w{index}"], [f"h{index + 1}"]) for index in range(count)]
    border = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", elements]) for name in ("x", f"h{count}")]
    graph = helper.make_graph(nodes, "benchmark", border[:1], border[1:]).SerializeToString()
    raw = b"\x4a" + varint(TENSOR_BYTES)  # TensorProto.raw_data
    heads = [TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[elements]).SerializeToString() + raw for index in range(count)]
    tensors = [b"\x2a" + varint(len(head) + TENSOR_BYTES) + head for head in heads]  # GraphProto.initializer
    total = len(graph) + sum(len(tensor) + TENSOR_BYTES for tensor in tensors)
    with path.open("wb") as stream:
        stream.write(onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]).SerializeToString())
        stream.write(b"\x3a" + varint(total) + graph)  # ModelProto.graph
        for tensor in tensors:
            stream.write(tensor)
            stream.write(os.urandom(TENSOR_BYTES))
    return count


def measure(reader: str, path: Path) -> dict[str, float]:
    """Time (s) and additional memory (MB) of one reader, in a new process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", MEASURE, reader, str(path)], check=True, capture_output=True, text=True, env=environment)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def summary(values: list[float], unit: str, digits: int) -> str:
    """Median with the smallest and the largest value."""
    return f"{statistics.median(values):.{digits}f} {unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main() -> None:
    """Makes the model, measures, prints."""
    parser = argparse.ArgumentParser(description="read_onnx against onnx.load on one large file")
    parser.add_argument("--size-gb", type=float, default=1.1, help="size of the weights in GB (10^9 bytes); below 2.1, protobuf's limit")
    parser.add_argument("--repeats", type=int, default=5, help="processes per reader")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tritongen-benchmark-") as folder:
        path = Path(folder) / "model.onnx"
        count = write_model(path, int(options.size_gb * 1e9))
        print(f"Python {platform.python_version()}, onnx {version('onnx')}, protobuf {version('protobuf')}, {os.cpu_count()} cores")
        print(f"{path.stat().st_size / 1e9:.2f} GB in {count} weights, {options.repeats} processes per reader, file in the page cache")
        results: dict[str, list[dict[str, float]]] = {"read_onnx": [], "onnx.load": []}
        for _ in range(options.repeats):
            for reader, found in results.items():
                found.append(measure(reader, path))
    times = {reader: [one["time_s"] for one in found] for reader, found in results.items()}
    for reader, found in results.items():
        time_ms = summary([one["time_s"] * 1e3 for one in found], "ms", 2)
        print(f"  {reader:10} {time_ms:36} additional memory {summary([one['memory_mb'] for one in found], 'MB', 1)}")
    ratios = [slow / fast for slow, fast in zip(times["onnx.load"], times["read_onnx"], strict=True)]
    ratio = statistics.median(times["onnx.load"]) / statistics.median(times["read_onnx"])
    print(f"onnx.load takes {ratio:.0f} x the time of read_onnx (ratio of medians; run by run {min(ratios):.0f} to {max(ratios):.0f})")


if __name__ == "__main__":
    main()
