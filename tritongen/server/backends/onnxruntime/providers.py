"""Execution providers: what the config asks for, in onnxruntime's terms.

GPU accelerators count for GPU instances only; on a CPU instance NVIDIA's backend ignores the whole list, and so do we. What this onnxruntime cannot provide is
said, not hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import RefusedError
from .settings import boolean, integer, parameter

_CUDA = "CUDAExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"
_OPENVINO = "OpenVINOExecutionProvider"
_CPU = "CPUExecutionProvider"

_TENSORRT_SAME_NAME = frozenset(
    {
        "trt_max_partition_iterations",
        "trt_min_subgraph_size",
        "trt_dla_enable",
        "trt_dla_core",
        "trt_engine_cache_enable",
        "trt_engine_cache_path",
        "trt_engine_cache_prefix",
        "trt_dump_subgraphs",
        "trt_force_sequential_engine_build",
        "trt_context_memory_sharing_enable",
        "trt_layer_norm_fp32_fallback",
        "trt_timing_cache_enable",
        "trt_timing_cache_path",
        "trt_force_timing_cache",
        "trt_detailed_build_log",
        "trt_build_heuristics_enable",
        "trt_sparsity_enable",
        "trt_builder_optimization_level",
        "trt_auxiliary_streams",
        "trt_tactic_sources",
        "trt_extra_plugin_lib_paths",
        "trt_profile_min_shapes",
        "trt_profile_opt_shapes",
        "trt_profile_max_shapes",
        "trt_cuda_graph_enable",
        "trt_dump_ep_context_model",
        "trt_ep_context_file_path",
        "trt_ep_context_embed_mode",
    }
)
"""Parameters of the `tensorrt` accelerator that onnxruntime knows by the same name; any other is refused."""

_TENSORRT_RENAMED = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}

_PRECISIONS = {"FP32": None, "FP16": "trt_fp16_enable", "INT8": "trt_int8_enable", "BF16": "trt_bf16_enable"}

_CUDNN_SEARCH = {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"}
_ARENA_STRATEGY = {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"}


@dataclass(frozen=True)
class Providers:
    """Provider names with their options, in order of preference, and those that were asked for but are not in this onnxruntime."""

    available: tuple[tuple[str, dict[str, str]], ...]
    missing: tuple[str, ...]

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the available providers other than the CPU, in order; the session must turn out to have them."""
        return tuple(name for name, _ in self.available if name != _CPU)


def choose(config: Mapping[str, Any], kind: str, device_id: str, have: Iterable[str]) -> Providers:
    """The providers for one instance.

    Args:
        config: the model's config.
        kind: the instance's kind as the stub names it, `CPU`, `GPU` or `MODEL`.
        device_id: the GPU's number.
        have: the providers of this onnxruntime.

    Raises RefusedError for an unknown accelerator or parameter.
    """
    accelerators = config.get("optimization", {}).get("execution_accelerators", {})
    wanted: list[tuple[str, dict[str, str]]] = []
    if kind == "GPU":
        wanted += _for_gpu(config, accelerators.get("gpu_execution_accelerator", []), device_id)
    for accelerator in accelerators.get("cpu_execution_accelerator", []):
        if accelerator["name"] != "openvino":
            raise RefusedError(f"unknown Execution Accelerator '{accelerator['name']}' is requested")
        wanted.append((_OPENVINO, {"device_type": "CPU"}))
    known = set(have)
    available = [(name, options) for name, options in wanted if name in known]
    return Providers((*available, (_CPU, {})), tuple(name for name, _ in wanted if name not in known))


def _for_gpu(config: Mapping[str, Any], accelerators: Iterable[Mapping[str, Any]], device_id: str) -> list[tuple[str, dict[str, str]]]:
    """Providers of a GPU instance: those that are asked for, and CUDA last in any case, as what remains of the graph runs there."""
    cuda = {"device_id": device_id, **_cuda_parameters(config)}
    found = []
    for accelerator in accelerators:
        given = dict(accelerator.get("parameters", {}))
        if accelerator["name"] == "tensorrt":
            found.append((_TENSORRT, {"device_id": device_id, **_tensorrt_options(given)}))
        elif accelerator["name"] == "cuda":
            cuda = given | cuda
        else:
            raise RefusedError(f"unknown Execution Accelerator '{accelerator['name']}' is requested")
    return [*found, (_CUDA, cuda)]


def _cuda_parameters(config: Mapping[str, Any]) -> dict[str, str]:
    """The four settings of the CUDA provider that are read from the config's `parameters`."""
    found = {}
    if (text := parameter(config, "cudnn_conv_algo_search")) is not None:
        found["cudnn_conv_algo_search"] = _among("cudnn_conv_algo_search", text, _CUDNN_SEARCH)
    if (text := parameter(config, "gpu_mem_limit")) is not None:
        found["gpu_mem_limit"] = str(integer(text))
    if (text := parameter(config, "arena_extend_strategy")) is not None:
        found["arena_extend_strategy"] = _among("arena_extend_strategy", text, _ARENA_STRATEGY)
    if (text := parameter(config, "do_copy_in_default_stream")) is not None:
        found["do_copy_in_default_stream"] = "1" if boolean("do_copy_in_default_stream", text) else "0"
    return found


def _among(name: str, text: str, allowed: Mapping[str, str]) -> str:
    if text not in allowed:
        raise RefusedError(f"Invalid configuration value provided. Expected values for {name} are {', '.join(allowed)} but got {text} .")
    return allowed[text]


def _tensorrt_options(given: Mapping[str, str]) -> dict[str, str]:
    """The `tensorrt` accelerator's parameters as options of onnxruntime's TensorRT provider."""
    found: dict[str, str] = {}
    for name, value in given.items():
        if name == "precision_mode":
            if value not in _PRECISIONS:
                raise RefusedError(f"unsupported precision mode '{value}' is requested")
            if (switch := _PRECISIONS[value]) is not None:
                found[switch] = "1"
        elif name in _TENSORRT_RENAMED:
            found[_TENSORRT_RENAMED[name]] = value
        elif name in _TENSORRT_SAME_NAME:
            found[name] = value
        else:
            raise RefusedError(f"unknown parameter '{name}' is provided for TensorRT Execution Accelerator")
    return found
