"""Execution accelerators: the names and keys that NVIDIA's onnxruntime backend takes.

GPU accelerators count for GPU instances only; on a CPU instance that backend ignores the whole list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .parameters import boolean, integer
from .problem import Kind, Path, Problem

PRECISIONS: Mapping[str, str] = {"FP32": "", "FP16": "trt_fp16_enable", "INT8": "trt_int8_enable", "BF16": "trt_bf16_enable"}
"""Values of `precision_mode` → the option of ONNX Runtime that it switches on. BF16 is known from release 26.02 on."""

TENSORRT_KEYS: Mapping[str, tuple[str, str]] = {
    "precision_mode": ("precision", ""),
    "max_workspace_size_bytes": ("size", "trt_max_workspace_size"),
    "int8_calibration_table_name": ("text", "trt_int8_calibration_table_name"),
    "int8_use_native_calibration_table": ("switch", "trt_int8_use_native_calibration_table"),
    **{name: ("number", name) for name in ("trt_max_partition_iterations", "trt_min_subgraph_size", "trt_dla_core", "trt_builder_optimization_level")},
    **{name: ("number", name) for name in ("trt_auxiliary_streams", "trt_ep_context_embed_mode")},
    **{name: ("switch", name) for name in ("trt_dla_enable", "trt_engine_cache_enable", "trt_dump_subgraphs", "trt_force_sequential_engine_build")},
    **{name: ("switch", name) for name in ("trt_context_memory_sharing_enable", "trt_layer_norm_fp32_fallback", "trt_timing_cache_enable")},
    **{name: ("switch", name) for name in ("trt_force_timing_cache", "trt_detailed_build_log", "trt_build_heuristics_enable", "trt_sparsity_enable")},
    **{name: ("switch", name) for name in ("trt_cuda_graph_enable", "trt_dump_ep_context_model")},
    **{name: ("text", name) for name in ("trt_engine_cache_path", "trt_engine_cache_prefix", "trt_timing_cache_path", "trt_tactic_sources")},
    **{name: ("text", name) for name in ("trt_extra_plugin_lib_paths", "trt_ep_context_file_path")},
    **{name: ("text", name) for name in ("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes")},
}
"""Keys of the `tensorrt` accelerator's parameters → what they hold, and ONNX Runtime's name of the option. Any other key is refused."""

CUDA_KEYS = frozenset(
    {
        *("device_id", "user_compute_stream", "has_user_compute_stream", "gpu_external_alloc", "gpu_external_free", "gpu_external_empty_cache"),
        *("gpu_mem_limit", "arena_extend_strategy", "cudnn_conv_algo_search", "do_copy_in_default_stream", "cudnn_conv_use_max_workspace"),
        *("cudnn_conv1d_pad_to_nc1d", "enable_cuda_graph", "enable_skip_layer_norm_strict_mode", "tunable_op_enable", "tunable_op_tuning_enable"),
        *("tunable_op_max_tuning_duration_ms", "prefer_nhwc", "use_ep_level_unified_stream", "use_tf32", "sdpa_kernel", "fuse_conv_bias", "enable_cudnn"),
    }
)
"""Options of ONNX Runtime's CUDA provider, to which the `cuda` accelerator's parameters are handed as they are. ONNX Runtime refuses any other."""

OPTION_SINCE: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("prefer_nhwc", "use_ep_level_unified_stream", "trt_engine_cache_prefix", "trt_timing_cache_path"), (1, 17)),
    **dict.fromkeys(("trt_force_timing_cache", "trt_dump_ep_context_model", "trt_ep_context_file_path", "trt_ep_context_embed_mode"), (1, 17)),
    "use_tf32": (1, 18),
    "sdpa_kernel": (1, 19),
    "fuse_conv_bias": (1, 20),
    "enable_cudnn": (1, 28),
}
"""The first ONNX Runtime that has an option, where that is later than 1.16. Measured: the names in the provider libraries of onnxruntime-gpu 1.16.3, 1.17.1,
1.18.1, 1.19.2, 1.20.0, 1.21.0, 1.22.0, 1.23.2, 1.24.4, 1.27.0 and 1.28.0. An older one refuses the option.
"""

CUDA_SHADOWED = ("cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy", "do_copy_in_default_stream")
"""Keys of the `cuda` accelerator that the backend overwrites with those of the config's `parameters`, or with its defaults."""

_CUDA_SWITCHES = ("do_copy_in_default_stream", "use_ep_level_unified_stream")
_GPU = "gpu_execution_accelerator"
_CPU = "cpu_execution_accelerator"
_STRICT_NUMBER = re.compile(r"-?[0-9]+")
_STRICT_SWITCH = ("0", "1", "true", "false", "True", "False")


def accelerator_problems(config: Mapping[str, Any], *, gpu: bool) -> Iterator[Problem]:
    """What the backend refuses, in its order; `gpu` says whether an instance runs on a GPU, since only then the GPU list is read."""
    accelerators = config.get("optimization", {}).get("execution_accelerators", {})
    if gpu:
        for index, accelerator in enumerate(accelerators.get(_GPU, [])):
            yield from _gpu_problems(accelerator, ("optimization", "execution_accelerators", _GPU, index))
    for index, accelerator in enumerate(accelerators.get(_CPU, [])):
        if accelerator["name"] != "openvino":
            yield _unknown(accelerator["name"], ("optimization", "execution_accelerators", _CPU, index), ("openvino",))


def onnxruntime_reads(kind: str, text: str) -> bool:
    """Whether ONNX Runtime understands a value of the `tensorrt` accelerator that the backend hands on as it is.

    The backend checks leniently (`on` is a switch, `5x` a number) and forwards the text, which ONNX Runtime then reads strictly
    (core/common/parse_string.h).
    """
    if kind == "switch":
        return text in _STRICT_SWITCH
    return bool(_STRICT_NUMBER.fullmatch(text)) if kind in ("number", "size") else True


def has_option(name: str, onnxruntime: str) -> bool:
    """Whether an ONNX Runtime version such as `1.19.2` has an option of its CUDA or TensorRT provider."""
    major, minor = onnxruntime.split(".")[:2]
    return (int(major), int(minor)) >= OPTION_SINCE.get(name, (0, 0))


def _gpu_problems(accelerator: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    name = accelerator["name"]
    given = accelerator.get("parameters", {})
    if name == "tensorrt":
        for key, value in given.items():
            yield from _tensorrt_problems(key, str(value), (*path, "parameters", key))
    elif name == "cuda":
        for key in _CUDA_SWITCHES:
            if key in given and boolean(str(given[key])) is None:
                message = f"failed to convert '{given[key]}' to boolean"
                yield Problem(Kind.ACCELERATOR_VALUE, message, (*path, "parameters", key), key, str(given[key]), "1 or 0")
    else:
        yield _unknown(name, path, ("tensorrt", "cuda"))


def _tensorrt_problems(key: str, value: str, path: Path) -> Iterator[Problem]:
    if key not in TENSORRT_KEYS:
        message = f"unknown parameter '{key}' is provided for TensorRT Execution Accelerator"
        yield Problem(Kind.ACCELERATOR_KEY, message, path, key, key, choices=tuple(TENSORRT_KEYS))
        return
    kind = TENSORRT_KEYS[key][0]
    message = ""
    if kind == "precision" and value not in PRECISIONS:
        message = f"unsupported precision mode '{value}' is requested"
    elif kind == "switch" and boolean(value) is None:
        message = f"failed to convert '{value}' to boolean"
    elif kind == "number" and integer(value) is None:
        message = f"failed to convert '{value}' to integral number"
    elif kind == "size" and integer(value) is None:
        message = f"failed to convert '{value}' to unsigned long long integral number"
    if message:
        expected = {"precision": " or ".join(PRECISIONS), "switch": "1 or 0", "number": "a whole number", "size": "a number of bytes"}[kind]
        yield Problem(Kind.ACCELERATOR_VALUE, message, path, key, value, expected)


def _unknown(name: str, path: Path, choices: tuple[str, ...]) -> Problem:
    return Problem(Kind.ACCELERATOR, f"unknown Execution Accelerator '{name}' is requested", (*path, "name"), name, name, choices=choices)
