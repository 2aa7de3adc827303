"""Requests on their way: cut anew where somebody else reloaded the model, no more at once than there is room for, and of the kind that the model takes."""

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

HANG_S = 60.0


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
