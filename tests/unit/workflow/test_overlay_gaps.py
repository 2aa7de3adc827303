"""What only the overlay can say: warmup with counts and random data, files by GPU, types; and what is said of it."""

from __future__ import annotations

import networks
import pytest

from tests.unit.workflow.rewriting import render
from tritongen.diagnostics import Severity

WARMUP = "config: {model_warmup: [{name: often, batch_size: 2, count: 5, inputs: {x: {data_type: TYPE_FP32, dims: [8], random_data: true}}}]}"


@pytest.mark.parametrize("keys", ["", "\nwarmup: none"])
def test_warmup_of_the_overlay_takes_the_place_of_what_is_derived(tmp_path, keys):
    networks.mlp(tmp_path / "m.onnx")
    outcome = render(tmp_path, f"source: m.onnx\n{WARMUP}{keys}")
    assert [(sample.name, sample.batch_size, sample.count) for sample in outcome.config.model_warmup] == [("often", 2, 5)]
    found = outcome.one("TG140")
    assert (found.severity, found.location.line) == (Severity.ADVICE, 6)


def test_two_statements_about_warmup_are_refused_with_both_places(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    found = render(tmp_path, f"source: m.onnx\nwarmup: [1, 4]\n{WARMUP}").one("TG180")
    assert found.location.line == 7
    assert "spec.yaml:6" in found.message


def test_a_sample_of_the_overlay_that_does_not_fit_is_refused_where_it_stands(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (found,) = render(tmp_path, f"source: m.onnx\n{WARMUP.replace('TYPE_FP32', 'TYPE_INT64')}").errors
    assert (found.code, found.location.line) == ("TG314", 6)


def test_a_file_for_a_gpu_that_is_not_written_is_said(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\nconfig: {cc_model_filenames: {'8.6': foo.onnx}}").one("TG234")
    assert (found.severity, found.location.line) == (Severity.WARNING, 6)
    assert "GPUs of compute capability 8.6 load foo.onnx, and version 1 has no such file" in found.message
    assert render(tmp_path, "source: m.onnx\nconfig: {cc_model_filenames: {'8.6': model.onnx}}").findings == ()


def test_a_type_that_the_model_does_not_have_is_said_once(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    (found,) = render(tmp_path, "source: m.onnx\nconfig: {input: [{name: x, data_type: TYPE_INT64}]}").errors
    assert (found.code, found.hint) == ("TG343", "write data_type: TYPE_FP32")


@pytest.mark.parametrize(
    ("entry", "message", "consequence"),
    [
        ("{dims: [4]}", "the entry does not say which input it is about", "Triton refuses an input without a name"),
        ("{name: zz}", "there is no input named 'zz' in the model", "Triton refuses to load a model whose config has an input that the model lacks"),
        ("3", "expected a mapping with the name of an input, got 3", "Triton refuses a config that it cannot parse"),
    ],
)
def test_an_entry_about_no_tensor_is_told_what_it_lacks(tmp_path, entry, message, consequence):
    networks.mlp(tmp_path / "m.onnx")
    found = render(tmp_path, f"source: m.onnx\nconfig: {{input: [{entry}]}}").one("TG132")
    assert (found.message, found.consequence) == (message, consequence)


@pytest.mark.parametrize(
    ("overlay", "words"),
    [("input: null", "got nothing"), ("metric_tags: [1]", "got a list"), ("default_model_filename: {}", ""), ("runtime: {a: 1}", "got a mapping")],
)
def test_what_stands_in_the_place_of_another_kind_is_named_as_yaml_has_it(tmp_path, overlay, words):
    networks.mlp(tmp_path / "m.onnx")
    (found,) = render(tmp_path, f"source: m.onnx\nconfig: {{{overlay}}}").errors
    assert words in found.message
