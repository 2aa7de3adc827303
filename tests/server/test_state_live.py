"""Implicit state of sequences on the embedded Triton, which keeps it in the backend."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import models
import networks
import numpy as np
import pytest
import ragged
import tritonclient.grpc as grpcclient
from onnx import TensorProto, helper

import tritongen
from tritongen.server import start

pytestmark = pytest.mark.server

STRATEGIES = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 20000 }"}
INITIAL = np.array([3, 4], "<f4")
STEP = np.array([[1, 10]], np.float32)


def config(strategy: str, state: str) -> str:
    text = models.config("x FP32 [2]", "total FP32 [2]", batch=4)
    named = f'input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [2] {state}'
    return text + f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: 60000000 state [{{ {named} }}] }}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory, options):
    root = tmp_path_factory.mktemp("repository")
    for name, strategy in STRATEGIES.items():
        initial = 'initial_state: { name: "first" data_type: TYPE_FP32 dims: [2] data_file: "first" }'
        folder = models.put(root, name, ragged.running_total(), config(strategy, initial))
        (folder / "initial_state").mkdir()
        (folder / "initial_state" / "first").write_bytes(INITIAL.tobytes())
    models.put(root, "zeros", ragged.running_total(), config(STRATEGIES["oldest"], ""))
    models.put(root, "growable", ragged.running_total(), config(STRATEGIES["oldest"], "use_same_buffer_for_input_output: true use_growable_memory: true"))
    with start(root, options(exit_on_error=False)) as running:
        yield running


@pytest.fixture(scope="module")
def send(server):
    with grpcclient.InferenceServerClient(server.grpc_url.removeprefix("grpc://")) as client:

        def one(model, sequence, x=STEP, **flags):
            tensor = grpcclient.InferInput("x", list(x.shape), "FP32")
            tensor.set_data_from_numpy(x)
            return client.infer(model, [tensor], sequence_id=sequence, client_timeout=30, **flags).as_numpy("total")

        yield one


@pytest.mark.parametrize("model", STRATEGIES)
def test_sequences_side_by_side_each_go_on_from_their_own_state(send, model):
    np.testing.assert_array_equal(send(model, 5, sequence_start=True), INITIAL + STEP)
    np.testing.assert_array_equal(send(model, 6, 10 * STEP, sequence_start=True), INITIAL + 10 * STEP)
    with ThreadPoolExecutor(2) as pool:
        for count in (2, 3, 4):
            fifth, sixth = pool.map(lambda number: send(model, number), (5, 6))
            np.testing.assert_array_equal(fifth, INITIAL + count * STEP)
            np.testing.assert_array_equal(sixth, INITIAL + (count + 9) * STEP)
    send(model, 5, sequence_end=True)
    np.testing.assert_array_equal(send(model, 5, sequence_start=True, sequence_end=True), INITIAL + STEP)
    np.testing.assert_array_equal(send(model, 6, sequence_start=True), INITIAL + STEP)
    send(model, 6, sequence_end=True)


def test_a_state_without_an_initial_one_starts_as_zeros(send):
    np.testing.assert_array_equal(send("zeros", 1, sequence_start=True), STEP)
    np.testing.assert_array_equal(send("zeros", 1, sequence_end=True), 2 * STEP)


def test_growable_memory_is_refused_with_the_reason(server):
    assert server.models["growable"] == "UNAVAILABLE"
    assert "use_growable_memory" in server.reasons["growable"]


SPEC = """version: 1
models:
  - name: total
    source: m.onnx
    config:
      output: [{name: after}]
      sequence_batching:
        max_sequence_idle_microseconds: 60000000
        control_input: [{name: START, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}]}]
        state: [{input_name: before, output_name: after, data_type: TYPE_FP32, dims: [4]}]
  - name: warmed
    source: n.onnx
    batching: {max: 2}
    config:
      sequence_batching:
        max_sequence_idle_microseconds: 60000000
        control_input: [{name: START, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}]}]
"""


def test_a_spec_with_controls_and_states_becomes_a_model_that_has_them(tmp_path):
    networks.running_total(tmp_path / "m.onnx")
    four, one = ["N", 4], ["N", 1]
    inputs = [("x", TensorProto.FLOAT, four), ("START", TensorProto.FLOAT, one)]
    networks.save(tmp_path / "n.onnx", [helper.make_node("Add", ["x", "START"], ["y"])], inputs, [("y", TensorProto.FLOAT, four)])
    (tmp_path / "spec.yaml").write_text(SPEC)
    ones = np.ones((1, 4), np.float32)
    with tritongen.serve(tmp_path / "spec.yaml", http_port=0, grpc_port=0, metrics_port=0) as server, tritongen.Client(server.grpc_url) as client:
        with client.sequence("total") as sequence:
            answers = [sequence.infer(x=ones) for _ in range(3)]
        assert [(answer["after"][0, 0], answer["y"][0, 0]) for answer in answers] == [(1, 1), (2, 0), (3, 0)]
        with client.sequence("warmed") as sequence:
            assert [sequence.infer(x=ones)["y"][0, 0] for _ in range(2)] == [2, 1]
