"""Outputs of which ONNX Runtime knows more than the model file states: what is written, and what a proof still refuses."""

from __future__ import annotations

from pathlib import Path

import networks
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.unit.workflow.rewriting import render

FLOAT = TensorProto.FLOAT


def open_output(path: Path) -> None:
    """`x: float32[N, 3] → y: float32[N, K]`, where K can only be 3."""
    networks.save(path, [helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT, ["N", 3])], [("y", FLOAT, ["N", "K"])])


def hidden(path: Path) -> None:
    """`x: float32[N, 8] → a: float32[N, A], b: float32[N, B]`: A is 8 and B is 4 by sums over 2000 numbers, which only ONNX Runtime computes while loading."""

    def many(total: int) -> np.ndarray:
        return np.array([total] + [0] * 1999)

    stored = [numpy_helper.from_array(value, name) for name, value in (("any", np.array([-1])), ("m_a", many(8)), ("m_b", many(4)))]
    stored.append(numpy_helper.from_array(np.ones((8, 4), np.float32), "w"))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"])]
    for name, source in (("a", "x"), ("b", "h")):
        nodes += [
            helper.make_node("ReduceSum", [f"m_{name}"], [f"sum_{name}"], keepdims=1),
            helper.make_node("Concat", ["any", f"sum_{name}"], [f"shape_{name}"], axis=0),
            helper.make_node("Reshape", [source, f"shape_{name}"], [name]),
        ]
    networks.save(path, nodes, [("x", FLOAT, ["N", 8])], [("a", FLOAT, ["N", "A"]), ("b", FLOAT, ["N", "B"])], stored)


def test_an_output_is_written_as_onnxruntime_infers_it_and_the_header_says_so(tmp_path):
    open_output(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx")
    assert outcome.findings == ()
    assert list(outcome.config.output[0].dims) == [3]
    assert "Output y FP32 [N, 3] is as ONNX Runtime infers it, and Triton compares with that; the model file states y FP32 [N, K]." in outcome.text


def test_it_is_written_so_without_onnxruntime_too(tmp_path):
    for name, options in (("with", {}), ("without", {"prove_limit_bytes": 0})):
        (tmp_path / name).mkdir()
        open_output(tmp_path / name / "m.onnx")
        render(tmp_path / name, "source: m.onnx", **options)
    texts = [(tmp_path / name / "model_repository/m/config.pbtxt").read_bytes() for name in ("with", "without")]
    assert texts[0] == texts[1]


def test_a_plan_has_the_shapes_of_the_file(tmp_path):
    open_output(tmp_path / "m.onnx")
    assert list(render(tmp_path, "source: m.onnx\nbackend: tensorrt").config.output[0].dims) == [-1]


def test_trained_states_are_served_as_they_come(tmp_path):
    source = networks.packaged("silero_vad/data/silero_vad_16k_sequence.onnx")
    outcome = render(tmp_path, f"source: {source}\nbatching: none\nwarmup: none")
    assert outcome.errors == []
    assert {tensor.name: list(tensor.dims) for tensor in outcome.config.output} == {"speech_probs": [-1], "hn": [1, 1, 128], "cn": [1, 1, 128]}


def test_a_frozen_file_is_served_as_it_comes(tmp_path):
    source = networks.packaged("silero_vad/data/silero_vad_16k_op15.onnx")
    outcome = render(tmp_path, f"source: {source}\nbatching: none\nfreeze: true\nshapes: {{input: [1, 512], state: [2, 1, 128]}}\nsamples: {{sr: 16000}}")
    assert outcome.errors == []


def test_what_only_onnxruntime_finds_out_is_refused_with_one_overlay_for_all_of_it(tmp_path):
    hidden(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx").one("TG144")
    assert "output 'a' has dims [-1] in its config, and ONNX Runtime infers [8]; output 'b'" in found.message
    outcome = render(tmp_path, f"source: m.onnx\n{found.hint.removeprefix('add ')}")
    assert outcome.errors == []
    assert [list(tensor.dims) for tensor in outcome.config.output] == [[8], [4]]


def test_the_overlay_that_is_there_is_named(tmp_path):
    hidden(tmp_path / "m.onnx")
    found = render(tmp_path, "source: m.onnx\nconfig:\n  metric_tags: {team: a}").one("TG144")
    assert "spec.yaml:6" in found.hint
    assert found.hint.endswith("output: [{name: a, dims: [8]}, {name: b, dims: [4]}]")


def test_an_overlay_with_other_dims_is_said_where_it_stands(tmp_path):
    hidden(tmp_path / "m.onnx")
    outcome = render(tmp_path, "source: m.onnx\nconfig:\n  output:\n  - {name: a, dims: [8]}\n  - {name: b, dims: [7]}")
    found = outcome.one("TG144")
    assert (found.location.line, found.hint) == (9, "write dims: [4], or remove them")
