"""Sizes written into a model: carried to equal symbols and to outputs, or refused with the place that disagrees."""

import networks
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from rewrite_graphs import FLOAT, Graph, branches, floats, ints, node

from tritongen.errors import ModelFileError
from tritongen.rewrite import freeze
from tritongen.signature import read_onnx


def shapes(path):
    signature = read_onnx(path)
    return {tensor.name: tensor.shape for tensor in (*signature.inputs, *signature.outputs)}


@pytest.fixture
def pair(tmp_path):
    """`a[N, t] + b[N, t] → y[N, t]`."""
    inputs = [("a", FLOAT, ["N", "t"]), ("b", FLOAT, ["N", "t"])]
    return networks.save(tmp_path / "pair.onnx", [node("Add", ["a", "b"], ["s"]), node("Relu", ["s"], ["y"])], inputs, [("y", FLOAT, ["N", "t"])])


def test_a_size_goes_to_every_dimension_of_its_symbol(pair, tmp_path):
    done = freeze(pair, {"a": [-1, 16]}, tmp_path / "f.onnx")
    assert shapes(done.path) == {"a": ("N", 16), "b": ("N", 16), "y": ("N", 16)}
    assert done.notes == (
        "input 'a' has the shape [N, 16]; it was [N, t]",
        "input 'b' has the shape [N, 16]; it was [N, t]",
        "output 'y' has the shape [N, 16]; it was [N, t]",
    )
    assert onnxruntime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"]).get_inputs()[1].shape == ["N", 16]
    onnx.checker.check_model(str(done.path))


def test_outputs_follow_from_the_graph(tmp_path):
    done = freeze(networks.packaged(networks.DETECTOR), {"x": [1, 3, 64, 96]}, tmp_path / "f.onnx")
    assert shapes(done.path) == {"x": (1, 3, 64, 96), "sigmoid_0.tmp_0": (1, 1, 64, 96)}


def test_the_shape_of_a_shape_is_followed(tmp_path):
    path = Graph(["N", "t"], [node("Reshape", ["x", "s"], ["y"])], ["k", 4], [ints("s", -1, 4)]).save(tmp_path / "m.onnx")
    assert shapes(freeze(path, {"x": [2, 6]}, tmp_path / "f.onnx").path)["y"] == (3, 4)


def test_symbols_inside_branches_are_fixed(tmp_path):
    path = branches(node("Flatten", ["x"], ["e"])).save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    then = next(attribute.g for attribute in model.graph.node[0].attribute if attribute.name == "then_branch")
    then.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, path)
    written = onnx.load(freeze(path, {"x": [1, -1, -1]}, tmp_path / "f.onnx").path)
    then = next(attribute.g for attribute in written.graph.node[0].attribute if attribute.name == "then_branch")
    assert then.output[0].type.tensor_type.shape.dim[0].dim_value == 1


CONTRADICTIONS = {
    "fixed": ({"x": [1, 5]}, "TG150 dimension 1 of input 'x' is fixed to 8 in the model, and 5 was given"),
    "rank": ({"x": [1]}, "TG151 the shape [1] for input 'x' has 1 dimensions, and the model's has 2: x FP32 [N, 8]"),
    "zero": ({"x": [0, 8]}, "TG151 the shape [0, 8] for input 'x' has a size below 1"),
    "name": ({"z": [1, 8]}, "TG151 the model has no input 'z'"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_refused(name, tmp_path):
    given, message = CONTRADICTIONS[name]
    path = networks.mlp(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError) as caught:
        freeze(path, given, tmp_path / "f.onnx")
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].hint
    assert not (tmp_path / "f.onnx").exists()


def test_every_contradiction_is_reported(pair, tmp_path):
    with pytest.raises(ModelFileError) as caught:
        freeze(pair, {"a": [1, 4], "b": [2, 5], "c": [1]}, tmp_path / "f.onnx")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["TG151", "TG150", "TG150"]
    assert "'N' is given two sizes: 1 at dimension 0 of 'a' and 2 at dimension 0 of 'b'" in str(caught.value)


def test_sizes_that_the_graph_cannot_take_name_the_node(tmp_path):
    path = Graph(["N", "t"], [node("Reshape", ["x", "s"], ["y"], name="quarters")], ["k", 4], [ints("s", -1, 4)]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match=r"TG152 the graph cannot take the sizes x: \[1, 6\].*quarters"):
        freeze(path, {"x": [1, 6]}, tmp_path / "f.onnx")


def test_nothing_to_freeze_changes_nothing(pair, tmp_path):
    done = freeze(pair, {"a": [-1, -1]}, tmp_path / "f.onnx")
    assert done.notes == ()
    assert onnx.load(done.path) == onnx.load(pair)


def test_an_input_without_a_shape_gets_one(tmp_path):
    path = networks.save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], [("x", FLOAT, None)], [("y", FLOAT, None)])
    assert shapes(freeze(path, {"x": [2, -1]}, tmp_path / "f.onnx").path) == {"x": (2, None), "y": (2, None)}


def test_equal_bytes_and_external_weights(tmp_path):
    path = Graph(["N", 4], [node("MatMul", ["x", "w"], ["y"])], ["N", 400], [floats("w", 4, 400)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data")
    first, second = (freeze(path, {"x": [2, 4]}, tmp_path / name) for name in ("a.onnx", "b.onnx"))
    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.external == ("m.data",)
    assert shapes(first.path)["y"] == (2, 400)


def test_a_default_of_an_optional_input_is_no_obstacle(tmp_path):
    path = Graph(["N", 4], [node("Add", ["x", "b"], ["y"])], ["N", 4], [floats("b", 4)]).save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [4]))
    onnx.save(model, path)
    assert shapes(freeze(path, {"x": [3, 4]}, tmp_path / "f.onnx").path)["y"] == (3, 4)


def test_a_size_is_followed_through_shapes_that_are_cut_and_cast(tmp_path):
    """The file's output says [?, T, C]: ONNX Runtime knows T once the input is fixed, and so must the file, since Triton compares."""
    done = freeze(networks.packaged(networks.RECOGNIZER), {"x": [-1, 3, 48, 160]}, tmp_path / "o.onnx")
    (output,) = read_onnx(done.path).outputs
    inferred = onnxruntime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"]).get_outputs()[0].shape
    assert list(output.shape) == inferred
    assert inferred[1:] == [20, 6625]


def test_a_name_that_is_none_may_have_two_sizes(tmp_path):
    """Some exporters write ? for every dimension without a name."""
    done = freeze(networks.packaged(networks.CLASSIFIER), {"x": [-1, 3, 48, 192]}, tmp_path / "o.onnx")
    assert read_onnx(done.path).inputs[0].shape[1:] == (3, 48, 192)
