"""A server of known times, in a process of its own: the truth that load tests are held against.

It speaks as much of Triton's HTTP and gRPC as a load test asks for. Requests of both are worked off one after another, each for the same time; at times that
are set it stands still. When each request arrived and when its answer was written goes into a log, on the clock that all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
from tritonclient.grpc import model_config_pb2, service_pb2

from tritongen.load.clock import Timer

ROOT = Path(__file__).parents[1]
MODEL = "known"
_SERVICE = "/inference.GRPCInferenceService/"

Stalls = Sequence[tuple[float, float]]
"""Beginning and length of each pause in seconds, ascending, from the arrival of the first request."""


def finished(begin: float, service_s: float, stalls: Stalls) -> float:
    """When work that begins at `begin` ends, where there is none during the stalls."""
    end = begin + service_s
    for start, length in stalls:
        if end > start and begin < start + length:
            end += start + length - max(begin, start)
    return end


class Worker:
    """One worker for all requests, first come, first served."""

    def __init__(self, service_s: float, stalls: Stalls) -> None:
        self._service_s, self._stalls = service_s, stalls
        self._first: float | None = None
        self._free = 0.0
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        self._timer = Timer()
        self.log: list[tuple[float, float]] = []
        asyncio.get_running_loop().add_reader(self._timer, self._answer)

    def take(self, arrived: float, answer: Callable[[], None]) -> None:
        """A request; `answer` is called when it is worked off, and calls `done`."""
        first = self._first = arrived if self._first is None else self._first
        self._free = first + finished(max(arrived, self._free) - first, self._service_s, self._stalls)
        self._waiting.append((self._free, answer))
        if len(self._waiting) == 1:
            self._timer.set(self._free)

    def done(self, arrived: float) -> None:
        """The answer to the request that arrived then was just handed over."""
        self.log.append((arrived, time.perf_counter()))

    def _answer(self) -> None:
        self._timer.clear()
        while self._waiting and self._waiting[0][0] <= time.perf_counter():
            self._waiting.popleft()[1]()
        if self._waiting:
            self._timer.set(self._waiting[0][0])


TENSORS = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 1]}]}
PAGES = {
    f"/v2/models/{MODEL}": {"name": MODEL, "versions": ["1"], "platform": "known", **TENSORS},
    f"/v2/models/{MODEL}/config": {"name": MODEL, "max_batch_size": 8},
    "/v2": {"name": "known", "version": "0", "extensions": []},
}
ANSWER = {"model_name": MODEL, "model_version": "1", "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [0.0]}]}


def page(status: int, data: object) -> bytes:
    """An answer over HTTP."""
    body = json.dumps(data).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Http(asyncio.Protocol):
    """One connection; requests on it come one after another."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._data = b""
        self._infer_answer = page(200, ANSWER)

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        arrived = time.perf_counter()
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        if not end or len(body) < length:
            return
        self._data = body[length:]
        path = head.split(b" ", 2)[1].decode()
        if path == f"/v2/models/{MODEL}/infer":
            self._worker.take(arrived, lambda: self._answer(arrived))
        elif path in PAGES:
            self._transport.write(page(200, PAGES[path]))
        else:
            self._transport.write(page(404, {"error": f"there is no {path}"}))

    def _answer(self, arrived: float) -> None:
        self._transport.write(self._infer_answer)
        self._worker.done(arrived)


class Grpc(grpc.GenericRpcHandler):
    """All methods, as bytes."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        metadata = service_pb2.ModelMetadataResponse(name=MODEL, versions=["1"])
        metadata.inputs.add(name="x", datatype="FP32", shape=[-1, 4])
        metadata.outputs.add(name="y", datatype="FP32", shape=[-1, 1])
        config = service_pb2.ModelConfigResponse(config=model_config_pb2.ModelConfig(name=MODEL, max_batch_size=8))
        inferred = service_pb2.ModelInferResponse(model_name=MODEL, model_version="1", raw_output_contents=[bytes(4)])
        inferred.outputs.add(name="y", datatype="FP32", shape=[1, 1])
        self._inferred = inferred.SerializeToString()
        self._known = {"ModelMetadata": metadata.SerializeToString(), "ModelConfig": config.SerializeToString()}

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        method = details.method.removeprefix(_SERVICE)
        if method == "ModelInfer":
            return grpc.unary_unary_rpc_method_handler(self._infer)
        return grpc.unary_unary_rpc_method_handler(self._tell(self._known[method])) if method in self._known else None

    async def _infer(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        arrived, answered = time.perf_counter(), asyncio.Event()
        self._worker.take(arrived, answered.set)
        await answered.wait()
        self._worker.done(arrived)
        return self._inferred

    def _tell(self, data: bytes) -> Callable:
        async def tell(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            return data

        return tell


async def run(log: Path, service_s: float, stalls: Stalls) -> None:
    """Serve until standard input is closed, then write the log."""
    worker = Worker(service_s, stalls)
    loop = asyncio.get_running_loop()
    http = await loop.create_server(lambda: Http(worker), "127.0.0.1", 0, backlog=1024)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([Grpc(worker)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(json.dumps({"http": http.sockets[0].getsockname()[1], "grpc": port}), flush=True)
    closed = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(closed), sys.stdin)
    await closed.read()
    log.write_text(json.dumps(worker.log))
    await server.stop(0)


@dataclass
class KnownServer:
    """A running one. `log` is there once its block was left: arrival and end of each request, in the order in which they were answered."""

    urls: dict[str, str]
    log: list[tuple[float, float]]


@contextlib.contextmanager
def known_server(folder: Path, *, service_s: float, stalls: Stalls = ()) -> Iterator[KnownServer]:
    """Run one while the block runs; its log is kept in `folder`."""
    log = folder / "known.json"
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'tests')]!r}; import known_server; known_server.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps([str(log), service_s, stalls])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        ports = json.loads(process.stdout.readline())
        running = KnownServer({protocol: f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items()}, [])
        yield running
        process.communicate(timeout=10)
        running.log += [(arrived, end) for arrived, end in json.loads(log.read_text())]
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """What runs in the process."""
    log, service_s, stalls = json.loads(sys.argv[1])
    asyncio.run(run(Path(log), service_s, stalls))
