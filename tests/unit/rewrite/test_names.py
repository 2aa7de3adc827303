"""Names for dimensions that have none: what TensorRT would take to be equal, or of size 0, is neither."""

from __future__ import annotations

from threading import Event

import onnx
import pytest
from onnx import TensorProto, helper

from tests.unit.build.making import define, span
from tests.unit.render.compiling import FP32
from tritongen.build import Silent
from tritongen.errors import ModelFileError
from tritongen.recipe import Profile
from tritongen.rewrite import is_anonymous, name_dimensions, repeats_the_batch, shares_a_mark
from tritongen.signature import Signature, TensorSpec
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


@pytest.mark.parametrize("text", ["?", "", None, "-1", "None", "unk__7"])
def test_nameless_dimensions_get_names_and_tensorrt_then_builds(text, tmp_path):
    path = two_inputs(tmp_path / "m.onnx", text, text)
    assert is_anonymous(read_onnx(path))
    done = name_dimensions(path, tmp_path / "named.onnx")
    assert symbols(done.path) == ["N", "dim_0", "N", "dim_1"]
    assert not is_anonymous(read_onnx(done.path))
    assert done.notes == ("dimension 1 of input 'x' is called dim_0", "dimension 1 of input 'z' is called dim_1")
    assert define(done.path, APART).build(Silent(), Event()).plan


@pytest.mark.parametrize("text", ["?", "", "N"])
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


def test_what_bears_the_name_of_the_batch_gets_another_where_triton_forms_it(tmp_path):
    path = two_inputs(tmp_path / "m.onnx", "N", "S")
    assert repeats_the_batch(read_onnx(path))
    done = name_dimensions(path, tmp_path / "named.onnx", batched=True)
    assert symbols(done.path) == ["N", "dim_0", "N", "S"]
    assert not repeats_the_batch(read_onnx(done.path))
    assert define(done.path, APART).build(Silent(), Event()).plan
    assert name_dimensions(path, tmp_path / "whole.onnx").notes == ()


@pytest.mark.parametrize(("names", "expected"), [(("?", "?"), True), (("?", "-1"), False), ((None, None), False), (("S", "S"), False), (("?", "T"), False)])
def test_a_mark_that_two_dimensions_bear(names, expected, tmp_path):
    assert shares_a_mark(read_onnx(two_inputs(tmp_path / "m.onnx", *names)), batched=True) == expected


def test_the_batch_of_two_inputs_may_bear_one_mark():
    signature = Signature(tuple(TensorSpec(name, FP32, ("?", 8)) for name in "xz"), ())
    assert not shares_a_mark(signature, batched=True)
    assert shares_a_mark(signature, batched=False)


@pytest.mark.parametrize("names", [("?", "?"), ("N", "S"), ("None", "None")])
def test_parts_of_a_graph_that_onnxruntime_gives_to_tensorrt_have_names(names, tmp_path, tritongen):
    source = two_inputs(tmp_path / "m.onnx", *names)
    shapes = "{x: {min: [2], opt: [4], max: [8]}, z: {min: [3], opt: [6], max: [12]}}"
    keys = "source: m.onnx, accelerator: {}, instances: {{kind: gpu}}, batching: {{max: 4}}"
    for accelerator, named in (("tensorrt", True), ("cuda", False)):
        path = tmp_path / f"{accelerator}.yaml"
        path.write_text(f"version: 1\nrepository: {accelerator}\nmodels:\n- {{name: m, {keys.format(accelerator)}, shapes: {shapes}}}\n")
        assert tritongen("render", path).code == 0
        placed = tmp_path / accelerator / "m/1/model.onnx"
        assert (len(set(symbols(placed))) == 3) is named, symbols(placed)
        assert (placed.read_bytes() == source.read_bytes()) is not named


@pytest.mark.parametrize("names", [("?", "?"), ("N", "N")])
def test_a_plan_is_rendered_with_names(names, tmp_path, tritongen):
    two_inputs(tmp_path / "m.onnx", *names)
    shapes = "{x: {min: [2], opt: [4], max: [8]}, z: {min: [3], opt: [6], max: [12]}}"
    (tmp_path / "spec.yaml").write_text(f"version: 1\nmodels:\n- {{name: m, source: m.onnx, backend: tensorrt, batching: {{max: 4}}, shapes: {shapes}}}\n")
    assert tritongen("render", tmp_path / "spec.yaml").code == 0
    assert symbols(tmp_path / "model_repository.artifacts/m/model.onnx") == ["N", "dim_0", "N", "dim_1"]
    assert tritongen("build", tmp_path / "spec.yaml", "--with", "tensorrt-rtx").code == 0
    assert tritongen("render", tmp_path / "spec.yaml", "--check").code == 0
