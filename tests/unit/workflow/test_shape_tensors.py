"""Inputs whose values are sizes: the values that their plan takes are those that are warmed up, proved, and sent by others."""

import json

import networks
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.unit.workflow.rewriting import ROOT, render
from tritongen.diagnostics import Severity
from tritongen.modelconfig import parse_pbtxt

PLAN = "source: m.onnx\nbackend: tensorrt\nbatching: none\ninstances: {kind: gpu}\n"
RANGE = "tensorrt: {shape_tensors: {size: {min: [1, 3, 2, 2], opt: [1, 3, 8, 6], max: [1, 3, 16, 16]}}}\n"


@pytest.fixture
def resize(tmp_path):
    """`x` resized to the sizes in `size`, none of which may be 0."""
    node = helper.make_node("Resize", ["x", "", "", "size"], ["y"], mode="nearest")
    inputs = [("x", TensorProto.FLOAT, [1, 3, 4, 4]), ("size", TensorProto.INT64, [4])]
    networks.save(tmp_path / "m.onnx", [node], inputs, [("y", TensorProto.FLOAT, [1, 3, "h", "w"])], [], opset=17)
    return tmp_path


def warmed(folder, dtype, name="size"):
    """The values of an input in the first warmup sample."""
    config = parse_pbtxt((folder / ROOT / "m/config.pbtxt").read_text())
    sample = config.model_warmup[0].inputs[name]
    return np.frombuffer((folder / ROOT / "m/warmup" / sample.input_data_file).read_bytes(), dtype).tolist()


def test_the_values_that_the_plan_is_tuned_for_are_warmed_up_and_proved(resize):
    outcome = render(resize, PLAN + RANGE)
    assert outcome.errors == []
    assert not {"TG140", "TG142"} & {*outcome.codes}, "the proof has run, and nothing failed"
    assert warmed(resize, "<i8") == [1, 3, 8, 6]
    assert json.loads(outcome.config.parameters["tritongen.samples"].string_value) == {"size": [1, 3, 8, 6]}


def test_no_cuda_graph_of_the_overlay_is_captured(resize):
    found = render(resize, f"{PLAN}{RANGE}config: {{optimization: {{cuda: {{graphs: true}}}}}}").one("TG366")
    assert found.severity is Severity.WARNING
    assert found.message.startswith("the plan has shape tensors, 'size', and")


def test_a_plan_with_narrower_integers_is_warmed_up_with_such(resize):
    assert render(resize, PLAN + RANGE, top='triton: {release: "24.04"}').errors == []
    assert warmed(resize, "<i4") == [1, 3, 8, 6]


def test_values_of_samples_come_before_those_that_the_plan_is_tuned_for(resize):
    assert render(resize, f"{PLAN}{RANGE}samples: {{size: [1, 3, 16, 2]}}").errors == []
    assert warmed(resize, "<i8") == [1, 3, 16, 2]


def test_a_scalar_may_be_a_shape_tensor(tmp_path):
    node = helper.make_node("Range", ["first", "n", "step"], ["y"])
    stored = [helper.make_tensor(name, TensorProto.INT64, [], [value]) for name, value in (("first", 0), ("step", 1))]
    networks.save(tmp_path / "m.onnx", [node], [("n", TensorProto.INT64, [])], [("y", TensorProto.INT64, ["r"])], stored, opset=17)
    assert render(tmp_path, f"{PLAN}tensorrt: {{shape_tensors: {{n: {{min: [1], opt: [5], max: [9]}}}}}}").errors == []
    assert warmed(tmp_path, "<i8", "n") == [5]


def test_values_of_samples_that_the_plan_does_not_take_are_refused_where_they_stand(resize):
    found = render(resize, f"{PLAN}{RANGE}samples: {{size: [1, 3, 17, -1]}}").one("TG186")
    assert (found.severity, found.location.line) == (Severity.ERROR, 10)
    assert "the sample gives the shape tensor 'size' the values [1, 3, 17, -1], and the plan takes [1, 3, 2 to 16, 2 to 16]" in found.message


@pytest.mark.parametrize(("data", "refused"), [("zero_data: true", True), ("random_data: true", True), ("input_data_file: sizes", False)])
def test_warmup_samples_of_ones_own_need_values_that_the_plan_takes(resize, data, refused):
    inputs = f"{{x: {{data_type: TYPE_FP32, dims: [1, 3, 4, 4], zero_data: true}}, size: {{data_type: TYPE_INT64, dims: [4], {data}}}}}"
    outcome = render(resize, f"{PLAN}{RANGE}config: {{model_warmup: [{{name: w, inputs: {inputs}}}]}}")
    said = [each for each in outcome.findings if each.code == "TG186"]
    assert [each.location.line for each in said] == ([10] if refused else [])
    assert all(f"has {data.split(':')[0]} for the shape tensor 'size'" in each.message for each in said)


def test_zeros_may_be_values_that_the_plan_takes(resize):
    inputs = "{x: {data_type: TYPE_FP32, dims: [1, 3, 4, 4], zero_data: true}, size: {data_type: TYPE_INT64, dims: [4], zero_data: true}}"
    keys = RANGE.replace("min: [1, 3, 2, 2]", "min: [0, 0, 0, 0]")
    assert "TG186" not in render(resize, f"{PLAN}{keys}config: {{model_warmup: [{{name: w, inputs: {inputs}}}]}}").codes


def test_a_range_that_cannot_be_is_said_once(resize):
    outcome = render(resize, PLAN + RANGE.replace("8, 6]", "8]").replace("2, 2]", "2]").replace("16, 16]", "16]"))
    assert [each.code for each in outcome.errors] == ["TG125"]


def test_values_that_the_input_cannot_hold_are_no_range(tmp_path):
    node = helper.make_node("ConstantOfShape", ["wide"], ["y"])
    cast = helper.make_node("Cast", ["size"], ["wide"], to=TensorProto.INT64)
    networks.save(tmp_path / "m.onnx", [cast, node], [("size", TensorProto.INT32, [1])], [("y", TensorProto.FLOAT, ["r"])], [], opset=17)
    found = render(tmp_path, f"{PLAN}tensorrt: {{shape_tensors: {{size: {{min: [1], opt: [2], max: [2147483648]}}}}}}").one("TG125")
    assert "cannot hold 2147483648" in found.message


def test_the_repository_for_the_cpu_has_the_same_values(resize):
    outcome = render(resize, PLAN + RANGE, cpu=True, apply=False)
    assert outcome.config.platform == "onnxruntime_onnx"
    assert outcome.config.model_warmup[0].inputs["size"].input_data_file
    assert json.loads(outcome.config.parameters["tritongen.samples"].string_value) == {"size": [1, 3, 8, 6]}


@pytest.mark.parametrize(
    ("x", "sizes", "words"), [([1, 3, 4, 4], "", "builds a new engine"), ([1, 3, "h", 4], "shapes: {x: [1, 3, 4, 4]}\n", "refuses to load the model")]
)
def test_onnx_runtimes_accelerator_has_no_range_for_values_that_may_be_sizes(tmp_path, x, sizes, words):
    node = helper.make_node("Resize", ["x", "", "", "size"], ["y"], mode="nearest")
    shapes = [("x", TensorProto.FLOAT, x), ("size", TensorProto.INT64, [4])]
    networks.save(tmp_path / "m.onnx", [node], shapes, [("y", TensorProto.FLOAT, [1, 3, "p", "q"])], [], opset=17)
    outcome = render(tmp_path, f"source: m.onnx\naccelerator: tensorrt\nbatching: none\ninstances: {{kind: gpu}}\nsamples: {{size: [1, 3, 8, 8]}}\n{sizes}")
    found = outcome.one("TG113")
    assert (outcome.errors, found.severity) == ([], Severity.ADVICE)
    assert "the values of size INT64 [4] may be sizes" in found.message
    assert words in found.consequence
