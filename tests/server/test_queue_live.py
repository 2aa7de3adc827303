"""Queues of a rendered repository under more requests than the embedded Triton can do: who is answered, who is turned away, and in which order."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import networks
import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.grpc as grpcclient
from counted import statistics
from onnx import TensorProto, helper, numpy_helper

from tritongen.server import ServerOptions
from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

WIDTH = 64
EXECUTION_S = 0.25
DEADLINE_S = 240
SLO_S = 4.0

SPEC = """\
version: 1
triton: {release: "24.10", cpus: 2}
defaults: {batching: {max: 1}, instances: {kind: cpu}, cpu_threads: 1, warmup: none, prove: false}
models:
  - {name: ordered, source: slow.onnx, queue: {priority_levels: 2}}
  - {name: bounded, source: slow.onnx, queue: {max_queue_size: 2}}
  - {name: timed, source: slow.onnx, queue: {default_timeout: 10ms}}
  - {name: impatient, source: slow.onnx, batching: {max: 8, max_queue_delay: 2s}, queue: {default_timeout: 50ms}}
  - {name: protected, source: slow.onnx, batching: {max: 4}, slo: {p99: 4s}, queue: {overload: reject}}
  - {name: gathered, source: slow.onnx, batching: {max: 4, max_queue_delay: 390ms}, slo: {p50: 800ms}, queue: {overload: reject}}
  - {name: convolving, source: convolving.onnx, accelerator: cuda, batching: {max: 6}, instances: {kind: gpu}, warmup: auto}
"""


def slow_network(path: Path) -> None:
    """`x: float32[N, 64] → y`, in a loop that takes about EXECUTION_S on this machine, whatever the rows."""
    rng = np.random.default_rng(5)
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "w"], ["product"]),
            helper.make_node("Tanh", ["product"], ["next"]),
            helper.make_node("Identity", ["going"], ["go"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, ["N", WIDTH]),
        ],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), helper.make_tensor_value_info("next", TensorProto.FLOAT, ["N", WIDTH])],
    )
    weights = numpy_helper.from_array((rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32), "w")
    steps = 2000
    for _ in range(2):
        constants = [weights, numpy_helper.from_array(np.array(steps, np.int64), "steps"), numpy_helper.from_array(np.array(True), "yes")]
        loop = helper.make_node("Loop", ["steps", "yes", "x"], ["y"], body=body)
        shape = ["N", WIDTH]
        networks.save(path, [loop], [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)], constants)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        started = time.perf_counter()
        session.run(None, {"x": np.ones((1, WIDTH), np.float32)})
        steps = max(1, int(steps * EXECUTION_S / (time.perf_counter() - started)))


def convolving_network(path: Path) -> None:
    weights = numpy_helper.from_array(np.random.default_rng(6).standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])
    networks.save(path, [node], [("x", TensorProto.FLOAT, ["N", 3, 8, 8])], [("y", TensorProto.FLOAT, ["N", 4, 6, 6])], [weights])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("queues")
    slow_network(folder / "slow.onnx")
    convolving_network(folder / "convolving.onnx")
    (folder / "spec.yaml").write_text(SPEC)
    assert onnx.load(folder / "slow.onnx").graph.node[0].op_type == "Loop"
    with serving(folder / "spec.yaml", ServerOptions(http_port=0, grpc_port=0, metrics_port=0, extra_args=("--log-verbose=1",))) as served:
        yield served.server


@dataclass(frozen=True)
class Answer:
    """What a client saw: the priority it asked with, the error's status and text (empty where it was answered), and how long it took."""

    priority: int
    status: str
    message: str
    seconds: float


def ask_at_once(server, model: str, priorities: Sequence[int]) -> list[Answer]:
    """Send a request for each priority without waiting for answers; the answers in the order in which they came.

    Once more where this machine was so busy that they were sent over a good part of an execution.
    """
    for _ in range(20):
        answers, sending_s = ask(server, model, priorities)
        if sending_s < EXECUTION_S / 5:
            return answers
    raise AssertionError(f"{len(priorities)} requests take {sending_s:.3g} s to be sent")


def ask(server, model: str, priorities: Sequence[int]) -> tuple[list[Answer], float]:
    """The answers, and the seconds in which the requests were sent."""
    answers: list[Answer] = []
    everything = threading.Event()
    with grpcclient.InferenceServerClient(server.grpc_url.removeprefix("grpc://")) as client:
        tensor = grpcclient.InferInput("x", [1, WIDTH], "FP32")
        tensor.set_data_from_numpy(np.ones((1, WIDTH), np.float32))

        def sent(priority: int) -> None:
            started = time.perf_counter()

            def came(result, error) -> None:
                status, message = (error.status(), error.message()) if error else ("", "")
                if error is None:
                    assert np.isfinite(result.as_numpy("y")).all()
                answers.append(Answer(priority, status, message, time.perf_counter() - started))
                if len(answers) == len(priorities):
                    everything.set()

            client.async_infer(model, [tensor], came, priority=priority, client_timeout=DEADLINE_S)

        begun = time.perf_counter()
        for priority in priorities:
            sent(priority)
        sending_s = time.perf_counter() - begun
        assert everything.wait(DEADLINE_S), f"{len(answers)} of {len(priorities)} answers came"
    return answers, sending_s


def rejected(answers: list[Answer]) -> list[Answer]:
    turned_away = [answer for answer in answers if answer.status]
    assert {answer.status for answer in turned_away} <= {"StatusCode.UNAVAILABLE"}, answers
    return turned_away


def test_everything_loads(server):
    assert set(server.models.values()) == {"READY"}


def test_a_lone_request_outlives_the_delay_under_derived_limits(server):
    """The time that it may wait is derived above the queue delay: one below it would turn every lone request away from an idle server."""
    for _ in range(3):
        (answer,) = ask_at_once(server, "gathered", [0])
        assert not answer.status, answer


def test_a_request_of_a_higher_priority_is_answered_before_those_that_wait(server):
    answers = ask_at_once(server, "ordered", [2, 2, 2, 0, 1, 1])
    order = [answer.priority for answer in answers]
    assert order[:3].count(1) == 2, f"{order}: no more than one may have run before the others came"
    assert not rejected(answers)


def test_a_full_queue_turns_requests_away_at_once(server):
    answers = ask_at_once(server, "bounded", [0] * 8)
    away = rejected(answers)
    assert 4 <= len(away) <= 6, "two wait, and none, one or two were taken from the queue before the others came"
    assert all("exceeds maximum queue size" in answer.message.lower() for answer in away), away
    assert max(answer.seconds for answer in away) < min(answer.seconds for answer in answers if not answer.status)


def test_who_waited_too_long_is_turned_away(server):
    answers = ask_at_once(server, "timed", [0] * 5)
    away = rejected(answers)
    assert 3 <= len(away) < 5, "one was executed at once"
    assert all("timeout expired" in answer.message.lower() for answer in away), away


def test_a_timeout_below_the_queue_delay_turns_requests_away_from_an_idle_server(server):
    (answer,) = ask_at_once(server, "impatient", [0])
    assert rejected([answer])
    assert "timeout expired" in answer.message.lower()


def test_overload_keeps_its_promise_to_those_it_serves(server):
    answers = ask_at_once(server, "protected", [0] * 60)
    away = rejected(answers)
    served = [answer for answer in answers if not answer.status]
    assert len(served) >= 4
    assert len(away) >= 30
    # A machine that has become slower than it was when the network was made for it keeps that much less.
    executed = statistics(server.http_url, "protected", inferences=len(served))["inference_stats"]["compute_infer"]
    slower = max(1.0, int(executed["ns"]) / int(executed["count"]) / 1e9 / EXECUTION_S)
    assert max(answer.seconds for answer in served) < SLO_S * slower


def test_every_derived_size_was_warmed_up(server):
    samples = [line for line in server.log().splitlines() if "warmup sample" in line and "convolving" in line]
    for size in (1, 2, 4, 6):
        assert any(f"'batch {size}'" in line for line in samples), samples
