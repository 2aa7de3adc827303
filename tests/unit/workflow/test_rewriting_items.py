"""Rewrites of models whose inputs are no batches of rows: full shapes, inputs that may be left out, items that are strung together."""

from __future__ import annotations

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.unit.workflow.rewriting import render
from tritongen.repository import read_stamp

RAGGED = "ragged: {inputs: [x], batch_inputs: [{names: [ends], kind: batch_accumulated_element_count, source: x}]}"


def words(path):
    """`ids, mask: int64[batch, seq] → y: float32[batch, seq]`."""
    nodes = [helper.make_node("Mul", ["ids", "mask"], ["p"]), helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT)]
    shape = ["batch", "seq"]
    return networks.save(path, nodes, [(name, TensorProto.INT64, shape) for name in ("ids", "mask")], [("y", TensorProto.FLOAT, shape)])


def with_default(path):
    """`x: float32[n, 4] → y: float32[n, 4]`, minus the optional `threshold`."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", ["n", 4]), ("threshold", [1]), ("y", ["n", 4]))]
    default = numpy_helper.from_array(np.array([0.5], np.float32), "threshold")
    graph = helper.make_graph([helper.make_node("Sub", ["x", "threshold"], ["y"])], "g", values[:2], values[2:], [default])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def last_sums(path):
    """`x: float32[t], ends: int32[k] → y: float32[k]`: running sums of x, where each request ends."""
    stored = [numpy_helper.from_array(np.array(0), "axis"), numpy_helper.from_array(np.array(1, np.int32), "one")]
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["sums"]),
        helper.make_node("Sub", ["ends", "one"], ["last"]),
        helper.make_node("Gather", ["sums", "last"], ["y"]),
    ]
    networks.save(path, nodes, [("x", TensorProto.FLOAT, ["t"]), ("ends", TensorProto.INT32, ["k"])], [("y", TensorProto.FLOAT, ["k"])], stored)


@pytest.mark.parametrize(
    ("write", "keys"),
    [
        (networks.mlp, "batching: none\nshapes: {x: [2, 8]}"),
        (networks.mlp, "batching: none\nshapes: {x: [2, 8]}\nsamples: {x: [[1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1]]}"),
        (words, "batching: none\nshapes: {ids: [2, 16], mask: [2, 16]}"),
        (with_default, "optional_inputs: [threshold]\nshapes: {x: [2, 4]}"),
        (last_sums, f"{RAGGED}\nshapes: {{x: [4]}}"),
        (last_sums, f"{RAGGED}\nshapes: {{x: [3]}}\nsamples: {{x: [1, 2, 3]}}"),
        (last_sums, f"{RAGGED}\nwarmup: none"),
    ],
)
def test_an_optimised_file_is_compared_in_the_shapes_of_the_model(tmp_path, write, keys):
    write(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\noptimize: offline\n{keys}")
    assert outcome.findings == ()
    assert '"optimize"' in read_stamp(outcome.text).made[1].recipe


def test_a_shape_that_does_not_fit_is_said_at_its_own_place_also_where_the_file_is_optimised(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\noptimize: offline\nshapes: {x: [2, 8]}").one("TG104")
    assert found.location.line == 7


def test_freeze_asks_for_the_whole_shape_of_a_model_that_does_not_batch(tmp_path):
    with_default(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\noptional_inputs: [threshold]\nfreeze: true").one("TG190")
    assert "shapes: {x: [..., 4]}, or remove freeze" in found.hint
    outcome = render(tmp_path, "source: m.onnx\noptional_inputs: [threshold]\nfreeze: true\nshapes: {x: [2, 4]}")
    assert outcome.errors == []
    assert list(outcome.config.input[0].dims) == [2, 4]


def test_freeze_says_that_strung_inputs_stay_variable(tmp_path):
    last_sums(tmp_path / "m.onnx")
    found = render(tmp_path, f"source: m.onnx\n{RAGGED}\nfreeze: true\nshapes: {{x: [4]}}").one("TG117")
    assert "counts what is in a batch" in found.message
    assert "spec.yaml:6" in found.message, "where ragged stands"
