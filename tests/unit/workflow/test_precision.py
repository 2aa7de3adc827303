"""`precision: fp16` from the spec to the file in the repository, and what a render says of its answers."""

from __future__ import annotations

import importlib.util
import json
import re

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rewrite_graphs import Graph, node, scalar

from tests.unit.workflow.rewriting import ROOT, flattening, left_beside, render, served
from tritongen.diagnostics import Severity
from tritongen.repository import read_stamp
from tritongen.rewrite import Agreement, Comparison

GPU = "instances: {kind: gpu}\n"


def steep(path):
    """x · 300 · 300 · 1e-5 for each of four: more than FP16 holds in between."""
    wide = numpy_helper.from_array(np.full((4, 4), 300, np.float32), "w")
    nodes = [node("MatMul", ["x", "w"], ["a"], name="one"), node("MatMul", ["a", "w"], ["b"], name="two"), node("Mul", ["b", "s"], ["y"], name="three")]
    return Graph(["N", 4], nodes, ["N", 4], [wide, scalar("s", np.float32(1e-5))]).save(path)


def kinds(path):
    return {tensor.data_type for tensor in onnx.load(path).graph.initializer}


@pytest.mark.parametrize("keys", ["accelerator: cuda", "accelerator: tensorrt", GPU])
def test_the_file_that_is_served_has_fp16_weights_and_its_answers_are_said(keys, tmp_path):
    source = networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\nprecision: fp16\nbatching: {{max: 4}}\n{keys}")
    said = outcome.one("TG167")
    assert said.severity is Severity.ADVICE
    assert said.message.startswith("in fp16 the model answers as the original does, at batches of 1, ")
    assert ", at worst with: output 'y'" in said.message
    assert "output 'y': max abs " in said.message
    assert kinds(source) == {TensorProto.FLOAT}
    assert kinds(served(tmp_path)) == {TensorProto.FLOAT16}
    assert [tensor.data_type for tensor in (*outcome.config.input, *outcome.config.output)] == [11, 11], "TYPE_FP32"
    assert left_beside(tmp_path) == []


def test_a_plan_is_built_from_the_converted_file(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    render(tmp_path, f"source: m.onnx\nprecision: fp16\nbackend: tensorrt\n{GPU}")
    artifacts = tmp_path / f"{ROOT}.artifacts/m"
    assert kinds(artifacts / "model.onnx") == {TensorProto.FLOAT16}
    (recipe,) = json.loads((artifacts / "recipes.json").read_text())["recipes"]
    assert (recipe["precision"], recipe["strongly_typed"]) == ("fp16", True)


def test_tensorrt_8_has_no_binding_types_and_gets_its_flag(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    render(tmp_path, f"source: m.onnx\nprecision: fp16\nbackend: tensorrt\n{GPU}", top='triton: {release: "24.04"}')
    (recipe,) = json.loads((tmp_path / f"{ROOT}.artifacts/m/recipes.json").read_text())["recipes"]
    assert (recipe["precision"], recipe["strongly_typed"]) == ("fp16", False)


def test_clients_may_be_asked_for_fp16(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\nprecision: fp16\nconversion: {{keep_io_types: false}}\n{GPU}")
    assert [tensor.data_type for tensor in (*outcome.config.input, *outcome.config.output)] == [10, 10], "TYPE_FP16"


def test_a_second_render_finds_the_file_and_compares_again(tmp_path):
    keys = f"source: m.onnx\nrebatch: true\noptimize: offline\nprecision: fp16\nbatching: {{max: 4}}\n{GPU}"
    flattening(tmp_path / "m.onnx")
    assert render(tmp_path, keys).action == "create"
    made = read_stamp((tmp_path / ROOT / "m/config.pbtxt").read_text()).made[1]
    assert json.loads(made.recipe)["convert"] == {"keep_io_types": True, "precision": "fp16"}
    again = render(tmp_path, keys)
    assert (again.action, again.codes) == ("keep", ["TG167"])
    other = render(tmp_path, f"{keys}conversion: {{fp32_operators: [MatMul]}}\n")
    assert other.action == "replace"


@pytest.mark.parametrize("keys", ["accelerator: cuda", "backend: tensorrt\ninstances: {kind: gpu}"])
def test_answers_that_are_too_far_off_are_refused_with_what_to_keep(keys, tmp_path):
    steep(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\nprecision: fp16\nbatching: {{max: 2}}\n{keys}")
    (found,) = outcome.errors
    assert (found.code, found.location.line) == ("TG168", 6)
    assert "output 'y' at a batch of 1: 4 of its 4 numbers are infinite or none" in found.message
    assert found.message.endswith("; the MatMul node 'two' leaves the range of FP16")
    assert not (tmp_path / ROOT).exists()
    assert left_beside(tmp_path) == []
    mended = render(tmp_path, f"source: m.onnx\nprecision: fp16\nconversion: {{fp32_nodes: [two, three]}}\nbatching: {{max: 2}}\n{keys}")
    assert mended.errors == []


def test_the_tolerance_is_the_spec_s(tmp_path):
    nodes = [node("Add", ["x", "c"], ["a"]), node("Sub", ["a", "c"], ["y"])]
    Graph(["N", 4], nodes, ["N", 4], [scalar("c", np.float32(40))]).save(tmp_path / "m.onnx")
    keys = f"source: m.onnx\nprecision: fp16\nbatching: {{max: 2}}\nsamples: {{x: [0.9, 0.93, 0.2, -1]}}\n{GPU}"
    found = render(tmp_path, f"{keys}conversion: {{cosine: 0.99999999}}\n").one("TG168")
    assert "wanted: cosine 0.99999999 and the same top-1" in found.message
    assert not re.search(r"cosine 1\b", found.message), "the figure that is too low does not read as 1"
    assert render(tmp_path, f"{keys}conversion: {{cosine: 0.9, top1: false}}\n").errors == []


def test_names_that_are_none_are_said_at_the_source(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\nprecision: fp16\nconversion: {{fp32_operators: [Gem], fp32_nodes: [q]}}\n{GPU}")
    assert [found.code for found in outcome.errors] == ["TG166", "TG166"]
    assert all("conversion." in found.message for found in outcome.errors)


def test_what_cannot_be_compared_is_refused_unless_that_was_asked_for(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    keys = f"source: m.onnx\nprecision: fp16\n{GPU}"
    refused = render(tmp_path, keys, prove_limit_bytes=1)
    found = refused.one("TG169")
    assert (found.severity, found.location.line) == (Severity.ERROR, 6)
    assert "the limit for proofs is" in found.message
    assert "conversion: {compare: false}" in found.hint
    assert not (tmp_path / ROOT).exists()
    waived = render(tmp_path, f"{keys}conversion: {{compare: false}}", prove_limit_bytes=1)
    assert not [each for each in waived.findings if each.code in ("TG167", "TG169")]
    assert kinds(served(tmp_path)) == {TensorProto.FLOAT16}


def test_an_output_without_a_number_is_refused_until_samples_give_it_some(tmp_path):
    """The root of -|x|, which is a number for 0 alone."""
    nodes = [node("Abs", ["x"], ["a"]), node("Neg", ["a"], ["b"]), node("Sqrt", ["b"], ["y"])]
    Graph(["N", 4], nodes, ["N", 4]).save(tmp_path / "m.onnx")
    keys = f"source: m.onnx\nprecision: fp16\n{GPU}"
    (found,) = render(tmp_path, keys).errors
    assert found.code == "TG169"
    assert found.message.startswith("output 'y' of the model in fp16 was not compared with the original's: all of its ")
    assert "give samples: with values" in found.hint
    assert render(tmp_path, f"{keys}samples: {{x: [0, 1, 0, 1]}}\n").errors == []


def test_whole_numbers_that_differ_are_said_as_such(tmp_path):
    """FP16 has no 2049."""
    nodes = [node("Add", ["x", "c"], ["a"]), node("Cast", ["a"], ["y"], to=TensorProto.INT64)]
    graph = Graph(["N", 4], nodes, ["N", 4], [scalar("c", np.float32(2048))])
    path = graph.save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    onnx.save(model, path)
    found = render(tmp_path, f"source: m.onnx\nprecision: fp16\nbatching: {{max: 1}}\nsamples: {{x: [1, 2, 0, 3]}}\n{GPU}").one("TG168")
    assert "output 'y' at a batch of 1: 50 % of the values are equal (2 of 4), max abs 1, max rel 0.00049" in found.message
    assert "of whole numbers, truth values and text 99.9 % equal" in found.message


def test_without_onnxruntime_a_converted_file_is_refused(tmp_path, monkeypatch):
    networks.mlp(tmp_path / "m.onnx")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else real(name, *rest))
    found = render(tmp_path, f"source: m.onnx\nprecision: fp16\n{GPU}").one("TG169")
    assert found.severity is Severity.ERROR
    assert "onnxruntime is not installed (pip install 'tritongen[serve]')" in found.message


def test_an_answer_that_optimising_may_mend_says_so(tmp_path):
    """FP16 has no variances of 1e-9, and ONNX Runtime folds them away."""
    numbers = {"one": [1, 1, 1, 1], "zero": [0, 0, 0, 0], "var": [1e-9, 1e-10, 1, 2]}
    statistics = [numpy_helper.from_array(np.array(values, np.float32), name) for name, values in numbers.items()]
    normal = node("BatchNormalization", ["x", "one", "zero", "zero", "var"], ["y"], name="norm", epsilon=1e-12)
    Graph(["N", 4], [normal], ["N", 4], statistics).save(tmp_path / "m.onnx")
    found = render(tmp_path, f"source: m.onnx\nprecision: fp16\n{GPU}").one("TG168")
    assert found.hint.startswith("write optimize: offline, which folds batch normalizations")
    steep(tmp_path / "m.onnx")
    assert "optimize" not in render(tmp_path, f"source: m.onnx\nprecision: fp16\n{GPU}").one("TG168").hint


def test_the_figures_are_the_worst_of_all_batches():
    first = Agreement("y", 1, max_abs=0.5, max_rel=0.1, cosine=0.9999, rows=1, same_top1=1)
    second = Agreement("y", 8, max_abs=0.25, max_rel=0.2, cosine=0.9995, rows=8, same_top1=7)
    (worst,) = Comparison(agreements=(first, second)).worst
    assert worst.numbers == "max abs 0.5, max rel 0.2, cosine 0.9995, the same top-1 in 8 of 9 rows"


def test_what_is_not_compared_is_said(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\nprecision: fp16\n{GPU}", prove_limit_bytes=0)
    assert "proofs are switched off" in outcome.one("TG169").message
    assert kinds(served(tmp_path)) == {TensorProto.FLOAT16}


def test_a_model_of_fp16_is_served_as_it_is(tmp_path):
    half = TensorProto.FLOAT16
    path = networks.save(tmp_path / "m.onnx", [helper.make_node("Add", ["x", "x"], ["y"])], [("x", half, ["N", 4])], [("y", half, ["N", 4])])
    outcome = render(tmp_path, f"source: m.onnx\nprecision: fp16\n{GPU}")
    assert "has no FP32 numbers" in outcome.one("TG167").message
    assert served(tmp_path).read_bytes() == path.read_bytes()


def test_a_precision_that_has_no_effect_converts_nothing(tmp_path):
    path = networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\nprecision: fp16\nconversion: {cosine: 0.99}\ninstances: {kind: cpu}")
    assert [found.location.line for found in outcome.findings if found.code == "TG117"] == [6, 7]
    assert served(tmp_path).read_bytes() == path.read_bytes()
