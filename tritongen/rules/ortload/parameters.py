"""The config's `parameters` that NVIDIA's onnxruntime backend reads, in the order in which it reads them. It ignores all others without a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .problem import Kind, Problem

PARAMETERS: Mapping[str, str] = {
    "execution_mode": "0 (one operator after another) or 1 (in parallel)",
    "intra_op_thread_count": "a whole number of threads; 0 is as many as there are cores",
    "inter_op_thread_count": "a whole number of threads",
    "session.use_device_allocator_for_initializers": "1 or 0",
    "enable_mem_arena": "true, on, 1 or false, off, 0",
    "enable_mem_pattern": "true, on, 1 or false, off, 0",
    "share_session_between_instances": "true, on, 1 or false, off, 0; only in newer backends",
    "memory.enable_memory_arena_shrinkage": "devices, such as cpu:0;gpu:0",
    "cudnn_conv_algo_search": "0 (exhaustive), 1 (heuristic) or 2 (default)",
    "gpu_mem_limit": "a number of bytes",
    "arena_extend_strategy": "0 (next power of two) or 1 (same as requested)",
    "do_copy_in_default_stream": "1 or 0",
}
"""Every key that the backend reads, and what it may hold."""

GPU_PARAMETERS = ("cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy", "do_copy_in_default_stream")
"""Keys that are read for GPU instances alone."""

_TRUE = ("true", "on", "1")
_FALSE = ("false", "off", "0")
_INTEGER = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]+")


def parameter(config: Mapping[str, Any], name: str) -> str | None:
    """A value of the config's `parameters`, or None."""
    entry = config.get("parameters", {}).get(name)
    return None if entry is None else str(entry.get("string_value", ""))


def integer(text: str) -> int | None:
    """A number the way C++'s stoi reads it: what follows the digits does not count. None where there are none."""
    match = _INTEGER.match(text)
    return int(match[0]) if match else None


def boolean(text: str) -> bool | None:
    """A switch: true, on, 1 or false, off, 0, in any case; None for anything else."""
    lower = text.lower()
    return True if lower in _TRUE else False if lower in _FALSE else None


def parameter_problems(config: Mapping[str, Any], *, gpu: bool) -> Iterator[Problem]:
    """Values that the backend refuses, in its order. `gpu` says whether an instance runs on a GPU: only then are GPU_PARAMETERS read."""
    yield from _choice(config, "execution_mode", (0, 1), "Invalid configuration value provided. Expected values for  {name} are 0 or 1 but got {value} .")
    for name in ("intra_op_thread_count", "inter_op_thread_count"):
        text = parameter(config, name)
        if text is not None and integer(text) is None:
            yield _problem(name, text, f"failed to convert '{text}' to integral number")
    for name in ("enable_mem_arena", "enable_mem_pattern"):
        text = parameter(config, name)
        if text is not None and boolean(text) is None:
            yield _problem(name, text, f"failed to convert '{text}' to boolean")
    if gpu:
        yield from _choice(config, "cudnn_conv_algo_search", (0, 1, 2), "unsupported {name} value '{value}' is requested")
        yield from _choice(config, "arena_extend_strategy", (0, 1), "unsupported {name} value '{value}' is requested")


def _choice(config: Mapping[str, Any], name: str, allowed: tuple[int, ...], message: str) -> Iterator[Problem]:
    text = parameter(config, name)
    if text is None:
        return
    value = integer(text)
    if value is None:
        yield _problem(name, text, f"failed to convert '{text}' to integral number")
    elif value not in allowed:
        yield _problem(name, text, message.format(name=name, value=value))


def _problem(name: str, text: str, message: str) -> Problem:
    return Problem(Kind.PARAMETER, message, ("parameters", name), name, text, PARAMETERS[name])
