"""tritongen's client against tritonclient's fastest interface of each kind and a bare stub, side by side on one server.

Requests a second and client CPU a request, for a tiny request and one of 4 MB, with 1 and 16 under way. Prints ratios of medians, with their spread.

    python benchmarks/client.py [--seconds 2] [--rounds 5]

The peers: `tritonclient.grpc` `infer` in threads, `tritonclient.grpc.aio`, `tritonclient.http` with as many connections as requests under way (`async_infer`),
`tritonclient.http.aio`; the bare stub is the generated gRPC stub with a request that is made once and an answer that nobody reads.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/server"))
import models
from onnx import helper

import tritongen

SIZES = {"tiny": (1, 64), "4 MB": (1, 1 << 20)}


class Blocking:
    """A way to send one request that blocks; under way at once in as many threads."""

    def __init__(self, make: Callable[[], Callable[[], object]], close: Callable[[], object]) -> None:
        self.make, self.close = make, close

    def run(self, under_way: int, seconds: float) -> tuple[int, float, float]:
        """Requests, seconds and CPU seconds of this process."""
        send = self.make()
        send()
        counts = [0] * under_way
        begin = threading.Barrier(under_way + 1)
        end = [0.0]

        def work(index: int) -> None:
            begin.wait()
            while time.perf_counter() < end[0]:
                send()
                counts[index] += 1

        threads = [threading.Thread(target=work, args=(index,)) for index in range(under_way)]
        for thread in threads:
            thread.start()
        start, cpu = time.perf_counter(), time.process_time()
        end[0] = start + seconds
        begin.wait()
        for thread in threads:
            thread.join()
        taken, used = time.perf_counter() - start, time.process_time() - cpu
        self.close()
        return sum(counts), taken, used


class Waiting:
    """The same for asyncio, in as many tasks."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make

    def run(self, under_way: int, seconds: float) -> tuple[int, float, float]:
        """Requests, seconds and CPU seconds of this process."""
        return asyncio.run(self._run(under_way, seconds))

    async def _run(self, under_way: int, seconds: float) -> tuple[int, float, float]:
        async with self.make() as send:
            await send()
            counts = [0] * under_way
            start, cpu = time.perf_counter(), time.process_time()

            async def work(index: int) -> None:
                while time.perf_counter() < start + seconds:
                    await send()
                    counts[index] += 1

            await asyncio.gather(*(work(index) for index in range(under_way)))
            return sum(counts), time.perf_counter() - start, time.process_time() - cpu


def tensor(module: Any, x: np.ndarray) -> Any:
    """An input as tritonclient wants it."""
    value = module.InferInput("x", list(x.shape), "FP32")
    value.set_data_from_numpy(x)
    return value


def ways(server: tritongen.EmbeddedServer, model: str, x: np.ndarray, under_way: int) -> dict[str, dict[str, Blocking | Waiting]]:
    """Peers and ours, by kind; the first of each kind is what the others are compared with. Every peer reads its answer as an array, as ours does."""
    import grpc
    import tritonclient.grpc as triton_grpc
    import tritonclient.grpc.aio as triton_grpc_aio
    import tritonclient.http as triton_http
    import tritonclient.http.aio as triton_http_aio
    from tritonclient.grpc import service_pb2_grpc

    grpc_at, http_at = server.grpc_url.removeprefix("grpc://"), server.http_url.removeprefix("http://")

    def ours(url: str) -> Blocking:
        client = tritongen.Client(url)
        return Blocking(lambda: lambda: client.infer(model, x=x)["y"], client.close)

    def peer_grpc() -> Blocking:
        client = triton_grpc.InferenceServerClient(grpc_at)
        return Blocking(lambda: lambda: client.infer(model, [tensor(triton_grpc, x)]).as_numpy("y"), client.close)

    def peer_http() -> Blocking:
        client = triton_http.InferenceServerClient(http_at, concurrency=under_way)
        return Blocking(lambda: lambda: client.async_infer(model, [tensor(triton_http, x)]).get_result().as_numpy("y"), client.close)

    def stub() -> Blocking:
        channel = grpc.insecure_channel(grpc_at, [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        send = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        from tritonclient.grpc import service_pb2

        request = service_pb2.ModelInferRequest(model_name=model)
        request.inputs.add(name="x", datatype="FP32", shape=x.shape)
        request.raw_input_contents.append(x.tobytes())
        return Blocking(lambda: lambda: send(request), channel.close)

    @contextlib.asynccontextmanager
    async def ours_aio(url: str) -> AsyncIterator[Any]:
        async with tritongen.AsyncClient(url) as client:

            async def send() -> np.ndarray:
                return (await client.infer(model, x=x))["y"]

            yield send

    @contextlib.asynccontextmanager
    async def peer_aio(module: Any, at: str, **options: int) -> AsyncIterator[Any]:
        async with module.InferenceServerClient(at, **options) as client:

            async def send() -> np.ndarray:
                return (await client.infer(model, [tensor(module, x)])).as_numpy("y")

            yield send

    return {
        "gRPC": {"tritonclient.grpc": peer_grpc(), "tritongen": ours(server.grpc_url), "bare stub": stub()},
        "gRPC, asyncio": {
            "tritonclient.grpc.aio": Waiting(lambda: peer_aio(triton_grpc_aio, grpc_at)),
            "tritongen": Waiting(lambda: ours_aio(server.grpc_url)),
        },
        "HTTP": {"tritonclient.http": peer_http(), "tritongen": ours(server.http_url)},
        "HTTP, asyncio": {
            "tritonclient.http.aio": Waiting(lambda: peer_aio(triton_http_aio, http_at, conn_limit=under_way)),
            "tritongen": Waiting(lambda: ours_aio(server.http_url)),
        },
    }


def measure(server: tritongen.EmbeddedServer, model: str, x: np.ndarray, under_way: int, seconds: float, rounds: int) -> None:
    """One table: every way, taking turns."""
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for kind, entries in ways(server, model, x, under_way).items():
            for name, way in entries.items():
                if name == "tritonclient.http":
                    # Its greenlets belong to one thread: the requests under way are started together there.
                    count, taken, used = greenlets(server, model, x, under_way, seconds)
                    way.close()
                else:
                    count, taken, used = way.run(under_way, seconds)
                results.setdefault((kind, name), []).append((count / taken, used / max(count, 1) * 1e6))
    for (kind, name), found in results.items():
        peer = next(entry for key, entry in results.items() if key[0] == kind)
        rates = [one[0] / other[0] for one, other in zip(found, peer, strict=True)]
        rate, cpu = statistics.median(one[0] for one in found), statistics.median(one[1] for one in found)
        spread = f"{statistics.median(rates):.2f} ({min(rates):.2f}-{max(rates):.2f})"
        print(f"{kind:<14} {name:<22} {rate:>9.0f} requests/s  {cpu:>8.0f} us CPU a request  {spread} x the peer")


def greenlets(server: tritongen.EmbeddedServer, model: str, x: np.ndarray, under_way: int, seconds: float) -> tuple[int, float, float]:
    """Tritonclient's `async_infer` with a window of requests, in the one thread that it is made for."""
    from collections import deque

    import tritonclient.http as triton_http

    with triton_http.InferenceServerClient(server.http_url.removeprefix("http://"), concurrency=under_way) as client:
        waiting: deque = deque()
        count, start, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < start + seconds or waiting:
            while len(waiting) < under_way and time.perf_counter() < start + seconds:
                waiting.append(client.async_infer(model, [tensor(triton_http, x)]))
            if waiting:
                waiting.popleft().get_result().as_numpy("y")
                count += 1
        return count, time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    """Measure everything once."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    graph = models.model([helper.make_node("Neg", ["x"], ["y"])], [models.value("x", models.FLOAT, ["N", "L"])], [models.value("y", models.FLOAT, ["N", "L"])])
    with tempfile.TemporaryDirectory() as folder:
        models.put(Path(folder) / "repository", "neg", graph, models.config("x FP32 [-1]", "y FP32 [-1]", batch=1))
        with tritongen.serve(Path(folder) / "repository", http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as server:
            for label, shape in SIZES.items():
                x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
                for under_way in (1, 16):
                    print(f"\n{label}, {under_way} under way")
                    measure(server, "neg", x, under_way, arguments.seconds, arguments.rounds)


if __name__ == "__main__":
    main()
