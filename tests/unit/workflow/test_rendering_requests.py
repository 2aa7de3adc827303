"""Ragged and optional inputs from spec and model file to what would be written, proofs in ONNX Runtime included."""

from __future__ import annotations

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.server import models, ragged
from tests.unit.workflow.test_rendering import config_of, errors, write
from tritongen.workflow.rendering import plan_render

KINDS = ("element_count", "accumulated_element_count", "accumulated_element_count_with_zero", "max_element_count_as_shape", "item_shape_flatten")
OFFSETS = "batch_inputs: [{names: [offsets], kind: batch_accumulated_element_count_with_zero, source: x}]"


def segment_sums(folder):
    onnx.save(ragged.segment_sums(), folder / "m.onnx")


@pytest.mark.parametrize("values", ["shapes: {x: [5]}", "samples: {x: [1, 2, 3, 4]}", "shapes: {x: {min: [1], opt: [4], max: [64]}}"])
def test_a_ragged_model_is_proved_with_the_batch_inputs_that_the_backend_would_make(tmp_path, values):
    segment_sums(tmp_path)
    rendering = plan_render(write(tmp_path, f"source: m.onnx\n{values}\nragged: {{{OFFSETS}, batch_outputs: [{{names: [doubled], source: x}}]}}"))
    assert rendering.findings == ()
    config = config_of(rendering)
    assert [sample.batch_size for sample in config.model_warmup] == [1, 8]
    assert [entry.target_name[0] for entry in config.batch_input] == ["offsets"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_runs(tmp_path, kind):
    onnx.save(ragged.echo(ragged.INT32), tmp_path / "m.onnx")
    keys = f"source: m.onnx\nshapes: {{x: [3]}}\nragged: {{batch_inputs: [{{names: [made], kind: batch_{kind}, source: x}}]}}"
    assert plan_render(write(tmp_path, keys)).findings == ()


def test_a_wrong_kind_shows_in_the_proof(tmp_path):
    """One offset for each request is one too few for this graph, which then answers one row too few."""
    segment_sums(tmp_path)
    keys = f"source: m.onnx\nshapes: {{x: [5]}}\nragged: {{{OFFSETS.replace('_with_zero', '')}, batch_outputs: [{{names: [doubled], source: x}}]}}"
    found = errors(tmp_path, keys)["TG145"]
    assert "output 'sums' has no rows for a request of 1" in found.message


def test_an_output_that_is_no_value_for_each_element_cannot_be_cut(tmp_path):
    segment_sums(tmp_path)
    found = errors(tmp_path, f"source: m.onnx\nshapes: {{x: [5]}}\nragged: {{{OFFSETS}, batch_outputs: [{{names: [sums, doubled], source: x}}]}}")["TG404"]
    assert "output 'sums' is 1 long for 1 request whose 'x' has 5 elements together" in found.message
    assert found.location.line == 7


def test_an_output_that_should_be_cut_has_no_rows(tmp_path):
    segment_sums(tmp_path)
    assert "output 'doubled' has 5 rows for a request of 1" in errors(tmp_path, f"source: m.onnx\nshapes: {{x: [5]}}\nragged: {{{OFFSETS}}}")["TG145"].message


def test_a_graph_with_a_batch_axis_is_not_made_ragged_by_a_setting(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    found = errors(tmp_path, "source: m.onnx\nragged: {inputs: [x]}")["TG400"]
    assert "x FP32 [N, 8]" in found.message
    assert "padding" in found.hint


def test_an_overlay_and_the_key_do_not_set_the_same(tmp_path):
    segment_sums(tmp_path)
    overlay = "config: {batch_output: [{target_name: [doubled], source_input: [x]}]}"
    found = errors(tmp_path, f"source: m.onnx\nshapes: {{x: [5]}}\nragged: {{{OFFSETS}, batch_outputs: [{{names: [doubled], source: x}}]}}\n{overlay}")["TG180"]
    assert "ragged.batch_outputs at" in found.message


def test_prove_true_says_that_items_of_ragged_inputs_are_no_rows(tmp_path):
    segment_sums(tmp_path)
    keys = f"source: m.onnx\nprove: true\nshapes: {{x: [5]}}\nragged: {{{OFFSETS}, batch_outputs: [{{names: [doubled], source: x}}]}}"
    (found,) = plan_render(write(tmp_path, keys)).findings
    assert (found.code, found.message) == ("TG117", "prove has no effect: no row stands beside another")


def test_an_optional_input_is_written_and_batching_is_off_with_the_reason(tmp_path):
    onnx.save(models.with_default(), tmp_path / "m.onnx")
    rendering = plan_render(write(tmp_path, "source: m.onnx\nshapes: {x: [4]}\noptional_inputs: [s]"))
    config = config_of(rendering)
    assert [(tensor.name, tensor.optional) for tensor in config.input] == [("x", False), ("s", True)]
    assert config.max_batch_size == 0


def test_samples_of_a_model_with_optional_inputs_are_whole(tmp_path):
    nodes = [helper.make_node("Mul", ["x", "s"], ["y"])]
    inputs = [models.value("x", TensorProto.FLOAT, ["N", 2]), models.value("s", TensorProto.FLOAT, [1])]
    onnx.save(models.model(nodes, inputs, [models.value("y", TensorProto.FLOAT, ["N", 2])], s=np.array([3], np.float32)), tmp_path / "m.onnx")
    config = config_of(plan_render(write(tmp_path, "source: m.onnx\nsamples: {x: [[1, 2]]}\noptional_inputs: [s]")))
    assert list(config.model_warmup[0].inputs["x"].dims) == [1, 2]
