"""The senders of load tests against the embedded Triton: what they bring is what the service client brings."""

import asyncio
from dataclasses import replace

import models
import numpy as np
import pytest
from onnx import helper

import tritongen as package
from tritongen.client import calls
from tritongen.client.endpoint import parse_url
from tritongen.load.wire import Outcome, open_pool

pytestmark = pytest.mark.server

NEG = models.model([helper.make_node("Neg", ["x"], ["y"])], [models.value("x", models.FLOAT, ["N", "L"])], [models.value("y", models.FLOAT, ["N", "L"])])
SLOW = "dynamic_batching { max_queue_delay_microseconds: 2000000 preferred_batch_size: [8] }\n"
QUEUE = "dynamic_batching { max_queue_delay_microseconds: 1000000 preferred_batch_size: [8] default_queue_policy { max_queue_size: 1 } }\n"
TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    models.put(repository, "neg", NEG, models.config("x FP32 [-1]", "y FP32 [-1]"))
    models.put(repository, "two", models.two_outputs(), models.config("x FP32 [4]", "y FP32 [2]; z FP32 [4]"))
    models.put(repository, "strings", models.strings(), models.config("x STRING [2]", "y STRING [2]"))
    models.put(repository, "queued", NEG, models.config("x FP32 [-1]", "y FP32 [-1]", extra=models.ONE_CPU + QUEUE))
    models.put(repository, "slow", NEG, models.config("x FP32 [-1]", "y FP32 [-1]", extra=models.ONE_CPU + SLOW))
    models.put(repository, "lookup", models.lookup(), models.config("index INT64 [1]", "y FP32 [1, 4]"))
    with package.serve(repository, http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as running:
        yield running


@pytest.fixture(params=["grpc_url", "http_url"])
def url(server, request):
    return getattr(server, request.param)


def call(url, model, **arrays):
    """A request that nothing here checks against its model."""
    with package.Client(url) as client:
        tensors = client.meta(model).inputs_by_name
    return calls.Infer.of(model, "", tuple((tensors[name], array) for name, array in arrays.items()))


def sent(url, request, count=1, timeout_s=TIMEOUT_S):
    """The answers to so many of a request, sent together, and the arrays of those that are right."""

    async def run():
        async with open_pool(parse_url(url)) as pool:
            prepared = pool.prepare(request)
            answers = await asyncio.gather(*(pool.send(prepared, timeout_s, keep=True) for _ in range(count)))
            return answers, [pool.decode(answer) for answer in answers if answer.outcome is Outcome.OK]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("model", "arrays"),
    [
        ("neg", {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}),
        ("neg", {"x": np.random.default_rng(1).standard_normal((1, 1 << 20)).astype(np.float32)}),
        ("two", {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}),
        ("strings", {"x": np.array([[b"a\0", "é".encode()], [b"", b"x" * 1000]], object)}),
    ],
    ids=["small", "4 MB", "two outputs", "texts"],
)
def test_the_answer_is_that_of_the_client(url, model, arrays):
    with package.Client(url) as client:
        wanted = client.infer(model, arrays)
    answers, outputs = sent(url, call(url, model, **arrays), 3)
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 3
    for found in outputs:
        assert found.keys() == wanted.keys()
        for name, array in found.items():
            np.testing.assert_array_equal(array, wanted[name])


def test_many_requests_at_once_each_get_their_own_answer(url):
    async def run():
        async with open_pool(parse_url(url), limit=16) as pool:
            requests = [pool.prepare(call(url, "neg", x=np.full((1, 8), index, np.float32))) for index in range(4)]
            answers = await asyncio.gather(*(pool.send(requests[index % 4], TIMEOUT_S, keep=True) for index in range(400)))
            return [float(pool.decode(answer)["y"][0, 0]) for answer in answers]

    assert asyncio.run(run()) == [-float(index % 4) for index in range(400)]


def test_a_request_that_does_not_fit_is_invalid_in_tritons_words(url):
    (answer,), _ = sent(url, call(url, "two", x=np.zeros((1, 5), np.float32)))
    assert answer.outcome is Outcome.INVALID
    assert "unexpected shape for input 'x'" in answer.error


def test_a_model_that_fails_has_failed_in_its_words(url):
    (answer,), _ = sent(url, call(url, "lookup", index=np.array([[99]])))
    assert answer.outcome is Outcome.FAILED
    assert "out of data bounds" in answer.error


def test_a_model_that_is_not_there_is_gone(url):
    """Before a run begins each model is asked about: one that is not found during it has left."""
    request = call(url, "neg", x=np.zeros((1, 2), np.float32))
    (answer,), _ = sent(url, replace(request, model="negative"))
    assert answer.outcome is Outcome.GONE
    assert "negative" in answer.error


def test_a_full_queue_rejects(url):
    answers, _ = sent(url, call(url, "queued", x=np.zeros((1, 2), np.float32)), 6)
    outcomes = [answer.outcome for answer in answers]
    assert set(outcomes) == {Outcome.OK, Outcome.REJECTED}
    assert {answer.status for answer in answers} <= {"200", "503", "OK", "UNAVAILABLE"}
    assert "maximum queue size" in next(answer.error for answer in answers if answer.outcome is Outcome.REJECTED)


def test_a_deadline_ends_a_request_and_the_next_one_is_answered(url):
    async def run():
        async with open_pool(parse_url(url)) as pool:
            late = await pool.send(pool.prepare(call(url, "slow", x=np.zeros((1, 2), np.float32))), 0.1)
            return late, await pool.send(pool.prepare(call(url, "neg", x=np.zeros((1, 2), np.float32))), TIMEOUT_S)

    late, after = asyncio.run(run())
    assert late.outcome is Outcome.DEADLINE
    assert late.received_s - late.sent_s > 0.09
    assert after.outcome is Outcome.OK
