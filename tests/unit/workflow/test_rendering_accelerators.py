"""Models with ONNX Runtime's TensorRT accelerator, from the spec to the config: where engines are kept, and the profiles that they are built for."""

from pathlib import PurePosixPath

import networks
import pytest
from onnx import TensorProto, helper

from tests.unit.workflow.test_rendering import config_of, errors, rendered, write
from tritongen.workflow.rendering import plan_render


def test_the_tensorrt_accelerator_has_a_cache_of_its_own_and_whole_profiles(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    config = rendered(tmp_path, "source: m.onnx\naccelerator: tensorrt\nprecision: fp16\nbatching: {max: 8, preferred: [4]}")
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert accelerator.parameters["precision_mode"] == "FP16"
    assert accelerator.parameters["trt_engine_cache_path"].startswith("/engine-cache/m-")
    assert [accelerator.parameters[f"trt_profile_{which}_shapes"] for which in ("min", "opt", "max")] == ["x:1x8", "x:4x8", "x:8x8"]
    assert [(group.kind, group.count) for group in config.instance_group] == [(1, 1)], "an accelerator on a GPU needs KIND_GPU, or Triton ignores it"
    other = rendered(tmp_path, "source: m.onnx\naccelerator: tensorrt\nprecision: fp32\nbatching: {max: 8, preferred: [4]}")
    cache = other.optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["trt_engine_cache_path"]
    assert cache != accelerator.parameters["trt_engine_cache_path"]


@pytest.mark.parametrize("name", ["m", "n" * 255])
def test_engines_lie_directly_in_the_folder_of_all_engines(tmp_path, name):
    """ONNX Runtime makes the folder of a model's engines, and no other: one that lay deeper would keep the model from loading on a new volume."""
    networks.mlp(tmp_path / "m.onnx")
    keys = "source: m.onnx, accelerator: tensorrt, batching: {max: 8}"
    (tmp_path / "spec.yaml").write_text(f"version: 1\ntriton: {{engine_cache: /var/engines}}\nmodels: [{{name: {name}, {keys}}}]\n")
    config = config_of(plan_render(tmp_path / "spec.yaml"), name)
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    for key in ("trt_engine_cache_path", "trt_timing_cache_path"):
        path = PurePosixPath(accelerator.parameters[key])
        assert path.parent == PurePosixPath("/var/engines")
        assert len(path.name) <= 255


def test_weights_that_change_get_another_engine_cache(tmp_path):
    paths = []
    for seed in (1, 2):
        networks.mlp(tmp_path / "m.onnx", seed=seed)
        config = rendered(tmp_path, "source: m.onnx\naccelerator: tensorrt")
        paths.append(config.optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["trt_engine_cache_path"])
    assert paths[0] != paths[1]


def test_a_profile_is_given_for_all_inputs_or_for_none(tmp_path):
    path = tmp_path / "m.onnx"
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    networks.save(path, nodes, [("a", TensorProto.FLOAT, ["N", "A", 3]), ("b", TensorProto.FLOAT, ["N", 3, "B"])], [("y", TensorProto.FLOAT, ["N", "A", "B"])])
    rendering = plan_render(write(tmp_path, "source: m.onnx\naccelerator: tensorrt\nshapes: {a: [2, 3]}"))
    parameters = config_of(rendering).optimization.execution_accelerators.gpu_execution_accelerator[0].parameters
    assert not [key for key in parameters if "profile" in key]
    assert "'b'" in next(finding for finding in rendering.findings if finding.code == "TG113").message
    whole = rendered(tmp_path, "source: m.onnx\naccelerator: tensorrt\nbatching: {max: 2}\nshapes: {a: [2, 3], b: {min: [3, 1], opt: [3, 4], max: [3, 9]}}")
    assert whole.optimization.execution_accelerators.gpu_execution_accelerator[0].parameters["trt_profile_max_shapes"] == "a:2x2x3,b:2x3x9"


def test_a_tensor_name_that_a_profile_cannot_hold_is_refused(tmp_path):
    networks.save(tmp_path / "m.onnx", [helper.make_node("Neg", ["x:0"], ["y"])], [("x:0", TensorProto.FLOAT, ["N", 3])], [("y", TensorProto.FLOAT, ["N", 3])])
    assert "rename" in errors(tmp_path, "source: m.onnx\naccelerator: tensorrt")["TG114"].hint
    assert rendered(tmp_path, "source: m.onnx").input[0].name == "x:0"
