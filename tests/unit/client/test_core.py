import numpy as np
import pytest

from tritongen.client.endpoint import parse_url
from tritongen.client.failures import missing_model
from tritongen.client.metadata import model_meta
from tritongen.client.requests import MAX_REQUEST_BYTES, check_size, prepare
from tritongen.errors import InputError, InvalidInput, ModelNotFound, ModelNotReady
from tritongen.samples import SAMPLES_PARAMETER
from tritongen.workflow.asking import statistics
from tritongen.workflow.inputs import Origin, make_inputs, prepare_inputs


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
    tensors = [{"name": "x", "datatype": "FP32", "shape": list(shape)}]
    return model_meta({"name": "m", "versions": ["1", "2"], "inputs": tensors, "outputs": []}, {"max_batch_size": max_batch_size, **(config or {})})


def test_metadata_and_config_are_one_value():
    assert (meta().version, meta().inputs[0].shape) == ("2", (-1, -1, 3))


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "input 'x' is missing"),
        ({"x": np.zeros((1, 2, 3), np.float32), "z": np.zeros(1)}, "no input 'z'"),
        ({"x": np.zeros((1, 2, 4), np.float32)}, "must have the shape"),
        ({"x": np.zeros((2, 3), np.float32)}, "must have the shape"),
        ({"x": np.zeros((0, 2, 3), np.float32)}, "no rows"),
        ({"x": np.zeros((1, 2, 3))}, "must be FP32"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_before_it_is_sent(arrays, words):
    with pytest.raises(InputError, match=words):
        prepare(meta(), arrays)


@pytest.mark.parametrize("value", [[[[1, 2, 3.5]]], (((1, 2, 3.5),),), np.array([[[1, 2, 3.5]]], np.float32)])
def test_plain_lists_become_the_models_dtype(value):
    array = prepare(meta(), {"x": value}).arrays["x"]
    assert (array.dtype, array.shape) == (np.float32, (1, 1, 3))


def test_arrays_of_text_become_bytes():
    tensors = [{"name": "x", "datatype": "BYTES", "shape": [-1, 2]}]
    text = model_meta({"name": "m", "inputs": tensors, "outputs": []}, {"max_batch_size": 4})
    assert prepare(text, {"x": np.array([["a", "é"]])}).arrays["x"].tolist() == [[b"a", "é".encode()]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"x": 1, "z": 2}, ["expected the shape", "no input 'z'"]),
        ({"x": [[["a", "b", "c"]]]}, ["the text 'a'"]),
        ({"x": None}, ["got null"]),
        ({"x": np.zeros((1, 2, 3))}, ["must be FP32 (float32), got float64"]),
        ({"x": [[[1, 2, 1e39]]]}, ["does not fit FP32: 1e+39"]),
    ],
)
def test_values_that_cannot_be_sent_are_refused_together(values, words):
    with pytest.raises(InputError) as error:
        prepare(meta(), values)
    for word in words:
        assert word in str(error.value)
    assert len(error.value.diagnostics) == len(words)


def test_a_request_beyond_one_grpc_message_is_refused_with_the_number():
    check_size(MAX_REQUEST_BYTES, "m")
    with pytest.raises(InputError, match="3000000000 bytes"):
        check_size(3_000_000_000, "m")


INDEX = [
    {"name": "bert", "version": "1", "state": "READY"},
    {"name": "bert", "version": "2", "state": "UNAVAILABLE", "reason": "unloaded"},
    {"name": "broken", "version": "1", "state": "UNAVAILABLE", "reason": "no such file"},
    {"name": "never_loaded"},
]


@pytest.mark.parametrize(
    ("model", "version", "words"),
    [
        ("brt", "", "no model 'brt'; it has 'bert', 'broken', 'never_loaded'"),
        ("broken", "", "version 1: no such file"),
        ("bert", "2", "no version 2"),
    ],
)
def test_a_model_that_is_not_there_is_explained_with_the_servers_list(model, version, words):
    assert words in str(missing_model(model, version, INDEX))


def test_a_model_that_is_there_is_not_missing():
    assert missing_model("bert", "", INDEX) is None
    assert isinstance(missing_model("bert", "2", INDEX), ModelNotFound)
    assert isinstance(missing_model("broken", "", INDEX), ModelNotReady)


def test_the_closest_model_is_offered_and_an_empty_server_is_said():
    assert "did you mean 'bert'" in missing_model("brt", "", INDEX).hint
    assert "none at all" in str(missing_model("brt", "", []))


def test_an_optional_input_may_be_left_out_but_not_all_of_them():
    tensors = [{"name": name, "datatype": "FP32", "shape": [2]} for name in "xy"]
    optional = model_meta({"name": "m", "inputs": tensors, "outputs": []}, {"input": [{"name": name, "optional": True} for name in "xy"]})
    assert list(prepare(optional, {"y": [1, 2]}).arrays) == ["y"]
    with pytest.raises(InvalidInput, match="no input at all"):
        prepare(optional, {})


WARM = {"model_warmup": [{"inputs": {"x": {"dims": ["5", "3"]}}}]}


def test_sizes_come_from_the_option_or_from_the_models_own_warmup():
    assert make_inputs(meta(), given={}, shapes={"x": (4, 3)}, batch=2)["x"].shape == (2, 4, 3)
    assert make_inputs(meta(config=WARM), given={}, shapes={}, batch=2)["x"].shape == (2, 5, 3)
    with pytest.raises(InputError, match=r"--shape x=\?x3"):
        make_inputs(meta(), given={}, shapes={}, batch=1)


def test_a_given_item_is_repeated_and_a_given_batch_is_not():
    item = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert make_inputs(meta(), given={"x": item}, shapes={}, batch=3)["x"].shape == (3, 2, 3)
    assert make_inputs(meta(), given={"x": item[np.newaxis]}, shapes={})["x"].shape == (1, 2, 3)
    with pytest.raises(InputError, match="'x' has 1, and --batch 3"):
        make_inputs(meta(), given={"x": item[np.newaxis]}, shapes={}, batch=3)


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
    assert meta(config={"parameters": {SAMPLES_PARAMETER: {"string_value": text}}}).samples == {}


def bert(*, max_batch_size=8, samples=None):
    """Token ids and their mask, both of 128 in the warmup; a table of 64 rows that has nothing to do with them."""
    lead = [-1] if max_batch_size else []
    tensors = [{"name": name, "datatype": "INT64", "shape": [*lead, *dims]} for name, dims in (("ids", [-1]), ("mask", [-1]), ("table", [-1, 4]))]
    warm = {"model_warmup": [{"inputs": {"ids": {"dims": ["128"]}, "mask": {"dims": ["128"]}, "table": {"dims": ["64", "4"]}}}]}
    sample = {"parameters": {SAMPLES_PARAMETER: {"string_value": samples}}} if samples else {}
    return model_meta({"name": "bert", "inputs": tensors, "outputs": []}, {"max_batch_size": max_batch_size, **warm, **sample})


def shapes_of(prepared):
    return {name: array.shape for name, array in prepared.arrays.items()}


def test_inputs_that_are_made_up_follow_the_given_one_in_rows_and_length():
    prepared = prepare_inputs(bert(), given={"ids": np.ones((2, 3), np.int64)}, shapes={})
    assert shapes_of(prepared) == {"ids": (2, 3), "mask": (2, 3), "table": (2, 64, 4)}
    assert prepared.origins == {"ids": Origin.GIVEN, "mask": Origin.RANDOM, "table": Origin.RANDOM}


def test_a_given_shape_is_followed_too_and_an_item_leaves_the_rows_open():
    assert shapes_of(prepare_inputs(bert(), given={}, shapes={"mask": (7,)}, batch=2)) == {"ids": (2, 7), "mask": (2, 7), "table": (2, 64, 4)}
    assert shapes_of(prepare_inputs(bert(), given={"ids": [1, 2]}, shapes={}, batch=3)) == {"ids": (3, 2), "mask": (3, 2), "table": (3, 64, 4)}
    unbatched = prepare_inputs(bert(max_batch_size=0), given={"ids": [1, 2]}, shapes={})
    assert shapes_of(unbatched) == {"ids": (2,), "mask": (2,), "table": (64, 4)}


def test_sizes_that_disagree_say_nothing_about_a_third():
    """Two given inputs of one size in the warmup, and now of two: the third keeps what the warmup has."""
    tensors = [{"name": name, "datatype": "FP32", "shape": [-1]} for name in "abc"]
    warm = {"model_warmup": [{"inputs": {name: {"dims": ["5"]} for name in "abc"}}]}
    three = model_meta({"name": "m", "inputs": tensors, "outputs": []}, warm)
    assert make_inputs(three, given={"a": [1, 2], "b": [1, 2, 3]}, shapes={})["c"].shape == (5,)


def test_a_sample_of_the_spec_is_used_where_its_length_fits():
    samples = '{"mask": [1, 0, 1]}'
    prepared = prepare_inputs(bert(samples=samples), given={"ids": [4, 5, 6]}, shapes={}, batch=2)
    assert prepared.arrays["mask"].tolist() == [[1, 0, 1]] * 2
    assert prepared.origins["mask"] is Origin.SPEC
    other = prepare_inputs(bert(samples=samples), given={"ids": [4, 5]}, shapes={})
    assert (other.arrays["mask"].shape, other.origins["mask"]) == ((1, 2), Origin.RANDOM)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"given": {"ids": np.ones((2, 3), np.int64), "mask": np.ones((3, 3), np.int64)}}, "'ids' has 2, 'mask' has 3"),
        ({"given": {"ids": np.ones((9, 3), np.int64)}}, "8 rows at most, and 9"),
        ({"given": {"ids": "1,2,3"}}, r"write a list as ids=\[1,2,3\]"),
        ({"given": {"ids": "data.bin"}}, "only|no other kind of file"),
        ({"given": {"ids": None}}, "got null"),
        ({"given": {"ids": [1, 2]}, "shapes": {"ids": (3,)}}, r"expected the shape \[3\], got \[2\]"),
    ],
)
def test_given_inputs_that_do_not_go_together_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        make_inputs(bert(), **{"shapes": {}, **arguments})


@pytest.mark.parametrize("arguments", [{"batch": 1_000_000_000, "shapes": {}}, {"batch": 8, "shapes": {"ids": (2_000_000_000,)}}])
def test_nothing_is_allocated_for_a_request_that_is_refused(arguments):
    """Either would take more memory than a machine has: the refusal must come first."""
    with pytest.raises(InputError, match=r"8 rows at most|\(2 GiB\)"):
        make_inputs(bert(), given={}, **arguments)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([1, 2, 6], np.int64), "min 1  mean 3  max 6"),
        (np.array([1, np.nan, np.inf, 3], np.float16), "min 1  mean 2  max 3  not finite 2"),
        (np.array([np.nan]), "no finite value  not finite 1"),
        (np.zeros((0, 3)), "no elements"),
        (np.array([b"a"], object), "first b'a'"),
        (np.concatenate([np.zeros(1 << 20), np.ones(1 << 20), [-1]]), "min -1  mean 0.5  max 1"),
    ],
)
def test_statistics_count_what_is_not_finite_apart(values, words):
    assert statistics(values) == words
