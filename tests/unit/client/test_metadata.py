"""What a server says about a model, and what a stranger says in its place."""

import re

import pytest

from tritongen.client.metadata import model_meta

INPUT = {"name": "x", "datatype": "FP32", "shape": [-1, 3]}


def described(**metadata):
    return {"name": "m", "versions": ["1"], "inputs": [INPUT], "outputs": [INPUT], **metadata}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"inputs": [{**INPUT, "datatype": "FP8"}]}, "the tensor 'x' has the datatype 'FP8', which is not known here"),
        ({"inputs": [{**INPUT, "datatype": None}]}, "datatype is None"),
        ({"inputs": None}, "inputs is None, not a list of objects"),
        ({"inputs": [{}]}, "name is None, not text"),
        ({"inputs": [5]}, "not a list of objects"),
        ({"inputs": {"x": INPUT}}, "not a list of objects"),
        ({"outputs": [{**INPUT, "shape": ["a"]}]}, "has the shape ['a']"),
        ({"outputs": [{**INPUT, "shape": [1.5]}]}, "has the shape [1.5]"),
        ({"outputs": [{**INPUT, "shape": [-2]}]}, "has the shape [-2]"),
        ({"outputs": [{**INPUT, "shape": None}]}, "has the shape None"),
        ({"name": 5}, "name is 5, not text"),
        ({"versions": 3}, "versions is 3"),
        ({"versions": [1]}, "versions is [1]"),
    ],
)
def test_metadata_that_is_no_tritons_is_said_in_a_sentence(metadata, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        model_meta(described(**metadata), {})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_batch_size": "many"}, "max_batch_size is 'many', not a whole number"),
        ({"max_batch_size": None}, "max_batch_size is None"),
        ({"max_batch_size": -1}, "max_batch_size is -1"),
        ({"input": [{}]}, "name is None"),
        ({"input": "x"}, "input is 'x'"),
        ({"model_transaction_policy": 1}, "model_transaction_policy is 1, not an object"),
        ({"dynamic_batching": [1]}, "dynamic_batching is [1]"),
        ({"dynamic_batching": {"default_priority_level": "high"}}, "default_priority_level is 'high'"),
        ({"dynamic_batching": {"priority_queue_policy": {"high": {}}}}, "levels ['high']"),
        ({"dynamic_batching": {"priority_queue_policy": {"1": 5}}}, "1 is 5, not an object"),
        ({"dynamic_batching": {"default_queue_policy": {"default_timeout_microseconds": "x"}}}, "default_timeout_microseconds is 'x'"),
    ],
)
def test_a_config_that_is_no_tritons_is_said_in_a_sentence(config, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        model_meta(described(), config)


def test_the_queue_policy_of_the_default_level_counts_for_none():
    own, general = ({"default_timeout_microseconds": limit} for limit in (7, 1))
    batching = {"default_priority_level": 2, "priority_queue_policy": {"2": own}, "default_queue_policy": general}
    policies = model_meta(described(), {"dynamic_batching": batching}).queue_policies
    assert {level: policy.timeout_us for level, policy in policies.items()} == {0: 7, 2: 7}
