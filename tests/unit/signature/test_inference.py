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
