"""The size of a sample: what is proved is what is warmed up, and lies within the sizes that are served."""

import networks
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.unit.workflow.rewriting import ROOT, render

PLAN = "source: m.onnx\nbackend: tensorrt\ninstances: {kind: gpu}\nbatching: {max: 2}\n"


@pytest.fixture(autouse=True)
def lengths(tmp_path):
    """Rows of any length."""
    shapes = ([(name, TensorProto.FLOAT, ["N", "S"])] for name in "xy")
    networks.save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], *shapes, [])


@pytest.mark.parametrize(
    "sizes",
    ["shapes: {x: {min: [1], opt: [8], max: [16]}}", "tensorrt: {profiles: [{shapes: {x: {min: [1], opt: [8], max: [16]}}}]}"],
    ids=["shapes", "profiles"],
)
def test_a_sample_is_warmed_up_as_it_is(tmp_path, sizes):
    outcome = render(tmp_path, f"{PLAN}{sizes}\nsamples: {{x: [1, 2, 3]}}")
    assert outcome.errors == []
    (sample, *_) = outcome.config.model_warmup
    assert list(sample.inputs["x"].dims) == [3]
    assert np.fromfile(tmp_path / ROOT / "m/warmup" / sample.inputs["x"].input_data_file, "<f4").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("shapes", "served"), [("[8]", "[8]"), ("{min: [4], opt: [8], max: [16]}", "[4] to [16]"), ("{min: [1], opt: [2], max: [2]}", "[1] to [2]")]
)
def test_a_sample_of_a_size_that_is_not_served_is_refused_where_it_stands(tmp_path, shapes, served):
    outcome = render(tmp_path, f"source: m.onnx\nshapes: {{x: {shapes}}}\nsamples: {{x: [1, 2, 3]}}")
    assert [(found.code, found.location.line) for found in outcome.errors] == [("TG116", 7)]
    assert f"the sample of 'x' has the size [3], and the model is to be served for {served} (" in outcome.errors[0].message


def test_a_sample_between_the_profiles_of_a_plan_is_refused_where_it_stands(tmp_path):
    profiles = "[{shapes: {x: {min: [1], opt: [2], max: [2]}}}, {shapes: {x: {min: [4], opt: [8], max: [8]}}}]"
    outcome = render(tmp_path, f"{PLAN}tensorrt: {{profiles: {profiles}}}\nsamples: {{x: [1, 2, 3]}}")
    assert [(found.code, found.location.line) for found in outcome.errors] == [("TG186", 10)]
    assert "the sample of 'x' has the size [3], and the plan takes [1 to 2] or [4 to 8]" in outcome.errors[0].message
