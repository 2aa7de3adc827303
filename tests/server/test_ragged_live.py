"""Ragged batches on the embedded Triton: requests of different lengths in one execution, and every kind of `batch_input` as the network sees it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import models
import numpy as np
import onnx
import pytest
import ragged
import tritonclient.grpc as grpcclient
from counted import statistics

from tritongen.server import start
from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server

X = 'input [{ name: "x" data_type: TYPE_FP32 dims: DIMS allow_ragged_batch: true }]\n'
ID = 'input [{ name: "id" data_type: TYPE_INT64 dims: [1] }]\noutput [{ name: "seen" data_type: TYPE_FP32 dims: [-1] }]\n'
TOGETHER = "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 2000000 }\n" + models.ONE_CPU
HEAD = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'

SUMS = (
    HEAD
    + X.replace("DIMS", "[-1]")
    + 'output [{ name: "sums" data_type: TYPE_FP32 dims: [1] }, { name: "doubled" data_type: TYPE_FP32 dims: [-1] }]\n'
    + 'batch_input [{ kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "offsets" data_type: TYPE_INT32 source_input: "x" }]\n'
    + 'batch_output [{ target_name: "doubled" source_input: "x" }]\n'
    + TOGETHER
)
LENGTHS = (3, 1, 5, 2)
GRIDS = ((1, 2, 3), (1, 1, 4), (2, 3, 1))
"""Requests with batches of 1, 1 and 2: together the largest batch."""
KINDS = {
    "BATCH_ELEMENT_COUNT": lambda shapes: [np.prod(shape) for shape in shapes],
    "BATCH_ACCUMULATED_ELEMENT_COUNT": lambda shapes: np.cumsum([np.prod(shape) for shape in shapes]),
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": lambda shapes: np.cumsum([0, *(np.prod(shape) for shape in shapes)]),
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": lambda shapes: [max(np.prod(shape) for shape in shapes)],
    "BATCH_ITEM_SHAPE": lambda shapes: [size for shape in shapes for _ in range(shape[0]) for size in shape[1:]],
    "BATCH_ITEM_SHAPE_FLATTEN": lambda shapes: [size for shape in shapes for _ in range(shape[0]) for size in shape[1:]],
}


def echo_config(kind: str, dtype: str) -> str:
    made = f'batch_input [{{ kind: {kind} target_name: "made" data_type: TYPE_{dtype} source_input: "x" }}]\n'
    return HEAD + X.replace("DIMS", "[-1, -1]") + ID + made + TOGETHER


@pytest.fixture(scope="module")
def server(tmp_path_factory, options):
    root = tmp_path_factory.mktemp("repository")
    models.put(root, "sums", ragged.segment_sums(), SUMS)
    for number, kind in enumerate(KINDS):
        dtype = ("INT32", "FP32")[number % 2]
        network = ragged.echo({"INT32": ragged.INT32, "FP32": models.FLOAT}[dtype], 2 if kind == "BATCH_ITEM_SHAPE" else 1, shape_only="MAX" in kind)
        models.put(root, kind, network, echo_config(kind, dtype))
    with start(root, options()) as running:
        yield running


def test_requests_of_different_lengths_run_together_and_answer_as_they_do_alone(server, ask):
    rows = [np.random.default_rng(length).standard_normal((1, length)).astype(np.float32) for length in LENGTHS]
    before = statistics(server.http_url, "sums")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda row: ask(server, "sums", {"x": row}), rows))
    after = statistics(server.http_url, "sums", inferences=before["inference_count"] + len(rows))
    assert after["execution_count"] == before["execution_count"] + 1
    alone = ask(server, "sums", {"x": rows[0]})
    np.testing.assert_allclose(alone["sums"], answers[0]["sums"], rtol=1e-4, atol=1e-6)
    for row, answer in zip(rows, answers, strict=True):
        np.testing.assert_allclose(answer["sums"], row.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(answer["doubled"], 2 * row)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_batch_input_holds_what_the_requests_have(server, ask, kind):
    before = statistics(server.http_url, kind)

    def one(shape):
        return ask(server, kind, {"x": np.zeros(shape, np.float32), "id": np.full((shape[0], 1), shape[2], np.int64)})["seen"]

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(one, GRIDS))
    after = statistics(server.http_url, kind, inferences=before["inference_count"] + sum(shape[0] for shape in GRIDS))
    assert after["execution_count"] == before["execution_count"] + 1
    seen = answers[0][0]
    for shape, answer in zip(GRIDS, answers, strict=True):
        np.testing.assert_array_equal(answer, np.tile(seen, (shape[0], 1)))
    orders = [[GRIDS[first], GRIDS[second], GRIDS[3 - first - second]] for first in range(3) for second in range(3) if first != second]
    assert any(np.array_equal(seen, KINDS[kind](order)) for order in orders), seen


def test_a_batch_that_the_model_does_not_fit_is_refused_with_the_numbers(server, ask):
    """`sums` has one row for each request, so that a request of two items has one too few."""
    with pytest.raises(grpcclient.InferenceServerException, match="expected batch size of at least 2 in model output, got 1"):
        ask(server, "sums", {"x": np.ones((2, 3), np.float32)})


SPEC = """\
version: 1
models:
  - name: sums
    source: sums.onnx
    batching: {max: 4, preferred: [4], max_queue_delay: 2s}
    instances: {kind: cpu}
    shapes: {x: [3]}
    ragged:
      batch_inputs: [{names: [offsets], kind: batch_accumulated_element_count_with_zero, source: x}]
      batch_outputs: [{names: [doubled], source: x}]
"""


def test_a_spec_is_proved_rendered_warmed_up_and_served(tmp_path, options, ask):
    onnx.save(ragged.segment_sums(), tmp_path / "sums.onnx")
    (tmp_path / "spec.yaml").write_text(SPEC)
    rows = [np.arange(length, dtype=np.float32)[None] + 1 for length in LENGTHS]
    with serving(tmp_path / "spec.yaml", options()) as served, ThreadPoolExecutor(4) as pool:
        before = statistics(served.server.http_url, "sums")
        answers = list(pool.map(lambda row: ask(served.server, "sums", {"x": row}), rows))
        after = statistics(served.server.http_url, "sums", inferences=before["inference_count"] + len(rows))
        assert after["execution_count"] == before["execution_count"] + 1
    for row, answer in zip(rows, answers, strict=True):
        np.testing.assert_array_equal(answer["sums"], row.sum(axis=1, keepdims=True))
        np.testing.assert_array_equal(answer["doubled"], 2 * row)
    assert [finding.code for finding in served.findings] == ["TG371"], "the delay, which is long so that all four come together"
