"""Whether a network convolves, which decides how many batch sizes are fast on a GPU."""

import networks
import onnx
import pytest
from onnx import TensorProto, helper

from tritongen.signature import read_onnx


@pytest.mark.parametrize("name", ["resnet50", "squeezenet"])
def test_an_image_network_does(name):
    assert read_onnx(networks.packaged(f"onnx/backend/test/data/light/light_{name}.onnx")).convolves


def test_a_perceptron_does_not(tmp_path):
    assert not read_onnx(networks.mlp(tmp_path / "m.onnx")).convolves


def node(op_type, domain=""):
    return helper.make_node(op_type, ["x"], ["y"], domain=domain)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (node("Conv"), True),
        (node("ConvTranspose"), True),
        (node("QLinearConv"), True),
        (node("FusedConv", "com.microsoft"), True),
        (node("Conv", "org.example"), False),
        (node("Convert"), False),
        (helper.make_node("Neg", ["Conv"], ["y"], name="Conv"), False),
    ],
)
def test_by_the_type_of_its_nodes(save, model, made, expected):
    model.graph.node.append(made)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.opset_import.append(helper.make_opsetid("org.example", 1))
    assert read_onnx(save(model)).convolves is expected


def test_a_node_of_a_sub_graph_counts(save, model):
    inner = helper.make_graph([node("Conv")], "inner", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    branch = helper.make_node("If", ["x"], ["z"], then_branch=inner, else_branch=inner)
    model.graph.node.append(branch)
    assert read_onnx(save(model)).convolves


def test_a_node_of_a_function_counts(save, model):
    function = helper.make_function("org.example", "Block", ["x"], ["y"], [node("Conv")], [helper.make_opsetid("", 17)])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("org.example", 1))
    assert onnx.ModelProto.FromString(model.SerializeToString()).functions
    assert read_onnx(save(model)).convolves
