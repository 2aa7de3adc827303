"""Hints are remedies: whoever follows one is not led into the next error, and nothing is asked for twice."""

from __future__ import annotations

import networks
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.unit.workflow.rewriting import render
from tests.unit.workflow.test_rewriting_items import RAGGED, last_sums, words
from tritongen.rewrite import may_rebatch
from tritongen.signature import read_onnx

FLOAT = TensorProto.FLOAT


def save(path, nodes, inputs, outputs, stored=None):
    return networks.save(path, nodes, [(name, FLOAT, shape) for name, shape in inputs], [(name, FLOAT, shape) for name, shape in outputs], stored)


def scalar(path):
    return save(path, [helper.make_node("Mul", ["x", "s"], ["y"])], [("x", [1, 8]), ("s", [])], [("y", [1, 8])])


def state(path):
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Neg", ["h"], ["hn"])]
    return save(path, nodes, [("x", ["batch", 8]), ("h", [2, "batch", 8])], [("y", ["batch", 8]), ("hn", [2, "batch", 8])])


def top_k(path):
    inputs, outputs = [("x", FLOAT, [1, 8]), ("k", TensorProto.INT64, [1])], [("v", FLOAT, [1, None]), ("i", TensorProto.INT64, [1, None])]
    return networks.save(path, [helper.make_node("TopK", ["x", "k"], ["v", "i"])], inputs, outputs)


def flat(path):
    """`x: float32[1, 4] → y: float32[3]`: a Reshape drops the batch."""
    stored = [numpy_helper.from_array(np.ones((4, 3), np.float32), "w"), numpy_helper.from_array(np.array([4]), "s")]
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"], name="flat"), helper.make_node("MatMul", ["r", "w"], ["y"])]
    return save(path, nodes, [("x", [1, 4])], [("y", [3])], stored)


def fixed(path):
    return networks.mlp(path, batch=1)


@pytest.mark.parametrize(("write", "hopeful"), [(fixed, True), (scalar, False), (state, False), (top_k, False), (flat, False)])
def test_rebatch_is_advised_where_it_can_be_done(tmp_path, write, hopeful):
    write(tmp_path / "m.onnx")
    assert may_rebatch(read_onnx(tmp_path / "m.onnx")) is hopeful
    assert ("rebatch: true" in render(tmp_path, "source: m.onnx").one("TG106").hint) is hopeful
    asked = render(tmp_path, "source: m.onnx\nrebatch: true")
    assert (asked.errors == []) is hopeful


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (top_k, ("the TopK node that computes 'v'", "input 1, 'k'", "one setting for all rows")),
        (flat, ("the Reshape node 'flat'", "puts the batch on axis 0 with 4 numbers of each row", "the MatMul node that computes 'y'")),
    ],
)
def test_what_stands_in_the_way_of_rebatch_is_what_is_named(tmp_path, write, words):
    write(tmp_path / "m.onnx")
    (found,) = render(tmp_path, "source: m.onnx\nrebatch: true").errors
    assert found.code == "TG154"
    for word in words:
        assert word in found.message


@pytest.mark.parametrize(("batching", "items", "besides"), [("batching: none", "..., ...", ""), ("batching: {max: 4}", "...", ", without the batch dimension")])
def test_a_plan_asks_for_all_sizes_at_once_in_the_form_that_they_take(tmp_path, batching, items, besides):
    words(tmp_path / "m.onnx")
    found = render(tmp_path, f"source: m.onnx\nbackend: tensorrt\n{batching}").one("TG108")
    one = f"{{min: [{items}], opt: [{items}], max: [{items}]}}"
    assert found.hint == f"add shapes: {{ids: {one}, mask: {one}}}{besides}"
    followed = found.hint.removeprefix("add ").removesuffix(besides).replace("...", "8")
    assert render(tmp_path, f"source: m.onnx\nbackend: tensorrt\n{batching}\n{followed}").errors == []


def test_freeze_asks_once_for_all_sizes(tmp_path):
    words(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\nbackend: tensorrt\nfreeze: true")
    assert [found.code for found in outcome.errors] == ["TG190"]
    assert outcome.errors[0].hint == "add shapes: {ids: [...], mask: [...]}, without the batch dimension, or remove freeze"


@pytest.mark.parametrize("keys", ["accelerator: tensorrt", "backend: tensorrt"])
@pytest.mark.parametrize(("shapes", "code"), [("{ids: [2, 8], mask: [8]}", "TG104"), ("{idz: [8], mask: [8]}", "TG103")])
def test_shapes_that_are_wrong_are_not_asked_for_as_well(tmp_path, keys, shapes, code):
    words(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\n{keys}\nshapes: {shapes}")
    assert [found.code for found in outcome.findings if found.code not in ("TG411", "TG163")] == [code]


def test_an_accelerator_from_the_defaults_is_switched_off_for_a_ragged_model(tmp_path):
    last_sums(tmp_path / "m.onnx")
    top = 'triton: {release: "25.08"}\ndefaults: {accelerator: tensorrt}'
    outcome = render(tmp_path, f"source: m.onnx\n{RAGGED}", top=top)
    assert [found.code for found in outcome.errors] == ["TG403"]
    assert "accelerator: tensorrt, at " in outcome.errors[0].message
    assert "spec.yaml:3" in outcome.errors[0].message
    assert outcome.errors[0].hint == "write accelerator: none here, or remove ragged"
    assert "TG113" not in outcome.codes, "there is no profile to give sizes for"
    assert render(tmp_path, f"source: m.onnx\naccelerator: none\n{RAGGED}", top=top).errors == []


def test_an_output_of_ragged_items_is_to_be_cut(tmp_path):
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Neg", ["ends"], ["z"])]
    inputs, outputs = [("x", FLOAT, ["t"]), ("ends", TensorProto.INT32, ["k"])], [("y", FLOAT, ["t"]), ("z", TensorProto.INT32, ["k"])]
    networks.save(tmp_path / "m.onnx", nodes, inputs, outputs)
    found = render(tmp_path, f"source: m.onnx\n{RAGGED}\nshapes: {{x: [4]}}").one("TG145")
    assert "batch_outputs" in found.hint
    assert "batching: none" not in found.hint
    cut = RAGGED.removesuffix("}") + ", batch_outputs: [{names: ['y'], source: x}]}"
    assert render(tmp_path, f"source: m.onnx\n{cut}\nshapes: {{x: [4]}}").errors == []
