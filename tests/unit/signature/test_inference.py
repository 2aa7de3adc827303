"""Output shapes as ONNX Runtime reports them, without ONNX Runtime and without weights."""

import networks
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tritongen.proof import prove
from tritongen.signature import read_onnx
from tritongen.signature.inference import refine_outputs


@pytest.mark.parametrize("path", networks.TRAINED)
def test_real_models_have_the_shapes_that_onnxruntime_reports(path):
    file = networks.packaged(path)
    refined = refine_outputs(file, read_onnx(file))
    assert {tensor.name: tensor.dims for tensor in refined.outputs} == prove(file, {}).output_dims


def test_a_chain_of_constants_is_computed(tmp_path):
    """The target of the Reshape is computed from constants by three nodes, as exporters write it."""
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in (("a", [2]), ("b", [3]), ("c", [-1]))]
    nodes = [
        helper.make_node("Mul", ["a", "b"], ["six"]),
        helper.make_node("Concat", ["c", "six"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    path = networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 12])], [("y", TensorProto.FLOAT, ["M", "K"])], constants)
    assert refine_outputs(path, read_onnx(path)).outputs[0].shape == ("M", 6)


def test_what_would_not_fit_into_memory_is_not_computed(tmp_path):
    huge = numpy_helper.from_array(np.array([2**40, 2**20], np.int64), "huge")
    nodes = [
        helper.make_node("ConstantOfShape", ["huge"], ["z"]),
        helper.make_node("ReduceSum", ["z"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    path = networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 12])], [("y", TensorProto.FLOAT, ["N", 12])], [huge])
    assert refine_outputs(path, read_onnx(path)).outputs[0].shape == ("N", 12)


def test_the_branch_of_a_constant_condition_takes_the_place_of_its_if(tmp_path):
    """Two Ifs whose branches use the same names, the second with a condition that follows from a shape."""

    def branch(columns):
        weights = numpy_helper.from_array(np.zeros((8, columns), np.float32), "w")
        output = helper.make_tensor_value_info("o", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Neg", ["h"], ["o"])], "branch", [], [output], [weights])

    nodes = [
        helper.make_node("If", ["yes"], ["a"], then_branch=branch(3), else_branch=branch(5)),
        helper.make_node("Transpose", ["a"], ["turned"], perm=[1, 0]),
        helper.make_node("Shape", ["fixed"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["rows"]),
        helper.make_node("Equal", ["rows", "first"], ["no"]),
        helper.make_node("If", ["no"], ["b"], then_branch=branch(6), else_branch=branch(4)),
        helper.make_node("Neg", ["fixed"], ["c"]),
    ]
    stored = [numpy_helper.from_array(np.array(True), "yes"), numpy_helper.from_array(np.array(0), "first")]
    inputs = [("x", TensorProto.FLOAT, ["N", 8]), ("fixed", TensorProto.FLOAT, [2, 2])]
    outputs = [(name, TensorProto.FLOAT, [None, None]) for name in ("a", "turned", "b", "c")]
    path = networks.save(tmp_path / "m.onnx", nodes, inputs, outputs, stored)
    refined = {tensor.name: tensor.dims for tensor in refine_outputs(path, read_onnx(path)).outputs}
    assert refined == {"a": (-1, 3), "turned": (3, -1), "b": (-1, 4), "c": (2, 2)}
    assert refined == prove(path, {}).output_dims
