"""ONNX Runtime fixes free dimensions of outputs that its shape inference can tell, so that the exporter's word is not the last one."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tritongen.check.evaluate import evaluate_path
from tritongen.rules import ServerFacts
from tritongen.signature import read_onnx
from tritongen.signature.inference import refine_outputs

CONFIG = """\
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 64 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {size} ] }} ]
"""


def linear(shape):
    """x[N,64] · w[64,1000] → y, whose shape the exporter states as `shape`."""
    weights = numpy_helper.from_array(np.zeros((64, 1000), np.float32), "w")
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64]), helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "linear", [x], [y], [weights])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("shape", [["N", "K"], ["N", None], None], ids=["named", "unnamed", "no shape"])
def test_a_dimension_that_inference_tells_is_compared_as_a_number(shape, tmp_path):
    for size in (1000, -1, 999):
        folder = tmp_path / str(size) / "m" / "1"
        folder.mkdir(parents=True)
        onnx.save(linear(shape), str(folder / "model.onnx"))
        (folder.parent / "config.pbtxt").write_text(CONFIG.format(size=size))
    codes = {size: [found.code for found in evaluate_path(tmp_path / str(size), ServerFacts())] for size in (1000, -1, 999)}
    assert codes == {1000: [], -1: ["TG344"], 999: ["TG344"]}


@pytest.mark.parametrize("shape", [["N", "K"], ["N", 1000], None], ids=["named", "number", "no shape"])
def test_the_refined_signature_is_what_onnxruntime_reports(shape, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(linear(shape), str(path))
    reported = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_outputs()[0].shape
    refined = refine_outputs(path, read_onnx(path))
    assert refined.outputs[0].shape == tuple(reported) == ("N", 1000)


def test_a_symbol_of_an_input_stays_free(tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG.format(size=64))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "F"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", [x], [y])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), str(tmp_path / "m" / "1" / "model.onnx"))
    (finding,) = evaluate_path(tmp_path, ServerFacts())
    assert finding.code == "TG344"
    assert "compares outputs exactly" in finding.message


def test_a_file_that_onnx_cannot_infer_keeps_its_signature(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(linear(["N", "K"]), str(path))
    signature = read_onnx(path)
    path.write_bytes(b"\x08")
    assert refine_outputs(path, signature) == signature
