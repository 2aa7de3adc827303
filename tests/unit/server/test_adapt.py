"""What becomes of a config on a machine that cannot honour it."""

from __future__ import annotations

import pytest

from tritongen.modelconfig import parse_pbtxt
from tritongen.server import gpu
from tritongen.server.adapt import Machine, adapt

BASE = 'name: "m" platform: "onnxruntime_onnx" max_batch_size: 8 '
TENSORRT = (
    'optimization { execution_accelerators { gpu_execution_accelerator: [{ name: "tensorrt" '
    'parameters { key: "trt_engine_cache_path" value: "/engine-cache/m-abc" } }] } } '
)


@pytest.fixture
def cpu(tmp_path):
    return Machine(0, 8, str(tmp_path))


@pytest.fixture
def with_gpu(tmp_path):
    return Machine(2, 8, str(tmp_path))


def adapted(text, machine):
    given = parse_pbtxt(BASE + text)
    before = given.SerializeToString(deterministic=True)
    found = adapt(given, machine)
    assert given.SerializeToString(deterministic=True) == before
    return found


@pytest.mark.parametrize("text", ["", "instance_group [{ kind: KIND_CPU count: 4 }]", "instance_group [{ kind: KIND_AUTO }]", "instance_group [{ count: 2 }]"])
def test_what_runs_on_a_cpu_anyway_is_left_alone(cpu, text):
    assert adapted(text, cpu) is None


def test_nvidias_backend_by_its_file_is_the_backend_by_its_name(cpu):
    found = adapted('runtime: "libtriton_onnxruntime.so"', cpu)
    assert (found.config.runtime, found.differences) == ("", ())


def test_gpu_groups_move_to_the_cpu_and_share_its_cores(cpu):
    found = adapted("instance_group [{ kind: KIND_GPU count: 3 gpus: [0, 1] }, { gpus: [1] }]", cpu)
    assert found.config == parse_pbtxt(
        BASE
        + 'instance_group [{ kind: KIND_CPU count: 3 }, { kind: KIND_CPU count: 1 }] parameters { key: "intra_op_thread_count" value { string_value: "2" } }'
    )
    assert found.differences == ("its GPU instances run on the CPU, as this machine has no GPU", "each of its 4 instances uses 2 of 8 cores")
    assert not found.needs_source


def test_a_thread_count_of_the_config_stays(cpu):
    given = 'instance_group [{ kind: KIND_GPU count: 2 }] parameters { key: "intra_op_thread_count" value { string_value: "5" } }'
    assert adapted(given, cpu).config.parameters["intra_op_thread_count"].string_value == "5"


def test_accelerators_and_cuda_settings_go_and_the_rest_of_the_optimization_stays(cpu):
    found = adapted(TENSORRT, cpu)
    assert found.config == parse_pbtxt(BASE)
    assert found.differences == ("the GPU accelerator tensorrt is left out",)
    kept = adapted("optimization { cuda { graphs: true } graph { level: 1 } }", cpu)
    assert kept.config == parse_pbtxt(BASE + "optimization { graph { level: 1 } }")


def test_a_plan_is_served_from_its_source(cpu, with_gpu):
    text = (
        'platform: "tensorrt_plan" backend: "tensorrt" default_model_filename: "model.plan" cc_model_filenames { key: "8.6" value: "a.plan" } '
        'input [{ name: "x" data_type: TYPE_FP32 dims: [4] is_shape_tensor: true }] instance_group [{ kind: KIND_GPU profile: ["0"] }]'
    )
    given = parse_pbtxt('name: "m" max_batch_size: 8 ' + text)
    on_cpu, on_gpu = adapt(given, cpu), adapt(given, with_gpu)
    for found, kind in ((on_cpu, "KIND_CPU count: 1"), (on_gpu, "KIND_GPU")):
        assert found.needs_source
        tensor = 'input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]'
        assert found.config == parse_pbtxt(f'{BASE} backend: "onnxruntime" default_model_filename: "model.onnx" {tensor} instance_group [{{ kind: {kind} }}]')


def test_engine_caches_go_where_they_can_be_written(with_gpu, tmp_path):
    found = adapted(TENSORRT, with_gpu)
    (accelerator,) = found.config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.parameters["trt_engine_cache_path"] == f"{tmp_path}/m-abc"
    assert found.folders == (f"{tmp_path}/m-abc",)
    assert found.differences == ()
    writable = TENSORRT.replace("/engine-cache/m-abc", str(tmp_path))
    assert adapted(writable, with_gpu) is None


def test_a_file_that_holds_engines_goes_into_a_folder_that_is_made(with_gpu, tmp_path):
    cached = 'key: "trt_engine_cache_path" value: "/engine-cache/m-abc"'
    found = adapted(TENSORRT.replace(cached, 'key: "trt_ep_context_file_path" value: "/engine-cache/m-abc/m_ctx.onnx"'), with_gpu)
    (accelerator,) = found.config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.parameters["trt_ep_context_file_path"] == f"{tmp_path}/m-abc/m_ctx.onnx"
    assert found.folders == (f"{tmp_path}/m-abc",)


@pytest.mark.parametrize(("devices", "kept"), [("cpu:0;gpu:0", "cpu:0"), ("gpu:0;gpu:1", None), ("cpu:0", "cpu:0")])
def test_memory_of_a_gpu_is_not_given_back_where_there_is_none(cpu, with_gpu, devices, kept):
    text = f'instance_group [{{ kind: KIND_GPU }}] parameters {{ key: "memory.enable_memory_arena_shrinkage" value {{ string_value: "{devices}" }} }}'
    found = adapted(text, cpu)
    left = {name: value.string_value for name, value in found.config.parameters.items()}
    assert left == ({"memory.enable_memory_arena_shrinkage": kept} if kept else {})
    assert ("no memory of a GPU is given back" in found.differences) is (kept != devices)
    assert adapted(text, with_gpu) is None
    assert adapted(text.replace("KIND_GPU", "KIND_CPU"), cpu) is None, "a mistake on any machine, and requests say so"


@pytest.mark.parametrize(
    ("devices", "setting", "expected"),
    [(2, None, 2), (2, "", 0), (2, "-1", 0), (2, "1", 1), (2, "0,1", 2), (2, "0,7,1", 1), (2, "GPU-abc", 1), (1, "GPU-a,GPU-b", 1)],
)
def test_cuda_visible_devices(devices, setting, expected):
    assert gpu.visible(devices, setting) == expected
