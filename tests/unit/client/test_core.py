import numpy as np
import pytest

from tritongen.client import parse_url
from tritongen.client.core import check_request, model_meta
from tritongen.errors import InputError
from tritongen.samples import SAMPLES_PARAMETER
from tritongen.workflow.asking import make_inputs, sample_values


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("grpc://host:8001", ("grpc", "host:8001", False)),
        ("grpc://host", ("grpc", "host:8001", False)),
        ("grpcs://host", ("grpc", "host:8001", True)),
        ("http://host", ("http", "host:8000", False)),
        ("https://host:443/", ("http", "host:443", True)),
        ("http://[::1]:8000", ("http", "[::1]:8000", False)),
    ],
)
def test_the_address_carries_the_protocol(url, want):
    endpoint = parse_url(url)
    assert (endpoint.protocol, endpoint.authority, endpoint.tls) == want


@pytest.mark.parametrize("url", ["", "host:8000", "ftp://host", "http://", "http://host:port", "http://host/v2", "grpc://a b", "http://host?x=1"])
def test_anything_else_is_refused_with_an_example(url):
    with pytest.raises(InputError) as error:
        parse_url(url)
    assert "grpc://host:8001" in error.value.diagnostics[0].hint


def meta(*, max_batch_size=8, shape=(-1, -1, 3), config=None):
    tensors = [{"name": "x", "datatype": "FP32", "shape": [str(dim) for dim in shape]}]
    return model_meta({"name": "m", "versions": ["1", "2"], "inputs": tensors, "outputs": []}, {"max_batch_size": max_batch_size, **(config or {})})


def test_metadata_of_either_protocol_is_one_value():
    assert (meta().version, meta().inputs[0].shape) == ("2", (-1, -1, 3))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "input 'x' is missing"),
        ({"x": np.zeros((1, 2, 3), np.float32), "z": np.zeros(1)}, "no input 'z'"),
        ({"x": np.zeros((1, 2, 4), np.float32)}, "must have the shape"),
        ({"x": np.zeros((2, 3), np.float32)}, "must have the shape"),
        ({"x": np.zeros((9, 2, 3), np.float32)}, "9 rows"),
        ({"x": np.zeros((1, 2, 3))}, "must be FP32"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_before_it_is_sent(arrays, words):
    with pytest.raises(InputError, match=words):
        check_request(meta(), arrays)


def test_an_optional_input_may_be_left_out():
    check_request(meta(config={"input": [{"name": "x", "optional": True}]}), {})


WARM = {"model_warmup": [{"inputs": {"x": {"dims": ["5", "3"]}}}]}


def test_sizes_come_from_the_option_or_from_the_models_own_warmup():
    assert make_inputs(meta(), given={}, shapes={"x": (4, 3)}, batch=2)["x"].shape == (2, 4, 3)
    assert make_inputs(meta(config=WARM), given={}, shapes={}, batch=2)["x"].shape == (2, 5, 3)
    with pytest.raises(InputError, match=r"--shape x=\?x3"):
        make_inputs(meta(), given={}, shapes={}, batch=1)


def test_a_given_item_is_repeated_and_a_given_batch_is_not():
    item = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert make_inputs(meta(), given={"x": item}, shapes={}, batch=3)["x"].shape == (3, 2, 3)
    assert make_inputs(meta(), given={"x": item[np.newaxis]}, shapes={}, batch=3)["x"].shape == (1, 2, 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"given": {"z": 1}, "shapes": {}, "batch": 1}, "no input 'z'"),
        ({"given": {}, "shapes": {"x": (4, 3)}, "batch": 9}, "8 rows at most"),
        ({"given": {}, "shapes": {"x": (4, 4)}, "batch": 1}, "--shape gives"),
        ({"given": {"x": "text"}, "shapes": {}, "batch": 1}, "expected numbers"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        make_inputs(meta(), **arguments)


def test_rows_are_refused_for_a_model_that_does_not_batch():
    with pytest.raises(InputError, match="does not batch"):
        make_inputs(meta(max_batch_size=0, shape=(2, 3)), given={}, shapes={}, batch=2)


@pytest.mark.parametrize("text", ["no json", "[1]", "3"])
def test_a_parameter_of_somebody_else_is_no_sample(text):
    assert sample_values(meta(config={"parameters": {SAMPLES_PARAMETER: {"string_value": text}}})) == {}
