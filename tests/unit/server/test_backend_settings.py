"""Thread counts, switches, providers and command-line settings, as NVIDIA's backend reads them."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest

from tritongen.server.backends.onnxruntime import host, providers, release, settings
from tritongen.server.backends.onnxruntime.errors import RefusedError, ort_message

CPU = ("CPUExecutionProvider", {})
ALL = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "OpenVINOExecutionProvider", "CPUExecutionProvider"]


def config(accelerators=None, **parameters):
    return {
        "name": "m",
        "parameters": {name: {"string_value": text} for name, text in parameters.items()},
        "optimization": {"execution_accelerators": accelerators or {}},
    }


def options(**parameters):
    return settings.session_options(config(**parameters), Path("/nowhere"), {})


def test_thread_counts():
    found = options(intra_op_thread_count="3", inter_op_thread_count="2 threads")
    assert (found.intra_op_num_threads, found.inter_op_num_threads) == (3, 2)
    assert options(intra_op_thread_count="0").intra_op_num_threads == 0
    assert settings.session_options(config(), Path("/nowhere"), {"intra_op_thread_count": "5"}).intra_op_num_threads == 5


def test_execution_mode():
    assert options(execution_mode="1").execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    with pytest.raises(RefusedError, match=r"Expected values for  execution_mode are 0 or 1 but got 7"):
        options(execution_mode="7")


def test_switches():
    found = options(enable_mem_arena="OFF", enable_mem_pattern="0")
    assert (found.enable_cpu_mem_arena, found.enable_mem_pattern) == (False, False)
    with pytest.raises(RefusedError, match="failed to convert 'maybe' to boolean"):
        options(enable_mem_arena="maybe")


def test_an_operator_library_that_does_not_load_is_named():
    given = config() | {"model_operations": {"op_library_filename": ["ops.so"]}}
    with pytest.raises(RefusedError, match=r"failed to load custom operators from 'ops\.so'"):
        settings.session_options(given, Path("/nowhere"), {})


@pytest.mark.parametrize(
    ("level", "expected"), [(-1, "ORT_ENABLE_BASIC"), (0, "ORT_ENABLE_ALL"), (1, "ORT_ENABLE_EXTENDED"), (2, "ORT_DISABLE_ALL"), (99, "ORT_ENABLE_ALL")]
)
def test_graph_levels_are_nvidias_not_the_obvious_ones(level, expected):
    assert settings.graph_level({"optimization": {"graph": {"level": level}}}).name == expected


def test_shrinkage_goes_to_each_run():
    assert settings.run_options(config()) is None
    found = settings.run_options(config(**{"memory.enable_memory_arena_shrinkage": "cpu:0"}))
    assert found.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


def tensorrt(**parameters):
    return {"gpu_execution_accelerator": [{"name": "tensorrt", "parameters": parameters}]}


def test_a_cpu_instance_ignores_gpu_accelerators():
    found = providers.choose(config({"gpu_execution_accelerator": [{"name": "foo"}]}), "CPU", "0", ALL)
    assert (found.available, found.missing) == ((CPU,), ())


def test_a_gpu_instance_has_tensorrt_then_cuda_then_cpu():
    asked = tensorrt(precision_mode="FP16", max_workspace_size_bytes="1024", trt_engine_cache_enable="1")
    found = providers.choose(config(asked, gpu_mem_limit="99", cudnn_conv_algo_search="1"), "GPU", "1", ALL)
    assert found.available == (
        ("TensorrtExecutionProvider", {"device_id": "1", "trt_fp16_enable": "1", "trt_max_workspace_size": "1024", "trt_engine_cache_enable": "1"}),
        ("CUDAExecutionProvider", {"device_id": "1", "gpu_mem_limit": "99", "cudnn_conv_algo_search": "HEURISTIC"}),
        CPU,
    )


def test_what_this_onnxruntime_lacks_is_told():
    found = providers.choose(config(tensorrt()), "GPU", "0", ["CPUExecutionProvider"])
    assert (found.available, found.missing) == ((CPU,), ("TensorrtExecutionProvider", "CUDAExecutionProvider"))


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"gpu_execution_accelerator": [{"name": "foo"}]}, "GPU", "unknown Execution Accelerator 'foo' is requested"),
        ({"cpu_execution_accelerator": [{"name": "foo"}]}, "CPU", "unknown Execution Accelerator 'foo' is requested"),
        (tensorrt(trt_fp16_enable="1"), "GPU", "unknown parameter 'trt_fp16_enable' is provided for TensorRT Execution Accelerator"),
        (tensorrt(precision_mode="FP8"), "GPU", "unsupported precision mode 'FP8' is requested"),
    ],
)
def test_accelerators_that_are_refused(given, kind, message):
    with pytest.raises(RefusedError, match=message):
        providers.choose(config(given), kind, "0", ALL)


def test_settings_of_the_servers_command_line():
    line = [
        "tritonserver",
        "--backend-config=default-max-batch-size=7",
        "--backend-config",
        "onnxruntime,intra_op_thread_count=2",
        "--backend-config=python,shm=1",
    ]
    assert host.backend_settings(line) == {"default-max-batch-size": "7", "intra_op_thread_count": "2"}


def test_onnxruntimes_errors_read_as_in_nvidias_backend():
    assert ort_message(RuntimeError("[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Protobuf parsing failed.")) == "onnx runtime error 7: Protobuf parsing failed."
    assert ort_message(RuntimeError("something else")) == "onnx runtime error: something else"


@pytest.mark.parametrize(
    ("message", "reads", "said"),
    [
        ("External data path escapes model directory", "true", True),
        ("Absolute path not allowed for external data location", "true", True),
        ("External data path escapes model directory", "", False),
        ("Protobuf parsing failed.", "true", False),
    ],
)
def test_a_refusal_that_the_release_does_not_share_says_so(message, reads, said):
    wanted = release.target({"tritongen-release": "24.10", "tritongen-onnxruntime": "1.19.2", "tritongen-reads-outside": reads})
    assert ("release 24.10 would load it" in release.confined_since(message, wanted)) is said
