"""Mistakes in what a call is given: one error with all of them, of the same kind over every protocol, and before anything is sent."""

import dataclasses
from types import MappingProxyType

import numpy as np
import pytest

import tritongen
from tritongen.client.arguments import check_load, check_options, check_window, merged
from tritongen.client.calls import ModelConfiguration, ModelReady, ModelStatistics, load_model
from tritongen.client.options import Options
from tritongen.errors import InputError, InvalidInput

LONE = "a\ud800"


def refusals(function, *arguments, **options):
    with pytest.raises(InputError) as error:
        function(*arguments, **options)
    return [str(item) for item in error.value.diagnostics]


@pytest.fixture(params=["http", "grpc"])
def client(request):
    """A client of a server that is not there: what is checked first is refused without it."""
    with tritongen.Client(f"{request.param}://127.0.0.1:1", retries=0, deadline_s=5) as made:
        yield made


WRONG = [
    ({"version": 1.5}, "version is 1.5, not text"),
    ({"version": True}, "version is True"),
    ({"version": -1}, "version is -1"),
    ({"version": LONE}, "version 'a\\ud800' is not valid Unicode"),
    ({"version": "1.0"}, "version is '1.0', and versions are whole numbers"),
    ({"version": "+1"}, "version is '+1'"),
    ({"version": "1/../../x"}, "version is '1/../../x'"),
    ({"version": "\u0663"}, "versions are whole numbers"),
    ({"version": "9" * 5000}, "versions are whole numbers"),
    ({"version": np.zeros(3)}, "version is array([0., 0., 0.]), not text"),
    ({"request_id": "a\0b"}, "request_id 'a\\x00b' holds control characters"),
    ({"request_id": "a\nb"}, "holds control characters"),
    ({"priority": "hi"}, "priority is 'hi', not a whole number from 0"),
    ({"priority": 1.5}, "priority is 1.5"),
    ({"priority": True}, "priority is True"),
    ({"priority": -1}, "priority is -1"),
    ({"priority": 2**63}, "priority is 9223372036854775808"),
    ({"request_id": 5}, "request_id is 5, not text"),
    ({"request_id": LONE}, "not valid Unicode"),
    ({"parameters": {1: 2}}, "a parameter's name is 1, not text"),
    ({"parameters": {LONE: 2}}, "not valid Unicode"),
    ({"parameters": {"a": LONE}}, "the parameter 'a' is 'a\\ud800'"),
    ({"parameters": {"a": float("nan")}}, "the parameter 'a' is nan"),
    ({"parameters": {"a": 2**63}}, "whole ones of 64 bits"),
    ({"parameters": {"a": [1]}}, "the parameter 'a' is [1]"),
    ({"parameters": {"triton_x": 1}}, "belongs to the protocol"),
    ({"parameters": [("a", 1)]}, "parameters are given as list"),
    ({"headers": {5: "a"}}, "the header 5 cannot be sent"),
    ({"headers": [("a", "b")]}, "headers are given as list"),
    ({"headers": {"x-a-bin": "a"}}, "gRPC takes names that end in -bin for bytes"),
    ({"headers": {"content-length": "1"}}, "belongs to the protocol"),
    ({"cast": "foo"}, "cast is 'foo', and can be 'exact' or 'safe'"),
    ({"cast": ["safe"]}, "cast is ['safe']"),
    ({"cast": np.zeros(3)}, "cast is array([0., 0., 0.])"),
    ({"outputs": np.zeros(3)}, "outputs is array([0., 0., 0.])"),
    ({"add_batch_axis": "yes"}, "add_batch_axis is 'yes', not True or False"),
    ({"idempotent": 1}, "idempotent is 1"),
    ({"deadline_s": "5"}, "a time limit of '5' s cannot be kept"),
    ({"deadline_s": True}, "a time limit of True s cannot be kept"),
    ({"outputs": "scores"}, "outputs is 'scores'; write a list, such as ['scores']"),
    ({"outputs": []}, "outputs names no output"),
    ({"outputs": iter(["y"])}, "write a list"),
    ({"outputs": 5}, "outputs is 5; write a list"),
    ({"outputs": [5]}, "an output's name is 5, not text"),
]


@pytest.mark.parametrize(("options", "words"), WRONG, ids=[str(item[1]) for item in WRONG])
def test_an_option_that_no_request_can_have_is_refused(client, options, words):
    (found,) = refusals(client.infer, "m", {"x": 1}, **options)
    assert words in found


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (5, "the model's name is 5, not text"),
        ("", "the model's name is empty"),
        (LONE, "not valid Unicode"),
        (None, "is None"),
        (np.zeros(3), "array"),
        ("..", "no folder of a repository has"),
    ],
)
def test_a_name_that_no_model_has_is_refused_by_every_question(client, model, words):
    questions = [lambda: client.infer(model, {"x": 1}), lambda: client.meta(model), lambda: client.config(model), lambda: client.load(model)]
    for ask in [*questions, lambda: client.unload(model)]:
        with pytest.raises(InvalidInput, match=words):
            ask()


QUESTIONS = [
    (lambda client: client.ready(None), "the model's name is None"),
    (lambda client: client.ready(0), "the model's name is 0"),
    (lambda client: client.ready("", "3"), "version 3 is asked for without a model"),
    (lambda client: client.statistics("", "3"), "without a model"),
    (lambda client: client.wait_ready("", "3"), "without a model"),
    (lambda client: client.repository_index(ready="yes"), "ready is 'yes', not True or False"),
    (lambda client: client.unload("m", dependents="yes"), "dependents is 'yes'"),
    (lambda client: client.load("m", files=[]), "files are given as list"),
    (lambda client: client.load("m", files=0), "files are given as int"),
    (lambda client: client.load("m", config=np.zeros(2)), "config is array"),
    (lambda client: client.sequence(None), "the model's name is None"),
    (lambda client: client.meta("m", deadline_s=-1), "a time limit of -1 s cannot be kept"),
    (lambda client: client.infer("m", {"x": 1}, deadline_s=-1), "a time limit of -1 s cannot be kept"),
    (lambda client: tritongen.client.sync.Model(client, "m", "1").infer(version="2"), "the version is settled already"),
    (lambda client: tritongen.client.sync.Model(client, "m", "1").infer_many([], version="2"), "the version is settled already"),
]


@pytest.mark.parametrize(("ask", "words"), QUESTIONS, ids=[item[1] for item in QUESTIONS])
def test_an_argument_that_no_question_can_have_is_refused(client, ask, words):
    with pytest.raises(InvalidInput) as error:
        ask(client)
    assert words in str(error.value)


@pytest.mark.parametrize("ask", [ModelReady, ModelConfiguration, ModelStatistics])
def test_a_version_may_be_a_number(ask):
    assert ask("m", 3).version == ask("m", np.int32(3)).version == "3"
    assert "version is 1.5" in refusals(ask, "m", 1.5)[0]


def test_every_problem_of_a_call_is_in_one_error(client):
    found = refusals(client.infer, "", {"x": 1}, version=1.5, priority="hi", request_id=5, parameters={1: 2, "b": None}, cast="foo", deadline_s="5", outputs=[])
    assert len(found) == 9
    assert "\n".join(found).count("TG067") == 1


def test_no_message_shows_a_long_value_whole(client):
    long = "v" * 100_000
    given = {"request_id": [long], "parameters": {long: {"a": long}, "b": long.encode()}, "cast": long, "priority": long, "outputs": long, "deadline_s": long}
    found = refusals(client.infer, "m", {"x": 1}, version={"a": [long]}, **given)
    assert len(found) >= 7
    assert max(map(len, found)) < 300


def test_options_are_made_plain():
    given = Options(3, ["b", "a"], np.int64(1), 1, "r", {"f": np.float32(0.5), "i": np.int8(3), "b": np.bool_(True)}, {"X-A": "b"})
    plain = check_options("m", given)
    assert (plain.version, plain.outputs, plain.priority, plain.headers) == ("3", ("b", "a"), 1, {"x-a": "b"})
    assert {name: type(value) for name, value in plain.parameters.items()} == {"f": float, "i": int, "b": bool}
    assert check_options("m", plain) == plain
    assert check_options("m", Options()) == Options()


class TestMerged:
    def test_the_two_forms_make_one(self):
        assert merged({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
        assert merged(None, {"b": 2}) == {"b": 2}

    @pytest.mark.parametrize("inputs", [np.zeros(3), [np.zeros(3)], [1], "x", 5], ids=lambda value: type(value).__name__)
    def test_values_without_names_are_refused(self, inputs):
        (found,) = refusals(merged, inputs, {})
        assert f"given as {type(inputs).__name__}, without names" in found

    def test_a_name_in_both_is_refused(self):
        assert len(refusals(merged, {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 2})) == 2


SETTINGS = [
    ({"deadline_s": "5"}, "TG067 a time limit of '5' s cannot be kept"),
    ({"deadline_s": None}, "a time limit of None s"),
    ({"deadline_s": 1j}, "a time limit of 1j s"),
    ({"compression": "br"}, "TG080 compression is 'br', and can be 'gzip', 'deflate' or None"),
    ({"compression": ["gzip"]}, "compression is ['gzip']"),
    ({"window": 0}, "window is 0, not a whole number from 1"),
    ({"window": -1}, "window is -1"),
    ({"window": 1.5}, "window is 1.5"),
    ({"window": True}, "window is True"),
    ({"retries": -1}, "retries is -1, not a whole number from 0"),
    ({"retries": "3"}, "retries is '3'"),
    ({"idempotent": "no"}, "idempotent is 'no', not True or False"),
]


@pytest.mark.parametrize(("options", "words"), SETTINGS, ids=[item[1] for item in SETTINGS])
@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_setting_that_no_client_can_have_is_refused(kind, options, words):
    (found,) = refusals(getattr(tritongen, kind), "http://127.0.0.1:1", **options)
    assert words in found


def test_every_setting_that_is_wrong_is_said():
    assert len(refusals(tritongen.Client, "http://127.0.0.1:1", deadline_s=0, retries=-1, window=0, compression="br", idempotent=None)) == 5


def test_a_window_is_a_whole_number():
    assert check_window(np.int64(3)) == 3
    for wrong in (0, -1, 1.5, None, True):
        assert "TG080 window" in refusals(check_window, wrong)[0]


class TestLoad:
    def test_a_config_may_be_a_mapping_and_a_file_text(self):
        config, files = check_load("m", {"max_batch_size": 4}, {"1/a.txt": "é", "1/sub/b": b"b", "2/c": bytearray(b"c")})
        assert config == '{"max_batch_size": 4}'
        assert files == {"1/a.txt": "é".encode(), "1/sub/b": b"b", "2/c": b"c"}
        assert dataclasses.astuple(load_model("m", {"a": 1}, {"1/x": "y"})) == ("m", '{"a": 1}', {"1/x": b"y"})
        assert check_load("m", "", {}) == check_load("m", "", None) == ("", {})
        assert check_load("m", MappingProxyType({"a": 1}), {})[0] == '{"a": 1}'

    @pytest.mark.parametrize(
        ("config", "files", "words"),
        [
            ("{", {}, "config is no JSON"),
            ("[1]", {}, "no ModelConfig"),
            ({"a": object()}, {}, "config is no JSON"),
            (f'{{"a": "{LONE}"}}', {}, "valid Unicode"),
            (5, {}, "config is 5"),
            ("{}", {"a": b""}, "the file 'a' is not named <version>/<name>"),
            ("{}", {"x/a": b""}, "not named"),
            ("{}", {"1/": b""}, "not named"),
            ("{}", {"1/../../a": b""}, "not named"),
            ("{}", {f"1/{LONE}": b""}, "not named"),
            ("{}", {5: b""}, "the file 5 is not named"),
            ("{}", {"1/a": 5}, "the content of the file '1/a' is int"),
            ("{}", {"1/a": LONE}, "valid Unicode"),
            ("{}", [("1/a", b"")], "files are given as list"),
            ("", {"1/a": b""}, "a config must come with them"),
        ],
    )
    def test_what_no_model_is_loaded_with_is_refused(self, client, config, files, words):
        assert any(words in found for found in refusals(client.load, "m", config=config, files=files))
