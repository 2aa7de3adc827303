"""How a session is to be made: the config's `parameters` and `optimization`, with the meaning that NVIDIA's backend gives them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime

from .errors import ORT_ERRORS, RefusedError, ort_message
from .verdicts import ortload, refuse_first


def graph_level(config: Mapping[str, Any]) -> Any:
    """The optimisation level. NVIDIA's mapping is not what the numbers suggest: 1 and 2 optimise less than 0."""
    levels = onnxruntime.GraphOptimizationLevel
    chosen = {-1: levels.ORT_ENABLE_BASIC, 1: levels.ORT_ENABLE_EXTENDED, 2: levels.ORT_DISABLE_ALL}
    level = config.get("optimization", {}).get("graph", {}).get("level", 0)
    return chosen.get(int(level), levels.ORT_ENABLE_ALL)


def session_options(config: Mapping[str, Any], model_folder: Path, command_line: Mapping[str, str]) -> Any:
    """Session options for a config.

    Args:
        config: the model's config.
        model_folder: where relative names of custom-operator libraries start.
        command_line: `--backend-config` settings of the server for this backend; the config's own come first.

    Raises RefusedError where NVIDIA's backend would refuse, too.
    """
    refuse_first(ortload.parameter_problems(config, gpu=False))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = graph_level(config)
    for name, attribute in (("intra_op_thread_count", "intra_op_num_threads"), ("inter_op_thread_count", "inter_op_num_threads")):
        text = ortload.parameter(config, name) or command_line.get(name)
        if text is not None and (count := _number(text)) > 0:
            setattr(options, attribute, count)
    if (text := ortload.parameter(config, "execution_mode")) is not None:
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL if ortload.integer(text) else onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    for name, attribute in (("enable_mem_arena", "enable_cpu_mem_arena"), ("enable_mem_pattern", "enable_mem_pattern")):
        if (text := ortload.parameter(config, name)) is not None:
            setattr(options, attribute, bool(ortload.boolean(text)))
    key = "session.use_device_allocator_for_initializers"
    if (text := ortload.parameter(config, key)) is not None:
        options.add_session_config_entry(key, text)
    for library in config.get("model_operations", {}).get("op_library_filename", []):
        _register(options, library, model_folder)
    return options


def _number(text: str) -> int:
    """A number of the server's command line. Raises RefusedError where it is none."""
    value = ortload.integer(text)
    if value is None:
        raise RefusedError(f"failed to convert '{text}' to integral number")
    return value


def _register(options: Any, library: str, model_folder: Path) -> None:
    """Load a library of custom operators; a relative name is looked for in the model's folder first."""
    beside = model_folder / library
    try:
        options.register_custom_ops_library(str(beside) if beside.exists() else library)
    except ORT_ERRORS as error:
        raise RefusedError(f"failed to load custom operators from '{library}': {ort_message(error)}") from error


def run_options(config: Mapping[str, Any]) -> Any | None:
    """Run options of onnxruntime, or None where the defaults do."""
    key = "memory.enable_memory_arena_shrinkage"
    text = ortload.parameter(config, key)
    if text is None:
        return None
    options = onnxruntime.RunOptions()
    options.add_run_config_entry(key, text)
    return options
