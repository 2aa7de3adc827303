"""Models whose sequences have controls and states: what Triton fills in is neither sent nor answered."""

from __future__ import annotations

import networks
import pytest

from tests.unit.workflow.rewriting import render

CONTROL = "control_input: [{name: START, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}]}]"
STATE = "state: [{input_name: before, output_name: after, data_type: TYPE_FP32, dims: [4]}]"


def rendered(tmp_path, parts, keys="", more=""):
    networks.running_total(tmp_path / "m.onnx")
    fields = ", ".join(["max_sequence_idle_microseconds: 60000000", *parts])
    return render(tmp_path, f"source: m.onnx\n{keys}config: {{sequence_batching: {{{fields}}}{more}}}")


def names(tensors):
    return [tensor.name for tensor in tensors]


@pytest.mark.parametrize("keys", ["", "backend: tensorrt\ninstances: {kind: gpu}\n"])
def test_controls_and_states_are_no_inputs_and_no_outputs(keys, tmp_path):
    outcome = rendered(tmp_path, [CONTROL, STATE], keys)
    assert outcome.errors == []
    assert (names(outcome.config.input), names(outcome.config.output)) == (["x"], ["y"])
    assert "# Neither sent nor answered, since sequence_batching fills it in or keeps it: 'START', 'before', 'after'." in outcome.text
    assert not outcome.config.model_warmup, "a warmup belongs to no sequence, and has no state"


def test_a_state_that_is_asked_for_is_answered_too(tmp_path):
    assert names(rendered(tmp_path, [CONTROL, STATE], more=", output: [{name: after}]").config.output) == ["y", "after"]


def test_an_input_that_is_asked_for_is_refused_where_it_stands(tmp_path):
    (found,) = [each for each in rendered(tmp_path, [CONTROL, STATE], more=", input: [{name: START}]").errors if each.code == "TG334"]
    assert "input 'START' is a control tensor of sequence_batching too" in found.message
    assert found.hint == "remove it from `input`"


def test_controls_are_warmed_up_with(tmp_path):
    outcome = rendered(tmp_path, [CONTROL])
    assert outcome.errors == []
    assert names(outcome.config.input) == ["x", "before"]
    assert [sorted(sample.inputs) for sample in outcome.config.model_warmup] == [["START", "before", "x"]] * 2


def test_names_that_the_model_has_not_are_said_each(tmp_path):
    wrong = [CONTROL.replace("START,", "BEGIN,"), STATE.replace("before", "earlier").replace("after", "later")]
    found = [each for each in rendered(tmp_path, wrong).errors if each.code == "TG103"]
    assert [each.message for each in found] == [
        "the model has no input 'BEGIN'",
        "the model has no input 'earlier'",
        "the model has no output 'later'",
    ]


def test_a_warmup_that_is_asked_for_of_a_model_with_states_has_no_effect(tmp_path):
    outcome = rendered(tmp_path, [STATE], "warmup: [1]\n")
    assert outcome.one("TG117").message == "warmup has no effect: a model with states is not warmed up"
