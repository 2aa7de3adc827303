"""Several servers, of which some lack the model or hang; models that somebody else reloads; and how many requests are under way at once."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest
import scripted_grpc
import scripted_triton
from scripted_triton import ROW

import tritongen
from tritongen import errors
from tritongen.client import inference
from tritongen.client.metadata import model_meta
from tritongen.client.policy import Balancer

HANG_S = 60.0


@pytest.fixture
def other():
    with scripted_triton.serve() as script:
        yield script


@pytest.fixture
def hole():
    """A port whose connections are made and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_live_servers_share_the_requests(triton, other, run):
    async def use(client):
        for _ in range(10):
            await client.infer("m", x=ROW)

    run(use, [triton.url, other.url])
    assert len(triton.asked) == len(other.asked) == 5


@pytest.mark.parametrize("lack", [{"ready": False}, {"present": False}])
def test_a_server_that_lacks_the_model_costs_no_request(triton, other, run, lack):
    async def use(client):
        for _ in range(6):
            await client.infer("m", x=ROW)
        # Also where the model went after it was described.
        for name, value in lack.items():
            setattr(triton, name, not value)
            setattr(other, name, value)
        other.infer = lambda asked: (400, {}, b'{"error": "no"}')
        for _ in range(6):
            await client.infer("m", x=ROW)

    for name, value in lack.items():
        setattr(triton, name, value)
    run(use, [triton.url, other.url])


def test_a_sequence_goes_to_a_server_that_has_the_model(triton, other, run):
    triton.ready = False

    async def use(client):
        for _ in range(4):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW)
                await sequence.infer(x=ROW, end=True)

    run(use, [triton.url, other.url])
    assert other.flags == [(True, False), (False, True)] * 4


def test_each_server_is_asked_however_few_retries_there_are(triton, other, run):
    triton.ready = False

    async def use(client):
        for _ in range(4):
            await client.infer("m", x=ROW)

    run(use, [triton.url, triton.url, triton.url, other.url], retries=0)


def test_a_server_gets_requests_again_once_a_model_was_loaded_there(triton, other, run):
    async def use(client):
        triton.ready = False
        for _ in range(2):
            await client.infer("m", x=ROW)
        triton.ready = True
        await client.load("m")
        for _ in range(4):
            await client.infer("m", x=ROW)

    run(use, [triton.url, other.url])
    assert (len(triton.asked), len(other.asked)) == (2, 4)


def test_a_proxy_that_has_no_server_behind_it_is_left_out(triton, other, run):
    async def use(client):
        for _ in range(2):
            await client.infer("m", x=ROW)
        triton.instead = (503, {}, b"no healthy upstream")
        failed = 0
        for _ in range(10):
            try:
                await client.infer("m", x=ROW)
            except errors.Unavailable:  # it may have been executed
                failed += 1
        assert failed <= 1
        for _ in range(4):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW, end=True)

    run(use, [triton.url, other.url])


def test_a_server_that_hangs_costs_sequences_one_probe(other, run, hole):
    async def use(client):
        await client.meta("m")
        client._core.balancer.trusted[0] = True  # as if it had answered until now
        start = time.monotonic()
        for _ in range(30):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW, end=True, deadline_s=600)
        assert time.monotonic() - start < HANG_S / 2, "one probe of two seconds, and not one for each"

    run(use, [f"http://127.0.0.1:{hole}", other.url], deadline_s=600)


def test_an_outage_of_any_length_is_a_lost_connection(run):
    """Two thousand times in a row: rests that double are bounded before they are numbers that nothing holds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = listener.getsockname()[1]

    async def use(client):
        for _ in range(2_000):
            client._core.balancer._resting_until[0] = 0.0  # as if its rest were over
            client._core.balancer.lost(0)
        with pytest.raises(errors.ConnectionFailed):
            await client.infer("m", x=ROW)
        assert not await client.live()
        assert client._core.balancer._resting_until[0] < time.monotonic() + 31

    run(use, f"http://127.0.0.1:{gone}", retries=0)


def test_what_was_under_way_when_a_server_was_lost_makes_its_rest_no_longer():
    balancer = Balancer(2)
    for _ in range(24):
        balancer.lost(0)
    assert balancer._resting_until[0] <= time.monotonic() + 1.0


def test_a_model_that_no_server_has_is_not_found(triton, other, run):
    triton.present = other.present = False

    async def use(client):
        with pytest.raises(errors.ModelNotFound, match="no model 'm'"):
            await client.infer("m", x=ROW)

    run(use, [triton.url, other.url])


@pytest.mark.parametrize("place", [0, 1])
def test_health_is_known_soon_where_one_server_of_several_hangs(triton, run, hole, place):
    urls = [triton.url, triton.url]
    urls[place] = f"http://127.0.0.1:{hole}"

    async def use(client):
        start = time.monotonic()
        assert await client.ready(deadline_s=600)
        assert await client.health(deadline_s=600) == (True, True)
        await client.wait_ready("m", deadline_s=600)
        assert time.monotonic() - start < HANG_S

    run(use, urls)


def limited(most):
    """A model that refuses more rows than so many at once."""

    def infer(asked):
        rows = asked.said["inputs"][0]["shape"][0]
        return scripted_triton.answer(rows) if rows <= most else (400, {}, b'{"error": "too many rows"}')

    return infer


def test_parts_that_a_reloaded_model_refuses_are_cut_anew_and_the_others_are_not_sent_again(triton, run):
    async def use(client):
        await client.meta("m")
        triton.config, triton.infer = {"max_batch_size": 3}, limited(3)  # somebody else loads it with a smaller limit
        return await client.infer("m", x=np.ones((6, 2), np.float32))

    assert run(use, triton.url)["y"].shape == (6, 2)
    assert sorted(asked.said["inputs"][0]["shape"][0] for asked in triton.asked) == [1, 2, 3, 4]


def test_parts_that_a_reloaded_model_takes_in_no_form_are_one_partial_failure(triton, run):
    async def use(client):
        await client.meta("m")
        triton.datatype, triton.infer = "INT64", limited(2)
        with pytest.raises(errors.PartialFailure, match="rows 0 to 3") as error:
            await client.infer("m", x=np.ones((6, 2), np.float32))
        return error.value

    assert list(run(use, triton.url).failures) == [(0, 4)]


def test_a_model_that_takes_more_by_now_gets_more_at_once(triton, run, monkeypatch):
    async def use(client):
        await client.meta("m")
        triton.config = {"max_batch_size": 16}
        await client.infer("m", x=np.ones((8, 2), np.float32))
        monkeypatch.setattr(inference, "_CUT_FRESH_S", 0.0)
        await client.infer("m", x=np.ones((8, 2), np.float32))

    run(use, triton.url)
    assert [asked.said["inputs"][0]["shape"][0] for asked in triton.asked] == [4, 4, 8]


def test_parts_leave_one_another_room_in_the_models_queue(triton, run):
    triton.config = {"dynamic_batching": {"default_queue_policy": {"max_queue_size": 2}}}
    watch = Watch()
    triton.infer = watch.infer

    async def use(client):
        await client.infer("m", x=np.ones((32, 2), np.float32))

    run(use, triton.url)
    assert watch.most <= 2


class Watch:
    """Answers slowly, and counts the requests that are under way at once."""

    def __init__(self) -> None:
        self.most = self._now = 0
        self._lock = threading.Lock()

    def infer(self, asked):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.02)
        with self._lock:
            self._now -= 1
        return scripted_triton.answer(asked.said["inputs"][0]["shape"][0])


def test_many_requests_that_are_cut_share_one_window(triton, run):
    watch = Watch()
    triton.infer = watch.infer

    async def use(client):
        results = [result async for result in client.infer_many("m", [{"x": np.ones((16, 2), np.float32)}] * 8, window=4)]
        assert [result["y"].shape for result in results] == [(16, 2)] * 8

    run(use, triton.url, window=4)
    assert watch.most <= 4


def test_a_request_that_is_sent_again_may_wait_in_the_queue_no_longer_than_is_left(run):
    limits = []

    def refuse_once(request, context):
        limits.append(request.parameters["timeout"].int64_param)
        if len(limits) == 1:
            time.sleep(0.5)
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return scripted_grpc.answer(request, context)

    async def use(client):
        await client.infer("m", x=ROW, idempotent=True, deadline_s=50)

    with scripted_grpc.serve(refuse_once, queue_timeout_us=100_000_000) as server:
        run(use, server.url)
    assert limits[0] <= 50_000_000
    assert limits[1] <= limits[0] - 500_000


LEAVING = """
import sys
import numpy as np
import tritongen

client = tritongen.Client(sys.argv[1])
results = client.infer_many("m", [{"x": np.ones((rows, 2), np.float32)} for rows in (1, 2, 2, 2, 2, 2)], window=4)
next(results)
print("over")
"""


def test_requests_that_nobody_waits_for_keep_no_process_alive(triton, tmp_path):
    over = threading.Event()

    def first_only(asked):
        rows = asked.said["inputs"][0]["shape"][0]
        if rows > 1:
            over.wait(HANG_S)
        return scripted_triton.answer(rows)

    triton.infer = first_only
    root = Path(__file__).parents[3]
    try:
        done = subprocess.run(
            [sys.executable, "-c", LEAVING, triton.url],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=HANG_S - 5, check=True,
        )  # fmt: skip
    finally:
        over.set()
    assert done.stdout == "over\n"


def test_a_request_that_found_no_connection_in_time_was_not_sent(run):
    """The system takes no more connections for a listener whose queue is full: it lets those who ask wait."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(address)
            time.sleep(0.2)

            async def use(client):
                with pytest.raises(errors.DeadlineExceeded) as error:
                    await client.meta("m", deadline_s=0.5)
                assert not error.value.sent

            run(use, f"http://127.0.0.1:{address[1]}")
        finally:
            for one in waiting:
                one.close()


@pytest.mark.parametrize("rows", [1, 200_000])
def test_a_compressed_request_says_so_and_holds_what_it_held(triton, run, rows):
    triton.config = {"max_batch_size": 1_000_000}

    async def use(client):
        await client.infer("m", x=np.ones((rows, 2), np.float32))

    run(use, triton.url, compression="gzip")
    (asked,) = triton.asked
    assert asked.headers["content-encoding"] == "gzip"
    assert asked.said["inputs"][0]["shape"] == [rows, 2]


def test_an_answer_to_another_request_is_no_answer(triton, run):
    def swapped(asked):
        status, headers, body = scripted_triton.answer()
        said = body[: int(headers["Inference-Header-Content-Length"])].replace(b"{", b'{"id": "yours", ', 1)
        return status, {"Inference-Header-Content-Length": str(len(said))}, said + body[int(headers["Inference-Header-Content-Length"]) :]

    triton.infer = swapped

    async def use(client):
        await client.infer("m", x=ROW, request_id="yours")
        with pytest.raises(errors.ServerError, match="'mine' with the answer to 'yours'"):
            await client.infer("m", x=ROW, request_id="mine")

    run(use, triton.url)


def test_a_model_takes_the_kind_of_requests_that_its_config_says(triton, run):
    async def use(client):
        triton.config = {"sequence_batching": {}}
        with pytest.raises(errors.InvalidInput, match="requests of a sequence only"):
            await client.infer("m", x=ROW)
        triton.config = {"backend": "onnxruntime"}
        client._core.forget("m")
        async with client.sequence("m") as sequence:
            with pytest.raises(errors.InvalidInput, match="keeps no state"):
                await sequence.infer(x=ROW)

    run(use, triton.url)
    assert triton.asked == []


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"backend": "onnxruntime"}, False),
        ({"platform": "tensorrt_plan"}, False),
        ({"backend": "tensorrt", "sequence_batching": {}}, True),
        ({"backend": "python"}, True),
        ({"platform": "ensemble", "ensemble_scheduling": {}}, True),
    ],
)
def test_who_may_know_of_sequences(config, wanted):
    assert model_meta({"name": "m", "inputs": [], "outputs": []}, config).may_know_sequences is wanted


def test_leaving_a_client_with_requests_of_many_in_its_threads_is_quiet(triton, caplog):
    """urllib3 warns of each connection that it does not keep."""
    watch = Watch()
    triton.infer = watch.infer
    with tritongen.Client(triton.url) as client:
        assert len(list(client.infer_many("m", [{"x": ROW}] * 200, window=100))) == 200
    assert "pool is full" not in caplog.text


@pytest.fixture
def gone():
    """A port of this machine where nothing listens yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize("place", [0, 1])
def test_whichever_server_comes_back_first_is_used_at_once(triton, run, gone, place):
    urls = [f"http://127.0.0.1:{gone}", f"http://127.0.0.1:{gone}"]
    urls[place] = triton.url

    async def use(client):
        for index in range(2):  # both were lost, and the other one rests for less long
            client._core.balancer._rests[index] = 4 - (index == 1 - place)
            client._core.balancer.lost(index)
        assert await client.ready("m")
        assert await client.live()
        for index in range(2):
            client._core.balancer.lost(index)
        await client.infer("m", x=ROW)

    run(use, urls)


def test_a_page_that_says_yes_to_everything_is_no_triton(triton, other, run):
    """As Triton's own page of metrics does."""
    other.instead = (200, {}, b"")

    async def alone(client):
        assert not await client.live()
        assert not await client.ready("nope")
        with pytest.raises(errors.DeadlineExceeded, match="no Triton"):
            await client.wait_ready("m", deadline_s=0.5)
        with pytest.raises(errors.NotTriton, match="no Triton"):
            await client.infer("m", x=ROW)

    async def beside(client):
        for _ in range(6):
            await client.infer("m", x=ROW)

    run(alone, other.url)
    run(beside, [other.url, triton.url])


def test_a_grpc_server_that_starts_after_its_client_is_no_stranger(run, gone):
    async def use(client):
        with pytest.raises(errors.ConnectionFailed) as error:
            await client.infer("m", x=ROW)
        assert not isinstance(error.value, errors.NotTriton)
        with scripted_grpc.serve(port=gone):
            end = time.monotonic() + HANG_S
            while True:
                try:
                    await client.infer("m", x=ROW)
                except errors.NotTriton:
                    raise
                except errors.ConnectionFailed:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)
                else:
                    break

    run(use, f"grpc://127.0.0.1:{gone}", retries=0)
