"""The embedded Triton with our onnxruntime backend, asked over the network. One server for the whole module."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from counted import statistics
from tritonclient.utils import InferenceServerException

from tests.server import models
from tritongen.server import start

pytestmark = pytest.mark.server

ROWS = models.weights(8, 64, seed=7)
DELAY = "dynamic_batching { max_queue_delay_microseconds: 100000 }\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("repository")
    put, config = models.put, models.config
    put(root, "linear", models.linear(), models.LINEAR)
    put(root, "batched", models.linear(), models.LINEAR + DELAY)
    put(root, "lookup", models.lookup(), config("index INT64 [1]", "y FP32 [1, 4]") + DELAY)
    put(root, "two", models.two_outputs(), config("x FP32 [4]", "y FP32 [2]; z FP32 [4]") + DELAY)
    put(root, "strings", models.strings(), config("x STRING [2]", "y STRING [2]") + DELAY)
    put(root, "half", models.doubled(models.HALF), config("x FP16 [3]", "y FP16 [3]"))
    put(root, "bf16", models.doubled(models.BF16), config("x BF16 [3]", "y BF16 [3]") + DELAY)
    put(root, "scalar", models.scaled_by_scalar(), config("t INT64 [1]; x FP32 [-1]", "y FP32 [-1]; square INT64 [1]", batch=0))
    put(root, "empty", models.row_sums(), config("x FP32 [-1, 3]", "y FP32 [3]; same FP32 [-1, 3]", batch=0))
    put(root, "reshaped", models.transposed(), config("x FP32 [6] reshape { shape: [2, 3] }", "y FP32 [6] reshape { shape: [3, 2] }") + DELAY)
    put(root, "flags", models.flags(), config("x BOOL [2]", "y BOOL [2]"))
    put(root, "default", models.with_default(), config("x FP32 [-1]; s FP32 [1] optional: true", "y FP32 [-1]", batch=0))
    put(root, "maximum", models.maximum(), config("x FP32 [3]", "y FP32 [1]") + DELAY)
    put(root, "repeated", models.repeated(), config("x FP32 [3]", "y FP32 [3]"))
    put(root, "regrouped", models.regrouped(), config("x FP32 [-1]", "y FP32 [7]") + DELAY)
    warmup = 'model_warmup [{ name: "w" batch_size: 2 inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] zero_data: true } } }]\n'
    put(root, "named", models.linear(), models.LINEAR + 'default_model_filename: "net.onnx"\n' + warmup, file="net.onnx")
    put(root, "external", models.linear(), models.LINEAR, save_as_external_data=True, location="weights.bin", size_threshold=16)
    put(root, "directory", models.linear(), models.LINEAR, version="1/model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=16)
    threads = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{text}" }} }}\n' for key, text in {"intra_op_thread_count": "1", "execution_mode": "1"}.items()
    )
    put(root, "tuned", models.linear(), models.LINEAR + threads + "optimization { graph { level: 2 } }\n")
    return root


@pytest.fixture(scope="module")
def server(repository, options):
    with start(repository, options()) as running:
        yield running


def reference(proto, feed):
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True))


def test_everything_is_ready_and_nothing_was_adapted(server):
    assert set(server.models.values()) == {"READY"}
    assert len(server.models) == 19
    assert server.warnings == ()


@pytest.mark.parametrize("model", ["linear", "named", "external", "directory", "tuned"])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_answers_equal_onnxruntime(server, ask, model, rows):
    answer = ask(server, model, {"x": ROWS[:rows]})["y"]
    expected = reference(models.linear(), {"x": ROWS[:rows]})["y"]
    np.testing.assert_allclose(answer, expected, rtol=1e-5)
    assert rows == 1 or not np.allclose(answer[0], answer[1])


def test_requests_that_come_together_are_one_batch_and_each_gets_its_own_rows(server, ask):
    before = statistics(server.http_url, "batched")
    expected = reference(models.linear(), {"x": ROWS})["y"]
    sizes = [1, 2, 1, 1, 2, 1]
    starts = np.cumsum([0, *sizes[:-1]])
    with ThreadPoolExecutor(len(sizes)) as pool:
        answers = list(pool.map(lambda part: ask(server, "batched", {"x": ROWS[part[0] : part[0] + part[1]]})["y"], zip(starts, sizes, strict=True)))
    after = statistics(server.http_url, "batched", inferences=before["inference_count"] + sum(sizes))
    for start_row, size, answer in zip(starts, sizes, answers, strict=True):
        np.testing.assert_allclose(answer, expected[start_row : start_row + size], rtol=1e-5)
    assert after["inference_count"] - before["inference_count"] == sum(sizes)
    assert after["execution_count"] - before["execution_count"] < len(sizes)


def test_only_the_culprit_of_a_failing_batch_is_told_so(server, ask):
    def one(index):
        try:
            return ask(server, "lookup", {"index": np.array([[index]], np.int64)})["y"]
        except InferenceServerException as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(one, [3, 99, 5, 7]))
    table = models.weights(10, 4)
    for answer, index in ((answers[0], 3), (answers[2], 5), (answers[3], 7)):
        np.testing.assert_array_equal(answer, table[index].reshape(1, 1, 4))
    assert "onnx runtime error" in answers[1]
    assert "indices element out of data bounds" in answers[1]


def test_only_wanted_outputs_come_back_even_from_a_shared_batch(server, ask):
    x = models.weights(1, 4, seed=3)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(ask, server, "two", {"x": x}, wanted=wanted) for wanted in (["z"], ["y"], ["z", "y"])]
        only_z, only_y, both = (future.result() for future in futures)
    assert set(only_z) == {"z"}
    assert set(only_y) == {"y"}
    assert set(both) == {"y", "z"}
    np.testing.assert_array_equal(only_z["z"], -x)
    np.testing.assert_allclose(only_y["y"], x @ models.weights(4, 2), rtol=1e-5)


def test_strings_pass_with_any_text(server, ask):
    rows = np.array([["grüße".encode(), b""], [b"a\0b", "日本".encode()]], dtype=object)
    np.testing.assert_array_equal(ask(server, "strings", {"x": rows})["y"], rows)


def test_strings_batch_by_rows(server, ask):
    with ThreadPoolExecutor(3) as pool:
        rows = [np.array([[f"left {i}".encode(), f"right {i}".encode()]], dtype=object) for i in range(3)]
        answers = list(pool.map(lambda row: ask(server, "strings", {"x": row})["y"], rows))
    for row, answer in zip(rows, answers, strict=True):
        np.testing.assert_array_equal(answer, row)


def test_bytes_that_are_no_text_are_refused_with_the_reason(server, ask):
    with pytest.raises(InferenceServerException, match=r"input 'x' has an element that is not UTF-8 text .* carries only text"):
        ask(server, "strings", {"x": np.array([[b"\xff\xfe", b"ok"]], dtype=object)})


def test_fp16(server, ask):
    x = np.array([[1.5, -2.25, 32000.0], [0.1, 2, 3]], np.float16)
    answer = ask(server, "half", {"x": x})["y"]
    assert answer.dtype == np.float16
    np.testing.assert_array_equal(answer, (x.astype(np.float32) * 2).astype(np.float16))


def test_bf16_in_and_out_alone_and_batched(server, ask):
    rows = [np.array([[1.5, -2.25, 1e38], [0.1, i, 3]], ml_dtypes.bfloat16) for i in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda x: ask(server, "bf16", {"x": x})["y"], rows))
    for x, answer in zip(rows, answers, strict=True):
        np.testing.assert_array_equal(np.asarray(answer, np.float32), (x.astype(np.float32) * 2).astype(ml_dtypes.bfloat16).astype(np.float32))


def test_scalars_travel_as_one_element(server, ask):
    answer = ask(server, "scalar", {"t": np.array([3], np.int64), "x": np.array([1, 2.5], np.float32)})
    np.testing.assert_array_equal(answer["y"], [3, 7.5])
    np.testing.assert_array_equal(answer["square"], [9])


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_dimensions_may_be_zero(server, ask, rows):
    x = models.weights(rows, 3)
    answer = ask(server, "empty", {"x": x})
    assert answer["same"].shape == (rows, 3)
    np.testing.assert_allclose(answer["y"], x.sum(axis=0), rtol=1e-5)


def test_reshape_goes_both_ways(server, ask):
    rows = [models.weights(2, 6, seed=seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda x: ask(server, "reshaped", {"x": x})["y"], rows))
    for x, answer in zip(rows, answers, strict=True):
        np.testing.assert_array_equal(answer, x.reshape(2, 2, 3).transpose(0, 2, 1).reshape(2, 6))


def test_booleans(server, ask):
    np.testing.assert_array_equal(ask(server, "flags", {"x": np.array([[True, False]])})["y"], [[False, True]])


def test_an_optional_input_has_its_default(server, ask):
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(ask(server, "default", {"x": x})["y"], [3, 6])
    np.testing.assert_array_equal(ask(server, "default", {"x": x, "s": np.array([10], np.float32)})["y"], [10, 20])


def test_a_scalar_output_of_a_batching_model_answers_batch_1_only_as_nvidias_backend_does(server, ask):
    np.testing.assert_array_equal(ask(server, "maximum", {"x": np.array([[1, 5, 2]], np.float32)})["y"], [5])
    expected = "failed to split the output tensor 'y' in responses: expected batch size of at least 2 in model output, got 1"
    with pytest.raises(InferenceServerException, match=expected):
        ask(server, "maximum", {"x": np.ones((2, 3), np.float32)})
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(ask, server, "maximum", {"x": np.ones((1, 3), np.float32)}) for _ in range(2)]
    assert all(expected in str(one.exception()) for one in both)


def test_rows_beyond_the_batch_are_an_error_that_names_the_output_and_the_remedy(server, ask):
    with pytest.raises(InferenceServerException) as caught:
        ask(server, "repeated", {"x": models.weights(2, 3)})
    for part in ("output tensor 'y'", "expected 2 rows", "got 4", "NVIDIA's backend would hand out wrong rows", "batching: none", "max_batch_size: 0"):
        assert part in str(caught.value)


def test_no_client_of_a_model_without_a_batch_axis_gets_rows_of_another(server, ask):
    def one(seed):
        x = models.weights(1, 14, seed=seed)
        try:
            return bool(np.array_equal(ask(server, "regrouped", {"x": x})["y"], x.reshape(2, 7)))
        except InferenceServerException as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(24)))
    assert all(isinstance(answer, str) and "the model's axis 0 is not a batch axis" in answer for answer in answers), answers
    x = models.weights(1, 7)
    np.testing.assert_array_equal(ask(server, "regrouped", {"x": x})["y"], x)


def test_http_answers_too(server):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": ROWS[0].tolist()}]}
    request = urllib.request.Request(f"{server.http_url}/v2/models/linear/infer", data=json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        output = json.load(answer)["outputs"][0]
    np.testing.assert_allclose(output["data"], reference(models.linear(), {"x": ROWS[:1]})["y"][0], rtol=1e-5)


def test_metrics_are_served(server):
    with urllib.request.urlopen(f"{server.metrics_url}/metrics") as answer:
        assert "nv_inference_request_success" in answer.read().decode()
