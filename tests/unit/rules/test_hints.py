"""Hints that name what is left, and only the nearest of many."""

import pytest

from tests.rules.building import build_onnx
from tritongen.check.evaluate import evaluate_path
from tritongen.releases import find_release
from tritongen.rules import ServerFacts

STEP = 'step {{ model_name: "{}" model_version: -1 input_map {{ key: "x" value: "A" }} output_map {{ key: "y" value: "Z" }} }}'
ENSEMBLE = """platform: "ensemble"
input { name: "A" data_type: TYPE_FP32 dims: [4] }
output { name: "Z" data_type: TYPE_FP32 dims: [4] }
ensemble_scheduling { %s }
"""


def found(root, code):
    return [diagnostic for diagnostic in evaluate_path(root, ServerFacts()) if diagnostic.code == code]


def onnx(root, graph, config):
    (root / "m/1").mkdir(parents=True)
    (root / "m/1/model.onnx").write_bytes(build_onnx(graph))
    (root / "m/config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\noutput { name: "y" data_type: TYPE_FP32 dims: [4] }\n' + config)


def test_an_input_that_is_taken_is_not_suggested_for_a_control(tmp_path):
    control = 'sequence_batching { control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }'
    onnx(tmp_path, "input x FP32 [N, 4]\noutput y FP32 [N, 4]\n", f'input {{ name: "x" data_type: TYPE_FP32 dims: [4] }}\n{control}\n')
    (finding,) = found(tmp_path, "TG342")
    assert "did you mean" not in finding.hint
    assert "no input left" in finding.hint


def test_the_free_input_is_suggested(tmp_path):
    control = 'sequence_batching { control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }'
    graph = "input x FP32 [N, 4]\ninput begin FP32 [N, 1]\noutput y FP32 [N, 4]\n"
    onnx(tmp_path, graph, f'input {{ name: "x" data_type: TYPE_FP32 dims: [4] }}\n{control}\n')
    (finding,) = found(tmp_path, "TG342")
    assert 'name: "begin"' in finding.hint


@pytest.mark.parametrize(("release", "severity"), [(None, "advice"), ("24.10", "advice"), ("26.01", "advice"), ("26.02", "error"), ("26.10", "error")])
@pytest.mark.parametrize("location", ["../w.bin", "/nowhere/w.bin", "link.bin"])
def test_external_data_outside_is_refused_from_the_release_on_that_refuses_it(location, release, severity, tmp_path):
    onnx(tmp_path, f"input x FP32 [N, 4]\noutput y FP32 [N, 4]\nexternal w {location}\n", 'input { name: "x" data_type: TYPE_FP32 dims: [4] }\n')
    (tmp_path / "m/w.bin").write_bytes(bytes(8))
    (tmp_path / "m/1/link.bin").symlink_to("../w.bin")
    facts = ServerFacts(find_release(release) if release else None)
    (finding,) = [diagnostic for diagnostic in evaluate_path(tmp_path, facts) if diagnostic.code == "TG340"]
    assert finding.severity.value == severity
    assert location in finding.message
    assert "26.02" in finding.message or release == "26.10"


def ensemble(root, step):
    (root / "e/1").mkdir(parents=True)
    (root / "e/config.pbtxt").write_text(ENSEMBLE % step)


def test_of_many_models_the_nearest_few_are_named(tmp_path):
    for number in range(40):
        (tmp_path / f"detector_{number}/1").mkdir(parents=True)
    ensemble(tmp_path, STEP.format("ocr"))
    (finding,) = found(tmp_path, "TG325")
    assert finding.hint.count("detector_") == 3
    assert "40 models" in finding.hint


def test_version_0_that_is_written_is_not_called_absent(tmp_path):
    (tmp_path / "a/1").mkdir(parents=True)
    (tmp_path / "a/1/model.py").write_text("class TritonPythonModel:\n    def execute(self, requests):\n        return []\n")
    tensors = 'input { name: "x" data_type: TYPE_FP32 dims: [4] }\noutput { name: "y" data_type: TYPE_FP32 dims: [4] }\n'
    (tmp_path / "a/config.pbtxt").write_text('backend: "python"\n' + tensors)
    ensemble(tmp_path, STEP.format("a").replace("-1", "0"))
    (finding,) = found(tmp_path, "TG326")
    assert "asks for version 0, as a step without model_version does" in finding.message
