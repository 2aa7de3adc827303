"""What the guide promises about retries, several servers, deadlines, sequences and closing, tried where it would hurt."""

import asyncio
import concurrent.futures
import contextlib
import socket
import threading
import time

import contract
import numpy as np
import pytest
from contract import rows

import tritongen
from tritongen import errors

pytestmark = pytest.mark.server
BUSY_S = 20.0
"""What a call may take beyond its deadline on a machine that is busy with other things; one that does not keep it takes a minute, or for ever."""


def seconds(value, count=1):
    return np.full((count, 1), value, np.float32)


@pytest.fixture
def hole():
    """A port whose connections are made and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


class Answering:
    """A server of HTTP that answers every request with the same bytes, after some time, and keeps what it was sent."""

    def __init__(self, answer: bytes, delay_s: float = 0.0) -> None:
        self.answer, self.delay_s = answer, delay_s
        self.heard: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(60)
        with connection, contextlib.suppress(OSError):
            if heard := connection.recv(1 << 16):
                self.heard.append(heard)
                time.sleep(self.delay_s)
                connection.sendall(self.answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def answering():
    made = []

    def make(answer, delay_s=0.0):
        made.append(Answering(answer, delay_s))
        return made[-1]

    yield make
    for server in made:
        server.close()


def test_what_may_have_been_executed_is_sent_once(client, repository):
    path = repository / "busy" / "worked"
    before = len(path.read_text()) if path.exists() else 0
    with pytest.raises(errors.Unavailable):
        client.infer("busy", x=np.ones((1, 1), np.float32))
    assert len(path.read_text()) == before + 1
    with pytest.raises(errors.Unavailable):
        client.infer("busy", x=np.ones((1, 1), np.float32), idempotent=True)
    assert len(path.read_text()) == before + 1 + 4


def test_outputs_that_are_no_batch_are_never_joined(client):
    x = np.arange(6, dtype=np.float32).reshape(6, 1)
    with pytest.raises(errors.InferenceError, match="output 'total' has the shape"):
        client.infer("totalling", x=x)
    assert client.infer("totalling", x=x, outputs=["y"])["y"].tolist() == x.tolist()
    assert client.infer("totalling", x=x[:4])["total"].tolist() == [[6.0]]


def test_the_end_of_a_sequence_is_sent_as_its_requests_were(client):
    for _ in range(3):
        with client.sequence("summing") as sequence:
            answer = sequence.infer(x=np.array([3], np.int32), add_batch_axis=True)
        # Each sequence finds the ones before it ended.
        assert (int(answer["sum"][0, 0]), int(answer["open"][0, 0])) == (3, 1)


def test_one_server_that_never_answers_does_not_break_the_others(kind, url, hole):
    bad = f"{url.split('://')[0]}://127.0.0.1:{hole}"
    with contract.make_client(kind, [bad, url], deadline_s=6) as client:
        client._core.balancer._rests[0] = 4  # it rests for long when it is lost, so that it does until the end of this test
        for _ in range(6):
            assert client.infer("linear", x=rows(1))["y"].shape == (1, 16)
        assert client._core.balancer._rests[0] == 5, "it was asked once, and no more while it rests"
        assert [client.ready("linear") for _ in range(4)] == [True] * 4


def test_a_server_that_is_gone_costs_no_request_however_long_it_is_gone(kind, url):
    gone = f"{url.split('://')[0]}://127.0.0.1:1"
    with contract.make_client(kind, [gone, url], retries=1) as client:
        for _ in range(25):
            client._core.balancer._resting_until[0] = 0.0  # its rest is over each time
            assert client.infer("linear", x=rows(1))["y"].shape == (1, 16)
        assert client.live()
        if kind.startswith("grpc"):
            assert [len(list(client.stream("counting", count=np.array([2], np.int32)))) for _ in range(4)] == [2] * 4


def test_loading_reaches_every_server(kind, url, answering):
    if kind.startswith("grpc"):
        with contract.make_client(kind, [url, url]) as client:
            client.load("linear")
            assert client.ready("linear")
        return
    others = [answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") for _ in range(2)]
    with contract.make_client(kind, [other.url for other in others]) as client:
        client.load("linear")
    assert [len(other.heard) for other in others] == [1, 1]


def test_a_split_request_waits_for_no_other_call(kind, url, gate):
    with contract.make_client(kind, url, window=2) as client:
        client.meta("slow")
        client.meta("linear")
        if kind.endswith("aio"):
            return  # tasks share no threads
        with gate("waiting") as waiting, concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(client.infer, "waiting", seconds=np.repeat(contract.UNTIL_OPENED, 3, axis=0), deadline_s=120)
            waiting.wait_begun()
            assert client.infer("linear", x=rows(40), deadline_s=60)["y"].shape == (40, 16)
            assert not other.done()
            waiting.open()
            assert other.result()["slept"].shape == (3, 1)


def test_a_deadline_is_kept(kind, hole):
    with contract.make_client(kind, f"{kind.split('-')[0]}://127.0.0.1:{hole}") as client:
        start = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded):
            client.meta("linear", deadline_s=0.3)
        assert time.monotonic() - start < 0.3 + BUSY_S


def test_a_long_deadline_is_kept_to_the_millisecond(hole):
    """aiohttp rounds limits above five seconds up, where it is not told otherwise: seen in the timers that it sets."""

    async def timers():
        loop, found = asyncio.get_running_loop(), []
        set_timer = loop.call_at
        loop.call_at = lambda when, *rest, **options: found.append(when - loop.time()) or set_timer(when, *rest, **options)
        async with tritongen.AsyncClient(f"http://127.0.0.1:{hole}") as client:
            asking = asyncio.ensure_future(client.meta("linear", deadline_s=5.2))
            while not any(seconds > 1 for seconds in found):
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        return found

    assert max(asyncio.run(timers())) <= 5.2


def test_waiting_for_readiness_ends_in_time_and_says_why(kind, url):
    with contract.make_client(kind, f"{url.split('://')[0]}://127.0.0.1:1") as client:
        start = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded, match=r"not ready after 0\.5 s: .*127\.0\.0\.1:1: "):
            client.wait_ready(deadline_s=0.5)
        assert time.monotonic() - start < 0.5 + BUSY_S


def test_a_request_that_does_not_fit_needs_no_server(kind, url, server):
    import os
    import signal

    with contract.make_client(kind, url) as client:
        client.infer("linear", x=rows(1))
        time.sleep(1.1)  # old enough to be asked for again
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(errors.InvalidInput, match="got int64"):
                client.infer("linear", x=np.ones((1, 64), np.int64), deadline_s=0.5)
        finally:
            os.kill(server.pid, signal.SIGCONT)


HTML = b"HTTP/1.1 401 Unauthorized\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"


@pytest.mark.parametrize("kind", ["http", "http-aio"])
def test_a_proxy_that_wants_credentials_is_no_stranger(kind, answering):
    proxy = answering(HTML)
    with contract.make_client(kind, proxy.url) as client:
        with pytest.raises(errors.AccessDenied):
            client.infer("linear", x=rows(1), headers={"authorization": "Bearer mine"})
        assert b"bearer mine" in proxy.heard[0].lower()
        with pytest.raises(errors.AccessDenied):
            client.wait_ready(deadline_s=60)


@pytest.mark.parametrize("kind", ["http", "http-aio"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nshort", errors.ConnectionFailed),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n64\r\nshort", errors.ConnectionFailed),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnogzi", errors.NotTriton),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>", errors.InferenceError),
    ],
)
def test_answers_that_are_cut_or_garbled_are_told_apart(kind, answering, answer, expected):
    proxy = answering(answer)
    with contract.make_client(kind, proxy.url, retries=0) as client, pytest.raises(expected) as error:
        client.meta("linear", deadline_s=60)
    assert not isinstance(error.value, errors.DeadlineExceeded)


@pytest.mark.parametrize("kind", ["http", "http-aio"])
def test_an_upload_that_nobody_reads_ends_with_the_deadline(kind):
    listener = socket.create_server(("127.0.0.1", 0))
    with contract.make_client(kind, f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
        start = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded):
            client.load("linear", config="{}", files={"1/model.onnx": bytes(30_000_000)}, deadline_s=1)
        assert time.monotonic() - start < 1 + BUSY_S
        listener.close()  # which resets the connection, so that what was not sent is let go
        assert not client.live(deadline_s=0.5)


def test_a_model_that_fails_to_load_is_loaded_once(client, repository):
    folder = repository / "broken"
    if not folder.exists():
        (folder / "1").mkdir(parents=True)
        code = "open(__file__ + '.tries', 'a').write('x')\nraise RuntimeError('never')\n"
        (folder / "1" / "model.py").write_text(code)
        (folder / "config.pbtxt").write_text(
            'backend: "python" max_batch_size: 0\n' + contract.CPU + contract.models.config("x FP32 [1]", "y FP32 [1]", extra="").split("\n", 2)[2]
        )
    tries = folder / "1" / "model.py.tries"
    before = len(tries.read_text()) if tries.exists() else 0
    with pytest.raises(errors.TritongenError):
        client.load("broken", deadline_s=60)
    assert len(tries.read_text()) == before + 1


def test_closing_under_a_request_ends_it_with_one_error(kind, url, gate):
    with gate("waiting") as waiting:
        if kind.endswith("aio"):

            async def close_under_way():
                client = tritongen.AsyncClient(url)
                task = asyncio.ensure_future(client.infer("waiting", seconds=contract.UNTIL_OPENED, deadline_s=60))
                await asyncio.to_thread(waiting.wait_begun)
                await client.close()
                with pytest.raises(errors.InferenceError):
                    await task

            asyncio.run(close_under_way())
            return
        client = tritongen.Client(url)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(client.infer, "waiting", seconds=contract.UNTIL_OPENED, deadline_s=60)
            waiting.wait_begun()
            client.close()
            waiting.open()
            # HTTP's answer may still come: its connection was in use.
            assert isinstance(other.exception(), errors.InferenceError | None)
    with pytest.raises(errors.InferenceError, match="is closed"):
        list(client.infer_many("linear", [{"x": rows(1)}]))


def test_results_of_a_slow_source_are_not_withheld(client, kind):
    """The first one comes before so many were given as may be under way."""
    given, enough, window = [], [], 64

    def source():
        while not enough and len(given) < window:
            given.append({"x": rows(1)})
            yield given[-1]
            time.sleep(0.05)

    async def slow_source():
        for values in source():
            yield values
            await asyncio.sleep(0.05)

    results = client.infer_many("linear", slow_source() if kind.endswith("aio") else source(), window=window)
    next(results)
    assert len(given) < window
    enough.append(True)
    assert len(list(results)) == len(given) - 1


@pytest.mark.parametrize("window", [0, -1, 1.5, True])
def test_a_window_that_is_none_is_refused(kind, url, window):
    with pytest.raises(errors.InputError, match="window"):
        contract.make_client(kind, url, window=window)


def test_a_client_of_another_event_loop_says_so(server):
    client = asyncio.run(use(server.grpc_url))
    with pytest.raises(errors.InferenceError, match="another event loop"):
        asyncio.run(client.live())


async def use(url):
    client = tritongen.AsyncClient(url)
    assert await client.live()
    await client.close()
    return client
