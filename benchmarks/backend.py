"""Our onnxruntime backend against the simplest Python model, on one embedded Triton, in one run.

    python benchmarks/backend.py [--rounds 9] [--seconds 1.0]

Closed-loop gRPC clients of 1 and 4 threads ask both in turn, round by round; printed are ratios (ours / simplest) of the medians over all rounds, with the
smallest and the largest ratio of any one round. Throughput above 1 and latency below 1 mean that ours is faster.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import tritonclient.grpc as grpcclient
from onnx import TensorProto, helper, numpy_helper

from tritongen.server import EmbeddedServer, ServerOptions, start

CONTESTANTS = ("ours", "simplest")
THREADS = (1, 4)


def tiny() -> tuple[onnx.ModelProto, list[int]]:
    """x[N,64] · w → y[N,16]: nothing but the way there and back."""
    weights = np.random.default_rng(0).standard_normal((64, 16)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return _model(nodes, {"w": weights}, [64], [16]), [64]


def resnet18_sized(side: int = 224) -> tuple[onnx.ModelProto, list[int]]:
    """Seventeen 3x3 convolutions in ResNet-18's widths and strides, with its shortcuts and its classifier, on seeded weights (some 11 million of them)."""
    generator = np.random.default_rng(1)
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}

    def convolution(source: str, channels: tuple[int, int], size: int, stride: int) -> str:
        name = f"conv{len(weights)}"
        shape = (channels[1], channels[0], size, size)
        weights[name] = (generator.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        pads = [size // 2] * 4
        nodes.append(helper.make_node("Conv", [source, name], [f"{name}_out"], kernel_shape=[size, size], strides=[stride, stride], pads=pads))
        return f"{name}_out"

    def relu(source: str) -> str:
        nodes.append(helper.make_node("Relu", [source], [f"{source}_relu"]))
        return f"{source}_relu"

    current = relu(convolution("x", (3, 64), 7, 2))
    nodes.append(helper.make_node("MaxPool", [current], ["pool"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))
    current, width = "pool", 64
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and block == 0 else 1
            inner = relu(convolution(current, (width, channels), 3, stride))
            inner = convolution(inner, (channels, channels), 3, 1)
            shortcut = current if width == channels else convolution(current, (width, channels), 1, stride)
            nodes.append(helper.make_node("Add", [inner, shortcut], [f"{inner}_sum"]))
            current, width = relu(f"{inner}_sum"), channels
    nodes.append(helper.make_node("GlobalAveragePool", [current], ["mean"]))
    nodes.append(helper.make_node("Flatten", ["mean"], ["features"]))
    weights["head"] = (generator.standard_normal((512, 1000)) * 0.04).astype(np.float32)
    nodes.append(helper.make_node("MatMul", ["features", "head"], ["y"]))
    return _model(nodes, weights, [3, side, side], [1000]), [3, side, side]


def _model(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], inputs: list[int], outputs: list[int]) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *dims]) for name, dims in (("x", inputs), ("y", outputs)))
    graph = helper.make_graph(nodes, "benchmark", [x], [y], [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


NETWORKS = {"tiny": tiny, "resnet18-sized": resnet18_sized}


@dataclass
class Round:
    """One contestant's round: requests per second, and the median latency in milliseconds."""

    per_second: float
    p50_ms: float


def write(repository: Path, network: str) -> list[int]:
    """The two contestants' models for one network; the input's dims."""
    model, dims = NETWORKS[network]()
    for contestant in CONTESTANTS:
        folder = repository / f"{network}-{contestant}" / "1"
        folder.mkdir(parents=True)
        onnx.save_model(model, folder / "model.onnx")
        backend = 'platform: "onnxruntime_onnx"' if contestant == "ours" else 'backend: "python"'
        outputs = [int(dim.dim_value) for dim in model.graph.output[0].type.tensor_type.shape.dim[1:]]
        (folder.parent / "config.pbtxt").write_text(
            f'{backend}\nmax_batch_size: 8\ninput [{{ name: "x" data_type: TYPE_FP32 dims: {dims} }}]\n'
            f'output [{{ name: "y" data_type: TYPE_FP32 dims: {outputs} }}]\n'
            'instance_group [{ kind: KIND_CPU count: 1 }]\nparameters { key: "intra_op_thread_count" value { string_value: "1" } }\n'
        )
        if contestant == "simplest":
            shutil.copy(Path(__file__).with_name("simple_backend.py"), folder / "model.py")
    return dims


def measure(server: EmbeddedServer, model: str, array: np.ndarray, threads: int, seconds: float) -> Round:
    """Ask in a closed loop for some seconds."""
    latencies: list[list[float]] = [[] for _ in range(threads)]
    begin = time.perf_counter()
    end = begin + seconds

    def loop(own: list[float]) -> None:
        with grpcclient.InferenceServerClient(server.grpc_url.removeprefix("grpc://")) as client:
            tensor = grpcclient.InferInput("x", list(array.shape), "FP32")
            tensor.set_data_from_numpy(array)
            while (sent := time.perf_counter()) < end:
                client.infer(model, [tensor])
                own.append(time.perf_counter() - sent)

    workers = [threading.Thread(target=loop, args=(own,)) for own in latencies]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    every = [latency for own in latencies for latency in own]
    return Round(len(every) / (time.perf_counter() - begin), statistics.median(every) * 1e3)


def compare(server: EmbeddedServer, network: str, dims: list[int], threads: int, rounds: int, seconds: float) -> str:
    """One line of the result: both contestants in turn, the first of each round changing."""
    array = np.random.default_rng(2).standard_normal((1, *dims)).astype(np.float32)
    results: dict[str, list[Round]] = {contestant: [] for contestant in CONTESTANTS}
    for contestant in CONTESTANTS:
        measure(server, f"{network}-{contestant}", array, threads, min(seconds, 0.5))
    for number in range(rounds):
        for contestant in CONTESTANTS if number % 2 else reversed(CONTESTANTS):
            results[contestant].append(measure(server, f"{network}-{contestant}", array, threads, seconds))
    parts = [f"{network:<15} {threads} thread{'s' if threads > 1 else ' '}"]
    for label, field in (("throughput", "per_second"), ("p50", "p50_ms")):
        ours, simplest = ([getattr(item, field) for item in results[contestant]] for contestant in CONTESTANTS)
        each = [one / other for one, other in zip(ours, simplest, strict=True)]
        medians = statistics.median(ours), statistics.median(simplest)
        parts.append(f"{label} {medians[0] / medians[1]:.3f} [{min(each):.3f} … {max(each):.3f}] ({medians[0]:.4g} / {medians[1]:.4g})")
    return "   ".join(parts)


def main() -> None:
    """Write the models, start the server, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each contestant's round")
    parser.add_argument("--network", choices=NETWORKS, action="append", help="by default all")
    arguments = parser.parse_args()
    networks = arguments.network or list(NETWORKS)
    with tempfile.TemporaryDirectory() as scratch:
        dims = {network: write(Path(scratch), network) for network in networks}
        with start(Path(scratch), ServerOptions(http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True)) as server:
            print("ours / simplest, medians [smallest … largest of one round] (requests per second, milliseconds)")
            for network in networks:
                for threads in THREADS:
                    print(compare(server, network, dims[network], threads, arguments.rounds, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
