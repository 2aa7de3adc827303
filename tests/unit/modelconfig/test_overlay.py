import pytest

from tritongen.modelconfig import ModelConfig, merge_overlay


def config():
    made = ModelConfig(name="m", max_batch_size=4)
    made.input.add(name="x", data_type="TYPE_FP32", dims=[3])
    made.dynamic_batching.max_queue_delay_microseconds = 100
    made.parameters["a"].string_value = "1"
    return made


def test_messages_and_maps_merge_key_by_key():
    made = config()
    overlay = {"dynamic_batching": {"preserve_ordering": True}, "parameters": {"b": {"string_value": "2"}}, "response_cache": {"enable": True}}
    assert merge_overlay(made, overlay) == []
    assert made.dynamic_batching.max_queue_delay_microseconds == 100
    assert made.dynamic_batching.preserve_ordering
    assert {key: value.string_value for key, value in made.parameters.items()} == {"a": "1", "b": "2"}
    assert made.response_cache.enable


def test_inputs_merge_by_their_name():
    made = config()
    assert merge_overlay(made, {"input": [{"name": "x", "format": "FORMAT_NCHW"}]}) == []
    assert list(made.input[0].dims) == [3]
    assert made.input[0].format == 2


def test_other_lists_replace_what_was_there():
    made = config()
    made.instance_group.add(count=5)
    assert merge_overlay(made, {"instance_group": [{"kind": "KIND_CPU", "count": 2}], "dynamic_batching": {"preferred_batch_size": [2, 4]}}) == []
    assert [(group.kind, group.count) for group in made.instance_group] == [(2, 2)]
    assert list(made.dynamic_batching.preferred_batch_size) == [2, 4]


def test_an_empty_mapping_sets_the_message():
    made = ModelConfig()
    assert merge_overlay(made, {"dynamic_batching": {}}) == []
    assert made.HasField("dynamic_batching")


def test_keys_of_a_map_may_be_numbers():
    made = config()
    assert merge_overlay(made, {"dynamic_batching": {"priority_queue_policy": {1: {"max_queue_size": 3}, "2": {"max_queue_size": 4}}}}) == []
    assert {key: value.max_queue_size for key, value in made.dynamic_batching.priority_queue_policy.items()} == {1: 3, 2: 4}


@pytest.mark.parametrize(
    ("overlay", "path", "words"),
    [
        ({"instances": 1}, ("instances",), "no field 'instances'"),
        ({"instance_group": [{"kind": "KIND_GPUS"}]}, ("instance_group", 0, "kind"), "KIND_GPU"),
        ({"instance_group": [{"count": "2"}]}, ("instance_group", 0, "count"), "whole number"),
        ({"instance_group": [{"count": 2**31}]}, ("instance_group", 0, "count"), "whole number"),
        ({"instance_group": [{"count": True}]}, ("instance_group", 0, "count"), "whole number"),
        ({"response_cache": True}, ("response_cache",), "mapping"),
        ({"response_cache": {"enable": "yes"}}, ("response_cache", "enable"), "true or false"),
        ({"parameters": {"a": "1"}}, ("parameters", "a"), "string_value"),
        ({"parameters": {"a": {"string_value": 1}}}, ("parameters", "a", "string_value"), "text"),
        ({"input": [{"name": "z"}]}, ("input", 0), "no input named 'z'"),
        ({"input": {"name": "x"}}, ("input",), "list"),
        ({"dynamic_batching": {}, "sequence_batching": {}}, ("sequence_batching",), "exclude each other"),
        ({"metric_tags": {"a": 1}}, ("metric_tags", "a"), "text"),
        ({"parameters": []}, ("parameters",), "mapping"),
        ({1: 2}, (1,), "no field 1"),
    ],
)
def test_what_has_no_place_is_named_with_its_path(overlay, path, words):
    problems = merge_overlay(config(), overlay)
    assert [problem.path for problem in problems] == [path]
    assert words in problems[0].message + problems[0].hint


def test_all_problems_are_reported():
    assert len(merge_overlay(config(), {"inputs": 1, "outputs": 2, "max_batch_size": "x"})) == 3
