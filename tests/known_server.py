"""A server of known times, in a process of its own: the truth that load tests are held against.

It speaks as much of Triton's HTTP and gRPC as a load test asks for. Requests of both are worked off one after another, each for the same time; at times that
are set it stands still. When each request arrived and when its answer was ready goes into a log, on the clock that all processes of a machine share.
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

from hpack import Decoder, Encoder
from tritonclient.grpc import model_config_pb2, service_pb2

from tritongen.load.clock import Timer
from tritongen.load.wire import frames
from tritongen.load.wire.frames import Kind, Setting

ROOT = Path(__file__).parents[1]
MODEL = "known"
_SERVICE, _INFER = "/inference.GRPCInferenceService/", "ModelInfer"

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
        """The answer to the request that arrived then is handed to the kernel next: nobody can have it earlier."""
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
        self._worker.done(arrived)
        self._transport.write(self._infer_answer)


_BEGIN = Encoder().encode([(":status", "200", True), ("content-type", "application/grpc", True)])
_END = Encoder().encode([("grpc-status", "0", True)])
_UNKNOWN = Encoder().encode([(":status", "200", True), ("content-type", "application/grpc", True), ("grpc-status", "12", True)])
"""Headers that are put into no table, and so are the same bytes in every answer."""


def grpc_answers() -> dict[str, bytes]:
    """What is answered to each method, as messages."""
    metadata = service_pb2.ModelMetadataResponse(name=MODEL, versions=["1"])
    metadata.inputs.add(name="x", datatype="FP32", shape=[-1, 4])
    metadata.outputs.add(name="y", datatype="FP32", shape=[-1, 1])
    config = service_pb2.ModelConfigResponse(config=model_config_pb2.ModelConfig(name=MODEL, max_batch_size=8))
    inferred = service_pb2.ModelInferResponse(model_name=MODEL, model_version="1", raw_output_contents=[bytes(4)])
    inferred.outputs.add(name="y", datatype="FP32", shape=[1, 1])
    return {_SERVICE + name: message.SerializeToString() for name, message in (("ModelMetadata", metadata), ("ModelConfig", config), (_INFER, inferred))}


class Grpc(asyncio.Protocol):
    """One connection of HTTP/2. grpc's own server would write answers some hundred microseconds after they were given to it, where no log sees it."""

    def __init__(self, worker: Worker, answers: dict[str, bytes]) -> None:
        self._worker, self._answers = worker, answers
        self._reader, self._decoder = frames.FrameReader(), Decoder()
        self._paths: dict[int, str] = {}
        self._greeting = frames.PREFACE

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        room = frames.number(frames.MAX_WINDOW - frames.FIRST_WINDOW)
        transport.write(frames.settings({Setting.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW}) + frames.frame(Kind.WINDOW_UPDATE, 0, 0, room))

    def data_received(self, data: bytes) -> None:
        arrived = time.perf_counter()
        greeting = min(len(self._greeting), len(data))
        self._greeting = self._greeting[greeting:]
        for found in self._reader.feed(data[greeting:]):
            self._heed(found, arrived)

    def _heed(self, found: frames.Frame, arrived: float) -> None:
        if found.kind == Kind.HEADERS:
            self._paths[found.stream] = dict(self._decoder.decode(frames.content(found)))[":path"]
        elif found.kind in (Kind.SETTINGS, Kind.PING) and not found.flags & frames.ACK:
            self._transport.write(frames.frame(Kind(found.kind), frames.ACK, 0, found.payload if found.kind == Kind.PING else b""))
        elif found.kind == Kind.RST_STREAM:
            self._paths.pop(found.stream, None)
        if found.kind == Kind.DATA and found.flags & frames.END_STREAM:
            path = self._paths[found.stream]
            if path == _SERVICE + _INFER:
                self._worker.take(arrived, lambda: self._infer(found.stream, arrived))
            else:
                self._transport.write(self._answer(found.stream))

    def _infer(self, stream: int, arrived: float) -> None:
        answer = self._answer(stream)
        self._worker.done(arrived)
        self._transport.write(answer)

    def _answer(self, stream: int) -> bytes:
        """Nothing where the stream was reset."""
        path = self._paths.pop(stream, "")
        message = self._answers.get(path)
        if message is None:
            return frames.frame(Kind.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, _UNKNOWN) if path else b""
        data = b"\0" + len(message).to_bytes(4, "big") + message
        begin, end = (frames.frame(Kind.HEADERS, frames.END_HEADERS | flags, stream, block) for flags, block in ((0, _BEGIN), (frames.END_STREAM, _END)))
        return begin + frames.frame(Kind.DATA, 0, stream, data) + end


async def run(log: Path, service_s: float, stalls: Stalls, ports: dict[str, int]) -> None:
    """Serve until standard input is closed, then write the log."""
    worker = Worker(service_s, stalls)
    loop = asyncio.get_running_loop()
    answers = grpc_answers()
    http = await loop.create_server(lambda: Http(worker), "127.0.0.1", ports["http"], backlog=1024, reuse_port=True)
    grpc = await loop.create_server(lambda: Grpc(worker, answers), "127.0.0.1", ports["grpc"], backlog=1024, reuse_port=True)
    print(json.dumps({name: server.sockets[0].getsockname()[1] for name, server in (("http", http), ("grpc", grpc))}), flush=True)
    closed = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(closed), sys.stdin)
    await closed.read()
    log.write_text(json.dumps(worker.log))


@dataclass
class KnownServer:
    """A running one. `log` is there once its block was left: arrival and end of each request, in the order in which they were answered."""

    urls: dict[str, str]
    log: list[tuple[float, float]]


@contextlib.contextmanager
def known_server(folder: Path, *, service_s: float, stalls: Stalls = (), processes: int = 1) -> Iterator[KnownServer]:
    """Run one while the block runs; its log is kept in `folder`. Of several processes each has a worker of its own, and the kernel deals connections out."""
    logs = [folder / f"known{number}.json" for number in range(processes)]
    ports = {"http": 0, "grpc": 0}
    with contextlib.ExitStack() as running:
        started = []
        for log in logs:
            process, ports = running.enter_context(_process([str(log), service_s, stalls, ports]))
            started.append(process)
        server = KnownServer({protocol: f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items()}, [])
        yield server
        for process in started:
            process.communicate(timeout=10)
        found = [(arrived, end) for log in logs for arrived, end in json.loads(log.read_text())]
        server.log += sorted(found, key=lambda times: times[1])


@contextlib.contextmanager
def _process(arguments: list[object]) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    """One process that serves, and its ports."""
    code = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'tests')]!r}; import known_server; known_server.main()"
    process = subprocess.Popen([sys.executable, "-c", code, json.dumps(arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """What runs in the process."""
    log, service_s, stalls, ports = json.loads(sys.argv[1])
    asyncio.run(run(Path(log), service_s, stalls, ports))
