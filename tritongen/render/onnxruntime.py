"""The settings of the onnxruntime backend: what the keys of `onnxruntime:` are called in a config, and how their values are written.

The backend reads some keys from the config's `parameters`, the others from the parameters of an accelerator (onnxruntime_backend/src/onnxruntime.cc).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tritongen.releases import Release
from tritongen.render.findings import Findings, Key
from tritongen.render.placement import placed_groups
from tritongen.rules.ortload import has_option
from tritongen.spec import ModelSpec
from tritongen.spec.accelerator import EngineContext, TacticSources, TensorRTProvider

SESSION_PARAMETERS: Mapping[str, str] = {
    "execution_mode": "execution_mode",
    "inter_op_threads": "inter_op_thread_count",
    "enable_mem_arena": "enable_mem_arena",
    "enable_mem_pattern": "enable_mem_pattern",
    "arena_shrinkage": "memory.enable_memory_arena_shrinkage",
    "use_device_allocator_for_initializers": "session.use_device_allocator_for_initializers",
}
"""Keys of `onnxruntime` → keys of the config's `parameters`."""

CUDA_PARAMETERS: Mapping[str, str] = {key: key for key in ("cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy", "do_copy_in_default_stream")}
"""Keys of `onnxruntime.cuda` that the backend takes from the config's `parameters`: it overwrites those of the accelerator with them, or with defaults."""

CUDA_OPTIONS: Mapping[str, str] = {
    key: key
    for key in (
        *("cudnn_conv_use_max_workspace", "cudnn_conv1d_pad_to_nc1d", "enable_cuda_graph", "enable_skip_layer_norm_strict_mode", "prefer_nhwc"),
        *("use_tf32", "use_ep_level_unified_stream"),
    )
}
"""Keys of `onnxruntime.cuda` → parameters of the `cuda` accelerator, which ONNX Runtime gets as they are."""

ACCELERATOR_OPTIONS: Mapping[str, str] = {
    "max_workspace_size": "max_workspace_size_bytes",
    "min_subgraph_size": "trt_min_subgraph_size",
    "max_partition_iterations": "trt_max_partition_iterations",
    "builder_optimization_level": "trt_builder_optimization_level",
    "auxiliary_streams": "trt_auxiliary_streams",
    "context_memory_sharing": "trt_context_memory_sharing_enable",
    "layer_norm_fp32_fallback": "trt_layer_norm_fp32_fallback",
    "sparsity": "trt_sparsity_enable",
    "build_heuristics": "trt_build_heuristics_enable",
    "force_sequential_engine_build": "trt_force_sequential_engine_build",
    "detailed_build_log": "trt_detailed_build_log",
    "dump_subgraphs": "trt_dump_subgraphs",
    "tactic_sources": "trt_tactic_sources",
    "extra_plugin_lib_paths": "trt_extra_plugin_lib_paths",
    "cuda_graph": "trt_cuda_graph_enable",
    "engine_cache": "trt_engine_cache_enable",
    "engine_cache_prefix": "trt_engine_cache_prefix",
    "timing_cache": "trt_timing_cache_enable",
    "force_timing_cache": "trt_force_timing_cache",
    "int8_calibration_table_name": "int8_calibration_table_name",
    "int8_use_native_calibration_table": "int8_use_native_calibration_table",
    "dla_core": "trt_dla_core",
    "ep_context": "trt_dump_ep_context_model",
}
"""Keys of `onnxruntime.tensorrt` → parameters of the `tensorrt` accelerator."""

COMPANIONS: Mapping[str, tuple[str, ...]] = {
    "engine_cache": ("trt_engine_cache_path",),
    "timing_cache": ("trt_timing_cache_path",),
    "dla_core": ("trt_dla_enable",),
    "ep_context": ("trt_ep_context_file_path", "trt_ep_context_embed_mode"),
}
"""Further parameters of the accelerator that a key of `onnxruntime.tensorrt` sets."""

_CACHES = ("engine_cache", "timing_cache")
_GRAPH_LEVELS: Mapping[str, int] = {"extended": 1, "off": 2, "basic": -1}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "execution_mode": {"sequential": "0", "parallel": "1"},
    "cudnn_conv_algo_search": {"exhaustive": "0", "heuristic": "1", "default": "2"},
    "arena_extend_strategy": {"next_power_of_two": "0", "same_as_requested": "1"},
}
"""The backend's numbers for words, by key."""


def add_onnxruntime(config: Any, model: ModelSpec, findings: Findings) -> None:
    """Write what `onnxruntime` says of sessions and of the CUDA provider, and the libraries of custom operators."""
    settings = model.onnxruntime
    if settings.graph_optimization != "all":
        config.optimization.graph.level = _GRAPH_LEVELS[settings.graph_optimization]
    written = {**_written(settings, SESSION_PARAMETERS), **_written(settings.cuda, CUDA_PARAMETERS)}
    for name, text in written.items():
        config.parameters[name].string_value = text
    if options := _written(settings.cuda, CUDA_OPTIONS):
        config.optimization.execution_accelerators.gpu_execution_accelerator.add(name="cuda").parameters.update(options)
    if model.op_libraries:
        config.model_operations.op_library_filename.extend(model.op_libraries)
    _check_shrinkage(model, findings)
    _check_graphs(model, findings)


def build_options(settings: TensorRTProvider) -> dict[str, str]:
    """The parameters of the `tensorrt` accelerator that `onnxruntime.tensorrt` stands for, without those of the two caches; empty where it says nothing."""
    written = _written(settings, {key: name for key, name in ACCELERATOR_OPTIONS.items() if key not in _CACHES})
    if settings.dla_core is not None:
        written["trt_dla_enable"] = "1"
    if settings.ep_context is not None:
        written |= {"trt_ep_context_file_path": settings.ep_context.path, "trt_ep_context_embed_mode": _text(settings.ep_context.embed)}
    return written


def cache_options(settings: TensorRTProvider, folder: str, release: Release | None) -> dict[str, str]:
    """The parameters of the `tensorrt` accelerator for its two caches, which lie in `folder`.

    They are on unless they are switched off: without the engines' cache every start of the server, and every instance, builds all engines again, minutes before
    the first answer. An ONNX Runtime that has no `trt_timing_cache_path` keeps its timings with the engines.
    """
    written = {}
    for key in _CACHES:
        (path,) = COMPANIONS[key]
        if getattr(settings, key):
            written[ACCELERATOR_OPTIONS[key]] = "1"
            if release is None or release.onnxruntime is None or has_option(path, release.onnxruntime):
                written[path] = folder
    return written


def _written(settings: Any, names: Mapping[str, str]) -> dict[str, str]:
    """The texts of all keys that say something, by their name in the config."""
    values = {key: getattr(settings, key) for key in names}
    texts = {key: _WORDS[key][value] if key in _WORDS else _text(value) for key, value in values.items() if value is not None}
    return {names[key]: text for key, text in texts.items() if text}


def _text(value: Any) -> str:
    """A value as the backend and ONNX Runtime read it; empty where it says nothing.

    Switches are 1 and 0: the backend knows `on`, too, and hands it to ONNX Runtime, which does not.
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, TacticSources):
        return ",".join(f"{'+' if use else '-'}{name.upper()}" for name, use in value if use is not None)
    if isinstance(value, EngineContext):
        return "1"
    return ";".join(value) if isinstance(value, tuple) else str(value)


def _check_shrinkage(model: ModelSpec, findings: Findings) -> None:
    """ONNX Runtime looks for every listed arena in each session, and fails the request where one is missing (core/session/inference_session.cc)."""
    listed = {int(device.removeprefix("gpu:")) for device in model.onnxruntime.arena_shrinkage if device.startswith("gpu:")}
    devices = " and ".join(f"gpu:{gpu}" for gpu in sorted(listed))
    for group in placed_groups(model) if listed else ():
        if group.kind in ("gpu", "auto") and set(group.gpus) == listed and len(listed) == 1:
            continue
        is_sure = group.kind in ("cpu", "model") or bool(group.gpus) or len(listed) > 1
        where = f"on the GPUs {', '.join(map(str, group.gpus))}" if group.gpus else f"of kind {group.kind}"
        elsewhere = "on every GPU of the server" if group.kind == "gpu" else "on every GPU of the server, or on the CPU where it has none"
        copies = f"the group at {findings.locate(group.key)} has copies {where if is_sure else elsewhere}"
        add = findings.error if is_sure else findings.warning
        add(
            "TG181",
            ("onnxruntime", "arena_shrinkage"),
            f"arena_shrinkage lists {devices}, and {copies}, each of which knows its own device only",
            consequence="ONNX Runtime refuses every request that a copy without that device gets",
            hint=f"remove {devices}, or serve the model on that GPU alone: instances: [{{kind: gpu, gpus: [{min(listed)}]}}]",
        )


def _check_graphs(model: ModelSpec, findings: Findings) -> None:
    """ONNX Runtime's documentation of CUDA graphs: shapes and addresses of inputs and outputs must not change between requests."""
    keys: tuple[Key, ...] = (("onnxruntime", "cuda", "enable_cuda_graph"), ("onnxruntime", "tensorrt", "cuda_graph"))
    for key, asked in zip(keys, (model.onnxruntime.cuda.enable_cuda_graph, model.onnxruntime.tensorrt.cuda_graph), strict=True):
        if asked:
            findings.warning(
                "TG182",
                key,
                "ONNX Runtime replays a CUDA graph with the shapes and addresses that it was captured with, and Triton gives each execution buffers of its own",
                consequence="requests may fail, or be answered from the data of an earlier one",
                hint="compare the answers to different requests before you use it, or take backend: tensorrt with tensorrt: {cuda_graphs: true}",
            )


def spec_keys() -> Iterator[tuple[Key, Key]]:
    """(path in the config, key of the spec) of everything that is written here; `*` stands for an accelerator's index."""
    parameters: Key = ("optimization", "execution_accelerators", "gpu_execution_accelerator", "*", "parameters")
    yield ("optimization", "graph"), ("onnxruntime", "graph_optimization")
    yield ("model_operations",), ("op_libraries",)
    yield from ((("parameters", name), ("onnxruntime", key)) for key, name in SESSION_PARAMETERS.items())
    yield from ((("parameters", name), ("onnxruntime", "cuda", key)) for key, name in CUDA_PARAMETERS.items())
    yield from (((*parameters, name), ("onnxruntime", "cuda", key)) for key, name in CUDA_OPTIONS.items())
    for key, name in ACCELERATOR_OPTIONS.items():
        yield from (((*parameters, each), ("onnxruntime", "tensorrt", key)) for each in (name, *COMPANIONS.get(key, ())))
