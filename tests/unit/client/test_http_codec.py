"""Answers over HTTP: those of a Triton, and those of whatever else may answer."""

import json

import numpy as np
import pytest

from tritongen.client import calls
from tritongen.client.calls import CallFailed, Status
from tritongen.client.http_codec import answer, infer_reply
from tritongen.client.result import check_outputs
from tritongen.errors import ServerError

Y = {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
DATA = np.array([1, 2], np.float32).tobytes()


def reply(header, data=DATA, *, length=None, status=200):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    headers = {"inference-header-content-length": str(len(text)) if length is None else length}
    return infer_reply(status, headers, text + data, serialise_s=0, wait_s=0)


def failure(function, *arguments, **options):
    with pytest.raises(CallFailed) as error:
        function(*arguments, **options)
    return error.value


def test_an_answer_is_read():
    found = reply({"model_name": "m", "model_version": "1", "id": "r", "parameters": {"a": 1}, "outputs": [Y]})
    assert (found.model, found.version, found.request_id, found.parameters) == ("m", "1", "r", {"a": 1})
    assert found["y"].tolist() == [1, 2]
    assert reply({"outputs": [], "parameters": None}, b"").parameters == {}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"outputs": ["y"]}, "an output is 'y'"),
        ({"outputs": None}, "its outputs are None, not a list"),
        ({"outputs": {"y": Y}}, "not a list"),
        ({"outputs": [Y], "parameters": [1]}, "its parameters are [1]"),
        ({"outputs": [Y], "model_name": 5}, "its model_name is 5, not text"),
        ({"outputs": [{**Y, "datatype": "FP8"}]}, "the datatype 'FP8' is not known here"),
        ({"outputs": [{**Y, "datatype": ["FP32"]}]}, "its datatype is ['FP32']"),
        ({"outputs": [{**Y, "name": None}]}, "its name is None"),
        ({"outputs": [{**Y, "shape": [-1]}]}, "[-1] is not the shape of an array"),
        ({"outputs": [{**Y, "shape": ["2"]}]}, "is not the shape"),
        ({"outputs": [{**Y, "shape": [2.0]}]}, "is not the shape"),
        ({"outputs": [{**Y, "shape": None}]}, "the shape None"),
        ({"outputs": [{**Y, "shape": [3]}]}, "cannot be read"),
        ({"outputs": [{**Y, "parameters": None}]}, "cannot be read"),
        ({"outputs": [{**Y, "parameters": {"binary_data_size": "8"}}]}, "'8' bytes"),
        ({"outputs": [{**Y, "parameters": {"binary_data_size": -8}}]}, "-8 bytes"),
        ({"outputs": [{**Y, "parameters": {"binary_data_size": 9}}]}, "9 bytes of the 8 that are left"),
        ({"outputs": [{**Y, "shape": [1], "parameters": {"binary_data_size": 4}}]}, "4 bytes that belong to no output"),
        ({"outputs": [{**Y, "datatype": "BYTES"}]}, "a string is cut off"),
        ({"outputs": [{**Y, "parameters": {"binary_data_size": True}}]}, "True bytes"),
    ],
)
def test_an_answer_that_cannot_be_read_is_said_in_a_sentence(header, words):
    found = failure(reply, header)
    assert found.status is Status.FAILED
    assert words in found.said
    assert len(found.said) < 300


@pytest.mark.parametrize("shape", [[2], [2**20, 2**24], [2**40, 2**40], [2**70], [], [0, 2**62, 2**62], [1] * 70])
@pytest.mark.parametrize("size", [{}, {"parameters": {"binary_data_size": 0}}])
def test_an_output_without_bytes_is_no_array(shape, size):
    """Never the memory that happens to be there, and no attempt to have that much."""
    found = failure(reply, {"outputs": [{"name": "y", "datatype": "FP32", "shape": shape, **size}]}, b"")
    assert found.status is Status.FAILED


def test_an_output_without_elements_needs_no_bytes():
    empty = reply({"outputs": [{"name": "y", "datatype": "FP32", "shape": [0, 3], "parameters": {"binary_data_size": 0}}]}, b"")
    assert empty["y"].shape == (0, 3)


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "want"),
    [
        ("FP32", [2, 2], [1, 2.5, 3, 4], [[1, 2.5], [3, 4]]),
        ("INT64", [2, 1], [[1], [2**62]], [[1], [2**62]]),
        ("BYTES", [2], ["a", "\u00e9"], [b"a", "\u00e9".encode()]),
        ("BOOL", [2], [True, False], [True, False]),
    ],
)
def test_values_in_json_are_read_too(datatype, shape, data, want):
    found = reply({"outputs": [{"name": "y", "datatype": datatype, "shape": shape, "data": data}]}, b"")
    assert found["y"].tolist() == want


@pytest.mark.parametrize(
    ("datatype", "data", "words"),
    [
        ("FP32", [1, 2, 3], "3 values are not those of the shape [2]"),
        ("INT32", [1, 2.5], "does not fit INT32: 2.5"),
        ("UINT8", [1, 300], "does not fit UINT8: 300"),
        ("FP32", ["a", "b"], "expected numbers"),
        ("FP32", None, "expected numbers"),
        ("BYTES", [1, None], "expected text"),
        ("FP32", [[1], [2, 3]], "different lengths"),
    ],
)
def test_values_in_json_that_are_no_such_array_are_said(datatype, data, words):
    found = failure(reply, {"outputs": [{"name": "y", "datatype": datatype, "shape": [2], "data": data}]}, b"")
    assert found.status is Status.FAILED
    assert words in found.said


@pytest.mark.parametrize("length", ["\u00b2", "-1", "1e3", "", "9" * 5000, "99999", "\u0663"])
def test_a_length_that_is_none_is_said(length):
    assert "Inference-Header-Content-Length" in failure(reply, {"outputs": [Y]}, length=length).said


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[" * 100_000, b"[1]", b"{}", b""])
def test_another_body_is_that_of_a_stranger(body):
    assert failure(reply, body, b"").status is Status.STRANGER


HEALTH = [calls.ServerLive(), calls.ServerReady(), calls.ModelReady("m")]


@pytest.mark.parametrize("call", HEALTH)
def test_only_a_triton_is_healthy(call):
    assert answer(call, 200, b"") is True
    assert answer(call, 400, b"") is False
    assert answer(call, 400, b'{"error": "Model version not ready"}') is False
    page = failure(answer, call, 200, b"<html>hello</html>")
    assert (page.status, page.own) == (Status.STRANGER, False)
    assert failure(answer, call, 404, b"<html>not found</html>").own is False
    assert failure(answer, call, 503, b"").status is Status.UNAVAILABLE


@pytest.mark.parametrize("status", [429, 503])
def test_a_proxy_that_has_enough_is_not_taken_for_triton(status):
    found = failure(answer, calls.ServerMetadata(), status, b"<html>slow down</html>")
    assert (found.status, found.own) == (Status.UNAVAILABLE, False)
    assert failure(reply, b"slow down", b"", status=status).own is False
    assert failure(answer, calls.ServerMetadata(), 503, b'{"error": "queue is full"}').own is True


@pytest.mark.parametrize("body", [b'{"model_stats": null}', b'{"model_stats": {}}', b"{}"])
def test_statistics_that_are_none_are_those_of_a_stranger(body):
    assert failure(answer, calls.ModelStatistics("m"), 200, body).status is Status.STRANGER


def test_sizes_in_a_config_are_numbers_and_texts_of_the_users_stay():
    config = {"name": "m", "sequence_batching": {"state": [{"initial_state": [{"dims": ["1", "-1"]}]}]}, "metric_tags": {"dims": "5"}}
    found = answer(calls.ModelConfiguration("m"), 200, json.dumps(config).encode())
    assert found["sequence_batching"]["state"][0]["initial_state"][0]["dims"] == [1, -1]
    assert found["metric_tags"] == {"dims": "5"}


def test_an_answer_without_an_output_that_was_asked_for_is_an_error():
    check_outputs("m", {"y": 1, "z": 2}, ["y"])
    with pytest.raises(ServerError, match="without 'z', which was asked for; the answer has 'y'"):
        check_outputs("m", {"y": 1}, ["y", "z"])
