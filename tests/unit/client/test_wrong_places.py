"""What a person is told where no Triton answers, or none over this protocol, or nothing at all: never a traceback, and within the time limit."""

import concurrent.futures
import contextlib
import socket
import threading
import time

import grpc
import pytest

from tritongen import Client, InferenceError

SILENT, TRICKLE = object(), object()


def reply(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Places:
    """Ports on which something listens that is no Triton."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def __call__(self, what) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(0.05)
        self._run(self._accept, listener, what)
        return listener.getsockname()[1]

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, function, *arguments) -> None:
        self._threads.append(threading.Thread(target=function, args=arguments))
        self._threads[-1].start()

    def _accept(self, listener: socket.socket, what) -> None:
        with listener:
            while not self._stop.is_set():
                with contextlib.suppress(TimeoutError):
                    self._run(self._answer, listener.accept()[0], what)

    def _answer(self, connection: socket.socket, what) -> None:
        connection.settimeout(1)
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            if what is SILENT:
                self._stop.wait()
            elif what is TRICKLE:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not self._stop.wait(0.05):
                    connection.sendall(b" ")
            else:
                connection.sendall(what)


@pytest.fixture
def place():
    places = Places()
    yield places
    places.close()


WRONG = {
    "banner": b"220 mail ESMTP\r\n",
    "metrics": reply(b"# HELP nv_inference_count\n"),
    "other-json": reply(b'{"ok": true}'),
    "list": reply(b"[1]"),
    "no-unicode": reply(b"\xff\xfe"),
    "page-404": reply(b"<html>not found</html>", "404 Not Found"),
    "json-404": reply(b'{"detail": "Not Found"}', "404 Not Found"),
    "empty-404": reply(b"", "404 Not Found"),
    "page-502": reply(b"<html>bad gateway</html>", "502 Bad Gateway"),
}


@pytest.mark.parametrize(("protocol", "usual"), [("http", "8000"), ("grpc", "8001")])
@pytest.mark.parametrize("what", WRONG)
def test_another_service_is_called_one(place, tritongen, protocol, usual, what):
    result = tritongen("infer", "m", "-u", f"{protocol}://127.0.0.1:{place(WRONG[what])}", "--timeout", 5)
    assert result.code == 3
    assert f"no Triton {'HTTP' if protocol == 'http' else 'gRPC'} endpoint" in result.err
    assert usual in result.err.split("what to do")[1]
    assert "Traceback" not in result.err


def test_a_connection_that_is_closed_at_once_is_said(place, tritongen):
    port = place(b"")
    assert "closed without an answer" in tritongen("infer", "m", "-u", f"http://127.0.0.1:{port}").err
    assert "no Triton gRPC endpoint" in tritongen("infer", "m", "-u", f"grpc://127.0.0.1:{port}").err


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_grpc_server_that_is_no_triton_is_said(tritongen, protocol):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            result = tritongen("infer", "m", "-u", f"{protocol}://127.0.0.1:{port}", "--timeout", 5)
        finally:
            server.stop(0).wait()
    assert result.code == 3
    assert "what answers there is no Triton" in result.err


@pytest.mark.parametrize(("protocol", "what"), [("http", SILENT), ("http", TRICKLE), ("https", SILENT), ("grpc", SILENT), ("grpcs", SILENT)])
def test_a_server_that_never_answers_is_left_when_the_time_is_over(place, tritongen, protocol, what):
    port = place(what)
    start = time.monotonic()
    result = tritongen("infer", "m", "-u", f"{protocol}://127.0.0.1:{port}", "--timeout", 0.5)
    # Far below the library's own 60 seconds; wide enough for a busy machine.
    assert time.monotonic() - start < 10
    assert result.code == 3
    assert "no answer within 0.5 s" in result.err


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_client_that_timed_out_can_be_used_again(place, protocol):
    with Client(f"{protocol}://127.0.0.1:{place(SILENT)}", deadline_s=0.3) as client:
        for _ in range(2):
            with pytest.raises(InferenceError, match="no answer within"):
                client.meta("m")
        assert client.ready() is False


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_closed_client_says_so(protocol):
    client = Client(f"{protocol}://127.0.0.1:1")
    client.close()
    client.close()
    for call in (lambda: client.meta("m"), lambda: client.infer("m", {}), client.ready):
        with pytest.raises(InferenceError, match="is closed"):
            call()


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'{"live": true}'])
def test_a_page_is_no_triton_that_lives(place, body):
    with Client(f"http://127.0.0.1:{place(reply(body))}", deadline_s=5) as client:
        assert (client.live(), client.ready(), client.ready("m")) == (False, False, False)


def test_a_model_of_another_server_is_said_to_be_unreadable(place):
    body = b'{"name": "m", "inputs": [{"name": "x", "datatype": "FP8", "shape": [1]}], "outputs": []}'
    with Client(f"http://127.0.0.1:{place(reply(body))}", deadline_s=5) as client, pytest.raises(InferenceError, match="'x' has the datatype 'FP8'"):
        client.infer("m", x=1)
