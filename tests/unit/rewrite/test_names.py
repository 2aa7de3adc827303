"""Names for dimensions that have none: what TensorRT would take to be equal, or of size 0, is neither."""

from __future__ import annotations

from threading import Event

import onnx
import pytest
from onnx import TensorProto, helper

from tests.unit.build.making import define, span
from tritongen.build import Silent
from tritongen.errors import ModelFileError
from tritongen.recipe import Profile
from tritongen.rewrite import is_anonymous, name_dimensions
from tritongen.signature.onnx import read_onnx

APART = Profile({"x": span((1, 2), (2, 4), (4, 8)), "z": span((1, 3), (2, 6), (4, 12))})


def two_inputs(path, first, second):
    """Two inputs [N, first] and [N, second]; None for a dimension without a text."""
    values = []
    for name, text in (("x", first), ("z", second)):
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1])
        value.type.tensor_type.shape.dim[1].Clear()
        if text is not None:
            value.type.tensor_type.shape.dim[1].dim_param = text
        values.append(value)
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("a", "b")]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["z"], ["b"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", values, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def symbols(path):
    return [dim.dim_param for value in onnx.load(path).graph.input for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("text", ["?", "", None, "-1"])
def test_nameless_dimensions_get_names_and_tensorrt_then_builds(text, tmp_path):
    path = two_inputs(tmp_path / "m.onnx", text, text)
    assert is_anonymous(read_onnx(path))
    done = name_dimensions(path, tmp_path / "named.onnx")
    assert symbols(done.path) == ["N", "dim_0", "N", "dim_1"]
    assert not is_anonymous(read_onnx(done.path))
    assert done.notes == ("dimension 1 of input 'x' is called dim_0", "dimension 1 of input 'z' is called dim_1")
    assert define(done.path, APART).build(Silent(), Event()).plan


@pytest.mark.parametrize("text", ["?", ""])
def test_without_names_tensorrt_builds_nothing(text, tmp_path):
    path = two_inputs(tmp_path / "m.onnx", text, text)
    with pytest.raises(ModelFileError):
        define(path, APART).build(Silent(), Event())


def test_names_that_are_there_stay_and_are_not_given_again(tmp_path):
    done = name_dimensions(two_inputs(tmp_path / "m.onnx", "dim_0", "?"), tmp_path / "named.onnx")
    assert symbols(done.path) == ["N", "dim_0", "N", "dim_1"]


def test_a_file_with_names_is_left_as_it_is(tmp_path):
    path = two_inputs(tmp_path / "m.onnx", "S", "T")
    assert not is_anonymous(read_onnx(path))
    assert name_dimensions(path, tmp_path / "named.onnx").notes == ()


def test_a_plan_is_rendered_with_names(tmp_path, tritongen):
    two_inputs(tmp_path / "m.onnx", "?", "?")
    shapes = "{x: {min: [2], opt: [4], max: [8]}, z: {min: [3], opt: [6], max: [12]}}"
    (tmp_path / "spec.yaml").write_text(f"version: 1\nmodels:\n- {{name: m, source: m.onnx, backend: tensorrt, batching: {{max: 4}}, shapes: {shapes}}}\n")
    assert tritongen("render", tmp_path / "spec.yaml").code == 0
    assert symbols(tmp_path / "model_repository.artifacts/m/model.onnx") == ["N", "dim_0", "N", "dim_1"]
    assert tritongen("build", tmp_path / "spec.yaml", "--with", "tensorrt-rtx").code == 0
    assert tritongen("render", tmp_path / "spec.yaml", "--check").code == 0
