"""Execution providers: what the config asks for, in onnxruntime's terms.

GPU accelerators count for GPU instances only; on a CPU instance NVIDIA's backend ignores the whole list, and so do we. What this onnxruntime cannot provide is
said, not hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import RefusedError
from .verdicts import ortload, refuse_first

_CUDA = "CUDAExecutionProvider"
_TENSORRT = "TensorrtExecutionProvider"
_OPENVINO = "OpenVINOExecutionProvider"
_CPU = "CPUExecutionProvider"

_ACCELERATORS = {_TENSORRT: "tensorrt", _OPENVINO: "openvino"}

_CUDNN_SEARCH = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
_ARENA_STRATEGY = ("kNextPowerOfTwo", "kSameAsRequested")


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
    refuse_first(ortload.accelerator_problems(config, gpu=kind == "GPU"))
    refuse_first(ortload.parameter_problems(config, gpu=kind == "GPU"))
    accelerators = config.get("optimization", {}).get("execution_accelerators", {})
    wanted: list[tuple[str, dict[str, str]]] = []
    if kind == "GPU":
        wanted += _for_gpu(config, accelerators.get("gpu_execution_accelerator", []), device_id)
    wanted += [(_OPENVINO, {"device_type": "CPU"}) for _ in accelerators.get("cpu_execution_accelerator", [])]
    known = set(have)
    available = [(name, options) for name, options in wanted if name in known]
    return Providers((*available, (_CPU, {})), tuple(name for name, _ in wanted if name not in known))


def refuse_missing(chosen: Providers) -> None:
    """Raise RefusedError where an accelerator is not in this onnxruntime, in the words of an NVIDIA backend that was built without it."""
    for provider in chosen.missing:
        if name := _ACCELERATORS.get(provider):
            raise RefusedError(f"unknown Execution Accelerator '{name}' is requested")


def _for_gpu(config: Mapping[str, Any], accelerators: Iterable[Mapping[str, Any]], device_id: str) -> list[tuple[str, dict[str, str]]]:
    """Providers of a GPU instance: those that are asked for, and CUDA last in any case, as what remains of the graph runs there."""
    cuda = {"device_id": device_id, **_cuda_parameters(config)}
    found = []
    for accelerator in accelerators:
        given = dict(accelerator.get("parameters", {}))
        if accelerator["name"] == "tensorrt":
            found.append((_TENSORRT, {"device_id": device_id, **_tensorrt_options(given)}))
        else:
            cuda = given | cuda
    return [*found, (_CUDA, cuda)]


def _cuda_parameters(config: Mapping[str, Any]) -> dict[str, str]:
    """The four settings of the CUDA provider that are read from the config's `parameters`."""
    found = {}
    if (text := ortload.parameter(config, "cudnn_conv_algo_search")) is not None:
        found["cudnn_conv_algo_search"] = _CUDNN_SEARCH[ortload.integer(text) or 0]
    if (text := ortload.parameter(config, "gpu_mem_limit")) is not None:
        found["gpu_mem_limit"] = text
    if (text := ortload.parameter(config, "arena_extend_strategy")) is not None:
        found["arena_extend_strategy"] = _ARENA_STRATEGY[ortload.integer(text) or 0]
    if (text := ortload.parameter(config, "do_copy_in_default_stream")) is not None:
        found["do_copy_in_default_stream"] = text
    return found


def _tensorrt_options(given: Mapping[str, str]) -> dict[str, str]:
    """The `tensorrt` accelerator's parameters, already judged, as options of onnxruntime's TensorRT provider."""
    found: dict[str, str] = {}
    for name, value in given.items():
        if name != "precision_mode":
            found[ortload.TENSORRT_KEYS[name][1]] = value
        elif switch := ortload.PRECISIONS[value]:
            found[switch] = "1"
    return found
