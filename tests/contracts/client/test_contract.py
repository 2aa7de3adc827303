"""Every public method of the clients, over gRPC and HTTP, blocking and for asyncio, on a real Triton."""

import asyncio
import concurrent.futures
import contextlib
import inspect
import json
import threading
import time
from functools import partial

import contract
import ml_dtypes
import models
import numpy as np
import pytest
import spans
from contract import rows
from opentelemetry.trace import StatusCode

import tritongen
from tritongen import errors
from tritongen.client import aio, core, policy, sync

pytestmark = pytest.mark.server

FULL = 1
"""Requests that wait for model `slow` when no more may."""


def seconds(value: float) -> np.ndarray:
    return np.full((1, 1), value, np.float32)


def test_the_server_describes_itself(client):
    assert client.live()
    assert client.ready()
    assert client.health() == (True, True)
    assert client.ready("linear")
    assert not client.ready("nothing")
    assert client.metadata()["name"] == "triton"
    assert client.config("linear")["max_batch_size"] == 8
    assert [item["name"] for item in client.statistics("linear")] == ["linear"]
    assert {item["name"] for item in client.statistics()} >= {"linear", "slow"}
    assert {item["name"] for item in client.repository_index()} >= {"linear", "slow"}
    meta = client.meta("linear")
    assert (meta.version, meta.max_batch_size, meta.inputs[0].shape) == ("1", 8, (-1, 64))
    client.wait_ready(deadline_s=60)
    client.wait_ready("linear", "1", deadline_s=60)


def test_an_answer_is_a_mapping_with_its_circumstances(client):
    result = client.infer("two", x=np.ones((3, 4), np.float32), request_id="r1")
    assert sorted(result) == ["y", "z"]
    assert result["z"].tolist() == [[-1.0] * 4] * 3
    assert (result.model, result.version, result.request_id) == ("two", "1", "r1")
    assert 0 < result.timings.wait <= result.timings.total
    assert result.timings.attempts == 1
    assert result.raw is not None
    with pytest.raises(KeyError, match="it has 'y', 'z'"):
        result["q"]


def test_only_the_outputs_that_are_asked_for_come_back(client):
    assert list(client.infer("two", {"x": np.ones((1, 4), np.float32)}, outputs=["z"], version="1")) == ["z"]


def test_text_bf16_and_scalars_travel_exactly(client):
    assert client.infer("strings", x=[["a\0", ""], [b"\xff\0\0", "é"]])["y"].tolist() == [[b"a\0", b""], [b"\xff\0\0", "é".encode()]]
    halves = np.array([[1, 2.5, -3]], ml_dtypes.bfloat16)
    answer = client.infer("bf16", x=halves)["y"]
    assert answer.dtype == ml_dtypes.bfloat16
    assert answer.astype(np.float32).tolist() == [[2, 5, -6]]
    scalar = client.infer("scalar", t=3, x=np.array([1, 2], np.float32))
    assert (scalar["y"].tolist(), scalar["square"].tolist()) == ([3, 6], [9])


def test_arrays_in_another_order_of_memory_or_bytes_are_sent_right(client):
    x = rows(4)
    want = client.infer("linear", x=x)["y"]
    for same in (np.asfortranarray(x), x.astype(">f4"), np.repeat(x, 2, axis=0)[::2], x[::-1][::-1]):
        assert np.array_equal(client.infer("linear", x=same)["y"], want)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "input 'x' is missing"),
        ({"x": rows(1), "y": 1}, "no input 'y'"),
        ({"x": np.zeros((1, 64))}, "must be FP32 (float32), got float64"),
        ({"x": np.zeros((1, 64), np.float16)}, "cast='safe' converts it"),
        ({"x": rows(1)[:, :3]}, "must have the shape [-1, 64] (-1: any size), got [1, 3]"),
        ({"x": rows(1)[0]}, "got [64]"),
        ({"x": rows(0)}, "the batch has no rows"),
        ({"x": np.array([[object()] * 64])}, "expected numbers"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_sent(client, values, words):
    with pytest.raises(errors.InvalidInput) as error:
        client.infer("linear", values)
    assert words in str(error.value)
    assert error.value.status == ""


def test_objects_that_are_no_text_are_refused(client):
    with pytest.raises(errors.InvalidInput, match="expected text, got int 1"):
        client.infer("strings", x=np.array([[1, 2]], object))


def test_an_output_that_is_not_there_is_refused(client):
    with pytest.raises(errors.InvalidInput, match="no output 'q'; its outputs are 'y', 'z'"):
        client.infer("two", x=np.ones((1, 4), np.float32), outputs=["q"])


def test_conversions_are_made_by_choice(client):
    x = rows(1).astype(np.float16)
    assert np.array_equal(client.infer("linear", x=x, cast="safe")["y"], client.infer("linear", x=x.astype(np.float32))["y"])
    assert client.infer("linear", x=rows(1)[0], add_batch_axis=True)["y"].shape == (1, 16)
    with pytest.raises(errors.InvalidInput, match="got float64"):
        client.infer("linear", x=np.zeros((1, 64)), cast="safe")


def test_a_long_batch_is_cut_and_equals_one_call(client):
    x = rows(29)
    result = client.infer("linear", x=x)
    assert result["y"].shape == (29, 16)
    assert result.timings.attempts == 4
    singly = np.concatenate([client.infer("linear", x=row[np.newaxis])["y"] for row in x])
    np.testing.assert_allclose(result["y"], singly, rtol=1e-5, atol=1e-5)


def test_parts_that_fail_are_named_with_their_rows(client):
    x = np.ones((5, 2), np.float32)
    x[3] = -1
    with pytest.raises(errors.PartialFailure, match="1 of 3 parts failed, with the rows 2 to 3") as error:
        client.infer("failing", x=x)
    ((place, cause),) = error.value.failures.items()
    assert place == (2, 4)
    assert isinstance(cause, errors.ServerError)
    with pytest.raises(errors.ServerError, match="this row is negative"):
        client.infer("failing", x=-x[:1])


def test_models_that_are_not_there_are_told_from_those_that_do_not_answer(client):
    with pytest.raises(errors.ModelNotFound, match="no model 'linaer'") as error:
        client.infer("linaer", x=rows(1))
    assert "did you mean 'linear'" in error.value.hint
    with pytest.raises(errors.ModelNotFound, match="no version 7"):
        client.infer("linear", x=rows(1), version="7")
    for ask in (client.model, client.load):
        with pytest.raises(errors.ModelNotFound, match=r"no model 'linaer'; it has 'bf16', .*'linear'"):
            ask("linaer")


def test_a_model_that_was_unloaded_is_not_ready_and_comes_back(client):
    client.unload("two")
    contract.eventually(lambda: not client.ready("two"), "the model is unloaded")
    with pytest.raises(errors.ModelNotReady, match="not loaded"):
        client.infer("two", x=np.ones((1, 4), np.float32), deadline_s=60)
    with pytest.raises(errors.DeadlineExceeded, match=r"not ready after 0\.3 s"):
        client.wait_ready("two", deadline_s=0.3)
    client.load("two")
    assert client.infer("two", x=np.ones((1, 4), np.float32))["z"].shape == (1, 4)


def test_a_model_that_somebody_else_changed_is_described_again(client, kind, url):
    bound = client.model("linear")
    assert bound.infer(x=rows(9))["y"].shape == (9, 16)
    config = dict(client.config("linear"))
    config["max_batch_size"] = 3
    with contract.make_client(kind, url) as other:
        other.load("linear", config=json.dumps(config), files={"1/model.onnx": models.linear().SerializeToString()})
        try:
            # This client still knows the old model: it cuts eight rows and one, and the new model refuses the eight.
            assert bound.infer(x=rows(9))["y"].shape == (9, 16)
            assert bound.meta().max_batch_size == 3
        finally:
            other.load("linear")
            other.wait_ready("linear", deadline_s=60)


def test_a_model_is_unloaded_with_those_that_it_is_made_of(client):
    assert client.infer("chain", x=np.ones((1, 4), np.float32))["z"].shape == (1, 4)
    client.unload("chain", dependents=True)
    try:
        contract.eventually(lambda: not client.ready("link"), "what it is made of is unloaded")
        listed = {item["name"] for item in client.repository_index(ready=True)}
        assert {"linear", "slow"} <= listed
        assert not {"chain", "link"} & listed
    finally:
        client.load("chain")
    assert "chain" in {item["name"] for item in client.repository_index(ready=True)}


def test_results_of_many_requests_come_in_order_and_are_read_no_further_ahead(client):
    read = []

    def requests():
        for number in range(12):
            read.append(number)
            yield {"x": np.full((1, 4), number, np.float32)}

    results = client.infer_many("two", requests(), window=3)
    assert next(results)["z"][0, 0] == 0
    assert len(read) <= 4
    assert [int(-result["z"][0, 0]) for result in results] == list(range(1, 12))
    bound = client.model("two")
    assert len(list(bound.infer_many([{"x": np.zeros((1, 4), np.float32)}] * 3))) == 3


def test_an_error_in_many_requests_ends_them(client):
    """One after another: with another under way, which is cancelled, this Triton may end (known issue `crash-when-cancelled`)."""
    read = []

    def values():
        for sign in (1, 1, -1, 1):
            read.append(sign)
            yield {"x": np.full((1, 2), sign, np.float32)}

    results = client.infer_many("failing", values(), window=1)
    assert [len(next(results)["y"]), len(next(results)["y"])] == [1, 1]
    with pytest.raises(errors.ServerError):
        next(results)
    assert read == [1, 1, -1]


def test_a_decoupled_model_streams_over_grpc(client, kind):
    count = np.array([4], np.int32)
    with pytest.raises(errors.Unsupported, match="decoupled"):
        client.infer("counting", count=count)
    if kind.startswith("http"):
        with pytest.raises(errors.Unsupported, match="over gRPC only"):
            list(client.stream("counting", count=count))
        return
    assert [int(result["number"][0]) for result in client.stream("counting", count=count)] == [0, 1, 2, 3]
    assert [int(result["number"][0]) for result in client.model("counting").stream(count=count)] == [0, 1, 2, 3]
    assert list(client.stream("counting", count=np.array([0], np.int32))) == []
    assert client.infer("linear", x=rows(1))["y"].shape == (1, 16)


def test_a_sequence_always_starts_and_ends(client):
    one = np.ones((1, 1), np.int32)
    with client.sequence("summing") as first:
        assert [int(first.infer(x=one * 5)["sum"][0, 0]), int(first.infer(x=one * 2)["sum"][0, 0])] == [5, 7]
    with client.sequence("summing", sequence_id=77) as second:
        assert second.sequence_id == 77
        answer = second.infer({"x": one}, end=True)
        # The first one is gone, so that this is the only one.
        assert (int(answer["sum"][0, 0]), int(answer["open"][0, 0])) == (1, 1)
        with pytest.raises(errors.InvalidInput, match="has ended"):
            second.infer(x=one)

    def interrupted():
        with client.sequence("summing") as third:
            third.infer(x=one)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    with client.model("summing").sequence(sequence_id="mine") as bound:
        assert [int(bound.infer(x=one)["sum"][0, 0]) for _ in range(2)] == [1, 2]
    with client.sequence("summing") as fourth:
        with pytest.raises(errors.InvalidInput):
            fourth.infer(x=one * 1.5)
        assert int(fourth.infer(x=one, end=True)["open"][0, 0]) == 1


def test_a_cancelled_sequence_is_ended_before_its_client_is_closed(server):
    one = np.ones((1, 1), np.int32)

    async def use(url, begun):
        async with tritongen.AsyncClient(url) as client, client.sequence("summing") as sequence:
            await sequence.infer(x=one)
            begun.set_result(None)
            await asyncio.sleep(60)

    async def cancel(url):
        begun = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(use(url, begun))
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for url in (server.grpc_url, server.http_url):
        asyncio.run(cancel(url))
        with tritongen.Client(url) as client, client.sequence("summing") as sequence:
            assert int(sequence.infer(x=one, end=True)["open"][0, 0]) == 1


def test_parameters_reach_the_model_and_those_of_the_protocol_are_refused(client):
    answer = client.infer("echoing", x=[1.0], parameters={"text": "a", "number": 3, "flag": True})
    assert json.loads(answer["parameters"][0]) == {"text": "a", "number": 3, "flag": True}
    with pytest.raises(errors.InvalidInput, match="belongs to the protocol"):
        client.infer("echoing", x=[1.0], parameters={"priority": 1, "triton_x": 2})


def test_a_deadline_ends_the_call(client, gate):
    with gate("slow") as slow:
        with pytest.raises(errors.DeadlineExceeded, match=r"no answer within 0\.2 s"):
            client.infer("slow", seconds=contract.UNTIL_OPENED, deadline_s=0.2)
        time.sleep(0.5)  # an answer in the instant in which its request is cancelled may end this Triton (known issue `crash-when-cancelled`)
        slow.open()
        client.infer("slow", seconds=seconds(0), deadline_s=60)
    for wrong in (0, -1, 1e9, float("nan")):
        with pytest.raises(errors.InputError, match="cannot be kept"):
            client.infer("slow", seconds=seconds(0), deadline_s=wrong)


@contextlib.contextmanager
def occupied(server, closed, model: str, waiting: int):
    """One request is executed, and so many wait for it, until the gate is opened; which it is after the block. Yields the futures of all that were sent."""
    pending = partial(contract.metric, server, "nv_inference_pending_request_count", model)
    with closed as gate, concurrent.futures.ThreadPoolExecutor() as pool, tritongen.Client(server.grpc_url, retries=0, deadline_s=120) as plain:
        futures = [pool.submit(plain.infer, model, seconds=contract.UNTIL_OPENED)]
        gate.wait_begun()
        while pending() < waiting:
            futures.append(pool.submit(plain.infer, model, seconds=contract.UNTIL_OPENED))
            concurrent.futures.wait(futures[-1:], 0.1)
        try:
            yield gate, futures
        finally:
            gate.open()
            concurrent.futures.wait(futures)


def test_a_full_queue_is_an_overload_and_nothing_else(kind, url, server, gate):
    with occupied(server, gate("slow"), "slow", FULL) as (_, sent):
        with contract.make_client(kind, url, retries=0) as client, pytest.raises(errors.Overloaded) as error:
            client.infer("slow", seconds=seconds(0), deadline_s=60)
        assert not isinstance(error.value, errors.QueueTimeout)
    assert sum(future.exception() is None for future in sent) == 1 + FULL


def test_what_waits_too_long_in_the_queue_is_a_queue_timeout(kind, url, server, gate):
    """The deadline travels to Triton as the queue's timeout, which ends the waiting there; a client that asks for longer sees it."""
    with occupied(server, gate("waiting"), "waiting", 1), contract.make_client(kind, url, retries=0) as client:
        meta = client.meta("waiting")
        assert meta.queue_policies[0].may_be_shortened
        with pytest.raises((errors.DeadlineExceeded, errors.QueueTimeout)):
            client.infer("waiting", seconds=seconds(0), deadline_s=0.3)


def test_a_request_that_was_refused_is_sent_again_while_there_is_time(kind, url, server, gate, monkeypatch):
    with occupied(server, gate("slow"), "slow", FULL) as (opened, _), contract.make_client(kind, url, retries=1000, idempotent=True) as client:

        def pause(attempt: int) -> float:
            opened.open()
            return policy.pause_before(attempt)

        monkeypatch.setattr(core, "pause_before", pause)
        assert client.infer("slow", seconds=seconds(0), deadline_s=120).timings.attempts > 1


def test_many_threads_or_tasks_share_one_client(client, kind):
    x = rows(8)
    want = client.infer("linear", x=x)["y"]
    if kind.endswith("aio"):
        results = list(client.infer_many("linear", [{"x": x}] * 64, window=32))
    else:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            results = list(pool.map(lambda _: client.infer("linear", x=x), range(64)))
    assert all(np.array_equal(result["y"], want) for result in results)


def test_a_server_that_is_gone_is_left_out(kind, url):
    gone = f"{url.split('://')[0]}://127.0.0.1:1"
    with contract.make_client(kind, [gone, url]) as client:
        for _ in range(4):
            assert client.infer("linear", x=rows(1))["y"].shape == (1, 16)


def test_a_closed_client_says_so(kind, url):
    with contract.make_client(kind, url) as client:
        assert client.infer("linear", x=rows(1))["y"].shape == (1, 16)
        client.close()
        client.close()
        with pytest.raises(errors.InferenceError, match="is closed"):
            client.infer("linear", x=rows(1))


def test_secrets_are_nowhere_to_be_seen(kind, url, caplog):
    secret = "s3cr3t-token"
    options = {"token": secret, "headers": {"x-key": secret + "2"}}
    with caplog.at_level("DEBUG"), contract.make_client(kind, url, **options) as client:
        client.infer("linear", x=rows(1))
        with pytest.raises(errors.ModelNotFound) as error:
            client.infer("nothing", x=rows(1))
        assert secret not in repr(client) + str(error.value) + repr(error.value) + caplog.text
    with pytest.raises(errors.InputError) as error:
        contract.make_client(kind, url, headers={"x-key": secret + "\n"})
    assert secret not in str(error.value)


def test_spans_tell_the_model_and_what_became_of_the_request(kind, url):
    with spans.collected() as seen, contract.make_client(kind, url) as client:
        client.infer("linear", x=rows(1))
        with pytest.raises(errors.ModelNotFound):
            client.infer("nothing", x=rows(1))
        good, bad = (span for span in seen.get_finished_spans() if span.name.startswith("infer"))
    assert (good.name, good.attributes["triton.model"]) == ("infer linear", "linear")
    assert bad.status.status_code is StatusCode.ERROR


PAIRS = [(tritongen.Client, tritongen.AsyncClient), (sync.Model, aio.AsyncModel), (sync.InferenceSequence, aio.AsyncInferenceSequence)]


def public(kind):
    return [name for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize(("blocking", "waiting", "name"), [(*pair, name) for pair in PAIRS for name in public(pair[0])])
def test_both_clients_have_the_same_methods_arguments_and_words(blocking, waiting, name):
    ours, theirs = getattr(blocking, name), getattr(waiting, name)
    assert inspect.getdoc(ours) == inspect.getdoc(theirs).replace("AsyncClient", "Client")
    if isinstance(ours, property):
        assert isinstance(theirs, property)
        return
    ours, theirs = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    assert list(ours) == list(theirs)
    assert [(p.kind, p.default) for p in ours.values()] == [(p.kind, p.default) for p in theirs.values()]


@pytest.mark.parametrize(("blocking", "waiting"), PAIRS)
def test_no_method_is_missing_on_either_side(blocking, waiting):
    assert public(blocking) == public(waiting)
    assert threading.active_count() < 100
