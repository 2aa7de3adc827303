"""Joining and splitting of ragged batches, and the states of sequences, without a server."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tritongen.server.backends.onnxruntime.errors import RefusedError
from tritongen.server.backends.onnxruntime.ragged import Assembly, SplitError
from tritongen.server.backends.onnxruntime.states import StateError, States

START, END = 1, 2
TRITON = SimpleNamespace(TRITONSERVER_REQUEST_FLAG_SEQUENCE_START=START, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END=END)


def config(**changes):
    return {
        "name": "m",
        "max_batch_size": 8,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1"], "allow_ragged_batch": True}, {"name": "t", "data_type": "TYPE_FP32", "dims": ["1"]}],
        "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": ["-1"]}, {"name": "z", "data_type": "TYPE_FP32", "dims": ["1"]}],
        "batch_input": [
            {"kind": "BATCH_ACCUMULATED_ELEMENT_COUNT", "target_name": ["ends"], "data_type": "TYPE_INT32", "source_input": ["x"]},
            {"target_name": ["counts"], "data_type": "TYPE_FP32", "source_input": ["x"]},
        ],
        "batch_output": [{"target_name": ["y"], "source_input": ["x"]}],
    } | changes


def feed(*values, tag=0.0):
    return {"x": np.array([values], np.float32), "t": np.array([[tag]], np.float32)}


def test_ragged_inputs_become_one_dimension_and_others_rows():
    joined = Assembly.of(config()).join([feed(1, 2, 3, tag=7), feed(4, tag=8)])
    np.testing.assert_array_equal(joined["x"], [1, 2, 3, 4])
    np.testing.assert_array_equal(joined["t"], [[7], [8]])
    np.testing.assert_array_equal(joined["ends"], [3, 4])
    assert joined["ends"].dtype == np.int32
    np.testing.assert_array_equal(joined["counts"], [3, 1])
    assert joined["counts"].dtype == np.float32


def test_each_request_gets_its_part_in_its_own_shape():
    feeds = [feed(1, 2, 3), feed(4)]
    first, second = Assembly.of(config()).split(["y", "z"], [np.arange(4.0), np.array([[5.0], [6.0]])], feeds)
    np.testing.assert_array_equal(first["y"], [[0, 1, 2]])
    np.testing.assert_array_equal(second["y"], [[3]])
    np.testing.assert_array_equal(first["z"], [[5]])
    np.testing.assert_array_equal(second["z"], [[6]])


@pytest.mark.parametrize("size", [3, 5])
def test_other_elements_than_the_requests_have_are_an_error(size):
    with pytest.raises(SplitError, match=f"'y' in responses: by the shapes of 'x' the requests are due 4 elements, and the model made {size}"):
        Assembly.of(config()).split(["y"], [np.zeros(size)], [feed(1, 2, 3), feed(4)])


def test_a_dimension_that_the_source_lacks_is_an_error():
    output = [{"name": "y", "data_type": "TYPE_FP32", "dims": ["-1", "-1"]}]
    with pytest.raises(SplitError, match="it has 3 dimensions, the batch among them, and 'x' has 2"):
        Assembly.of(config(output=output)).split(["y"], [np.zeros(4)], [feed(1, 2, 3, 4)])


def test_a_source_that_was_left_out_is_named():
    with pytest.raises(ValueError, match="input 'x' is left out"):
        Assembly.of(config()).join([{"t": np.zeros((1, 1), np.float32)}])


def state(**changes):
    entry = {"input_name": "before", "output_name": "after", "data_type": "TYPE_FP32", "dims": ["1"], "initial_state": [{"name": "i"}]} | changes
    return {"sequence_batching": {"state": [entry], "max_sequence_idle_microseconds": "1000000"}}


def request(number, flags=0, outputs=("y",)):
    return SimpleNamespace(correlation_id=lambda: number, flags=lambda: flags, requested_output_names=lambda: set(outputs))


def step(states, number, flags=0, answer=0.0, initial=3.0):
    """What the network sees as the state, for a request that it answers so."""
    given = {"before": np.array([[initial]])}
    states.fill(request(number, flags), given)
    states.keep(request(number, flags), {"after": np.array([[answer]])})
    return float(given["before"][0, 0])


def test_a_sequence_goes_on_from_its_last_answer_and_starts_from_the_initial_state():
    states = States(state(), TRITON)
    assert [step(states, 5, START, 10), step(states, "a", START, 20), step(states, 5, 0, 11), step(states, "a", 0, 21)] == [3, 3, 10, 20]
    assert [step(states, 5, END, 12), step(states, 5, START, 13), step(states, 5, START, 14)] == [11, 3, 3]
    assert step(states, 9, START | END) == 3
    with pytest.raises(StateError, match="the state of sequence 9 is not here"):
        step(states, 9)


def test_a_state_without_an_initial_one_starts_as_zeros():
    assert step(States(state(initial_state=[]), TRITON), 5, START, initial=float("nan")) == 0


def test_an_abandoned_sequence_is_forgotten_when_another_starts():
    now = 0.0
    states = States(state(), TRITON, lambda: now)
    step(states, 5, START, 10)
    now = 61.0
    step(states, 6, START)
    assert step(states, 5, 0, 11) == 10
    now = 130.0
    step(states, 7, START)
    with pytest.raises(StateError, match="idle for too long"):
        step(states, 5)


def test_growable_memory_is_refused():
    with pytest.raises(RefusedError, match="state 'before' is to be kept in growable memory"):
        States(state(use_growable_memory=True), TRITON)
