"""CPU that sending costs a load test: tritongen's senders against the libraries that could have been used, side by side on one server.

Requests a second and CPU of this process a request, as fast as the server answers, with 16 under way. Prints medians and ratios with their spread.

    python benchmarks/load_wire.py [--seconds 2] [--rounds 5] [--under-way 16] [--values 64]

Every way sends the same bytes, which are made before the clock starts, and reads no tensor: grpc.aio with bytes in and out, aiohttp, gevent with
geventhttpclient (which Locust's fast HTTP user is built on) with a connection a greenlet.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/server"))
import models
from onnx import helper

import tritongen
from tritongen.client import calls, grpc_codec, http_codec
from tritongen.client.endpoint import parse_url
from tritongen.load.wire import open_pool


class Measured(NamedTuple):
    """One way's run: requests, seconds, CPU seconds."""

    count: int
    taken_s: float
    cpu_s: float


async def drive(send: Callable[[], Awaitable[None]], under_way: int, seconds: float) -> Measured:
    """Send with so many tasks for so long."""
    await asyncio.gather(*(send() for _ in range(under_way)))
    count, start, cpu = 0, time.perf_counter(), time.process_time()

    async def work() -> None:
        nonlocal count
        while time.perf_counter() < start + seconds:
            await send()
            count += 1

    await asyncio.gather(*(work() for _ in range(under_way)))
    return Measured(count, time.perf_counter() - start, time.process_time() - cpu)


async def ours(url: str, call: calls.Infer, under_way: int, seconds: float) -> Measured:
    """`tritongen.load.wire`."""
    async with open_pool(parse_url(url)) as pool:
        prepared = pool.prepare(call)

        async def send() -> None:
            answer = await pool.send(prepared, 30)
            if answer.outcome != "ok":
                raise RuntimeError(answer.error)

        return await drive(send, under_way, seconds)


async def grpc_aio(url: str, call: calls.Infer, under_way: int, seconds: float) -> Measured:
    """grpc.aio, which takes and gives bytes where it is told of no serialisers."""
    import grpc.aio

    async with grpc.aio.insecure_channel(parse_url(url).authority, grpc_codec.channel_options()) as channel:
        method, request = channel.unary_unary(grpc_codec.INFER), grpc_codec.infer_request(call)

        async def send() -> None:
            await method(request, timeout=30)

        return await drive(send, under_way, seconds)


async def over_aiohttp(url: str, call: calls.Infer, under_way: int, seconds: float) -> Measured:
    """One session of aiohttp with as many connections as requests."""
    import aiohttp

    message = http_codec.request(call)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=30)) as session:

        async def send() -> None:
            async with session.post(url + message.path, data=message.body, headers=message.headers) as response:
                await response.read()
                response.raise_for_status()

        return await drive(send, under_way, seconds)


def greenlets(url: str, call: calls.Infer, under_way: int, seconds: float) -> Measured:
    """Greenlets that share a client of geventhttpclient."""
    import gevent
    from geventhttpclient import HTTPClient

    message, endpoint = http_codec.request(call), parse_url(url)
    client = HTTPClient(endpoint.host, endpoint.port, concurrency=under_way, connection_timeout=30, network_timeout=30)

    def send() -> None:
        response = client.request(message.method, message.path, body=message.body, headers=message.headers)
        response.read()
        if response.status_code != 200:
            raise RuntimeError(str(response.status_code))

    def work(end: float) -> int:
        count = 0
        while time.perf_counter() < end:
            send()
            count += 1
        return count

    gevent.joinall([gevent.spawn(send) for _ in range(under_way)], raise_error=True)
    start, cpu = time.perf_counter(), time.process_time()
    workers = [gevent.spawn(work, start + seconds) for _ in range(under_way)]
    gevent.joinall(workers, raise_error=True)
    measured = Measured(sum(worker.value for worker in workers), time.perf_counter() - start, time.process_time() - cpu)
    client.close()
    return measured


WAYS = {
    "HTTP": {"tritongen": ours, "aiohttp": over_aiohttp, "gevent + geventhttpclient": greenlets},
    "gRPC": {"tritongen": ours, "grpc.aio, bytes": grpc_aio},
}


def measure(urls: dict[str, str], call: calls.Infer, under_way: int, seconds: float, rounds: int) -> None:
    """One table: every way, taking turns."""
    results: dict[tuple[str, str], list[Measured]] = {}
    for _ in range(rounds):
        for protocol, ways in WAYS.items():
            for name, way in ways.items():
                found = way(urls[protocol], call, under_way, seconds)
                results.setdefault((protocol, name), []).append(asyncio.run(found) if asyncio.iscoroutine(found) else found)
    for (protocol, name), found in results.items():
        cpu = [one.cpu_s / one.count * 1e6 for one in found]
        ratios = [one / (own.cpu_s / own.count * 1e6) for one, own in zip(cpu, results[protocol, "tritongen"], strict=True)]
        rate = statistics.median(one.count / one.taken_s for one in found)
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) x ours"
        print(f"{protocol} {name:<26} {rate:>7.0f} requests/s  {statistics.median(cpu):>6.0f} ({min(cpu):.0f}-{max(cpu):.0f}) us CPU a request  {spread}")


def main() -> None:
    """Measure everything once."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--under-way", type=int, default=16)
    parser.add_argument("--values", type=int, default=64, help="floats in a request")
    arguments = parser.parse_args()
    graph = models.model([helper.make_node("Neg", ["x"], ["y"])], [models.value("x", models.FLOAT, ["N", "L"])], [models.value("y", models.FLOAT, ["N", "L"])])
    with tempfile.TemporaryDirectory() as folder:
        models.put(Path(folder) / "repository", "neg", graph, models.config("x FP32 [-1]", "y FP32 [-1]", batch=1))
        with tritongen.serve(Path(folder) / "repository", http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as server:
            with tritongen.Client(server.grpc_url) as client:
                tensor = client.meta("neg").inputs[0]
            call = calls.Infer.of("neg", "", ((tensor, np.random.default_rng(0).standard_normal((1, arguments.values)).astype(np.float32)),))
            measure({"HTTP": server.http_url, "gRPC": server.grpc_url}, call, arguments.under_way, arguments.seconds, arguments.rounds)


if __name__ == "__main__":
    main()
