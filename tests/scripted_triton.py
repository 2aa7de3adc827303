"""A server of HTTP that says what Triton says about one model, `m`, and what a test wants about its requests; keeps what it was sent."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

METADATA = {
    "name": "m",
    "versions": ["1"],
    "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
}
CONFIG = {"name": "m", "max_batch_size": 4, "input": [{"name": "x"}]}
ROW = np.ones((1, 2), np.float32)


@dataclass
class Asked:
    """One request for an inference: its headers with names in lower case, what its JSON says, and the connection that it came over."""

    headers: dict[str, str]
    said: dict[str, Any]
    connection: socket.socket

    def is_given_up(self, timeout_s: float = 10.0) -> bool:
        """Whether the client ends the connection without an answer, within some time."""
        self.connection.settimeout(timeout_s)
        try:
            return self.connection.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


Answer = tuple[int, dict[str, str], bytes]


def answer(rows: int = 1) -> Answer:
    """The answer of a model that says ones."""
    data = np.ones((rows, 2), np.float32).tobytes()
    output = {"name": "y", "datatype": "FP32", "shape": [rows, 2], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"model_name": "m", "model_version": "1", "outputs": [output]}).encode()
    return 200, {"Inference-Header-Content-Length": str(len(head))}, head + data


@dataclass
class Script:
    """What the server does.

    Attributes:
        infer: the answer to each request for an inference.
        ready: whether the model says that it is.
        present: whether the server has the model at all.
        instead: the answer to everything, as from what stands in front of a server; None for its own.
        config: fields of the model's config in place of the usual ones.
        datatype: of the model's input.
        loading: the answer to a request to load a model.
        asked: the requests for inferences so far.
    """

    infer: Callable[[Asked], Answer] = lambda asked: answer(asked.said["inputs"][0]["shape"][0])
    ready: bool = True
    present: bool = True
    instead: Answer | None = None
    config: dict[str, Any] = field(default_factory=dict)
    datatype: str = "FP32"
    loading: Answer = (200, {}, b"")
    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    @property
    def flags(self) -> list[tuple[bool, bool]]:
        """START and END of each request of a sequence that arrived."""
        return [(asked.said["parameters"]["sequence_start"], asked.said["parameters"]["sequence_end"]) for asked in self.asked]


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256  # many may come at once


@contextlib.contextmanager
def serve(tls: ssl.SSLContext | None = None):
    """A `Script` whose server runs."""
    script = Script()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._say(*_described(script, self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/infer"):
                headers = {name.lower(): value for name, value in self.headers.items()}
                if "content-encoding" in headers:
                    body = zlib.decompress(body, wbits=zlib.MAX_WBITS | 32)
                said = json.loads(body[: int(headers["inference-header-content-length"])])
                asked = Asked(headers, said, self.connection)
                script.asked.append(asked)
                self._say(*script.infer(asked))
            elif self.path.endswith("/load"):
                self._say(*script.loading)
            else:
                state = {"state": "READY" if script.ready else "UNAVAILABLE"}
                listed = [{"name": "m", "version": "1", **state}] if script.present else []
                self._say(200, {}, json.dumps(listed).encode())

        def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
            status, headers, body = script.instead or (status, headers, body)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # the client has gone
                super().handle()

        def log_message(self, *_) -> None:
            """Nothing is printed."""

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_port}"
    if tls is not None:
        # Not in accept(): a client that never shakes hands must not hold up the others.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        script.url = f"https://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _described(script: Script, path: str) -> Answer:
    if path.endswith("/config") and script.present:
        return 200, {}, json.dumps({**CONFIG, **script.config}).encode()
    if "/health/" in path:
        return 200, {}, b""
    if path.endswith("/ready"):
        return 200 if script.ready and script.present else 400, {}, b""
    if path == "/v2":
        return 200, {}, json.dumps({"name": "triton"}).encode()
    if not (script.ready and script.present):
        return 400, {}, json.dumps({"error": "the model is not ready"}).encode()
    inputs = [{**tensor, "datatype": script.datatype} for tensor in METADATA["inputs"]]
    return 200, {}, json.dumps({**METADATA, "inputs": inputs}).encode()
