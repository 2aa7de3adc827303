"""What a config asks for and the embedded server cannot give, and the nearest config that it can serve.

Pure: a `ModelConfig` in, an adapted one and plain sentences out. The embedded server has no TensorRT backend, and often no GPU.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tritongen.modelconfig import ModelConfig, ModelInstanceGroup

SOURCE_FILE = "model.onnx"
"""Name of a plan's source ONNX in the model's artifacts folder."""

_CACHE_PATHS = ("trt_engine_cache_path", "trt_timing_cache_path", "trt_ep_context_file_path")

_LIBRARY = "libtriton_onnxruntime.so"
_INTRA_OP = "intra_op_thread_count"
_SHRINKAGE = "memory.enable_memory_arena_shrinkage"


@dataclass(frozen=True)
class Machine:
    """What the server will run on.

    Attributes:
        gpus: number of GPUs that it sees.
        cores: number of processors that it may use.
        engine_cache: a folder for TensorRT engines that it can write to.
    """

    gpus: int
    cores: int
    engine_cache: str


@dataclass(frozen=True)
class Adapted:
    """A config that can be served here.

    Attributes:
        config: the changed `ModelConfig`.
        differences: what differs from what was asked for, as parts of a sentence; empty where nobody would notice.
        needs_source: whether the plan's source ONNX is served in place of the plan.
        folders: where TensorRT engines are cached, in place of what cannot be written here; they must exist for the config to work.
        refused: whether NVIDIA's Triton would refuse the original on a machine like this: it asks for a GPU by name, and there is none.
    """

    config: Any
    differences: tuple[str, ...]
    needs_source: bool
    folders: tuple[str, ...]
    refused: bool = False


def adapt(config: Any, machine: Machine) -> Adapted | None:
    """The nearest config that can be served on this machine, or None where the config can be served as it is."""
    changed = ModelConfig()
    changed.CopyFrom(config)
    needs_source = config.platform == "tensorrt_plan" or config.backend == "tensorrt"
    differences: list[str] = []
    folders: list[str] = []
    if needs_source:
        _serve_source(changed)
        differences.append("its source ONNX is served by onnxruntime in place of the TensorRT plan")
    if machine.gpus == 0:
        differences += _without_gpu(changed, machine.cores)
    else:
        folders = _remap_caches(changed, machine.engine_cache)
    if changed.runtime == _LIBRARY:
        changed.ClearField("runtime")  # NVIDIA's backend by its file: the one of the same name here is no library
    refused = machine.gpus == 0 and (needs_source or any(_wants_gpu(group) for group in config.instance_group))
    return Adapted(changed, tuple(differences), needs_source, tuple(folders), refused) if changed != config else None


def _wants_gpu(group: Any) -> bool:
    """Whether an instance group needs a GPU. One that is for the CPU and lists GPUs all the same is a mistake on any machine, and Triton says so."""
    return bool(group.kind == ModelInstanceGroup.KIND_GPU or (group.kind == ModelInstanceGroup.KIND_AUTO and group.gpus))


def _serve_source(config: Any) -> None:
    """Make a plan's config one for its source ONNX: take out what only the TensorRT backend knows."""
    config.platform = "onnxruntime_onnx"
    config.backend = "onnxruntime"
    config.default_model_filename = SOURCE_FILE
    config.ClearField("runtime")
    config.ClearField("cc_model_filenames")
    for tensor in (*config.input, *config.output):
        tensor.ClearField("is_shape_tensor")
        tensor.ClearField("is_non_linear_format_io")
    for group in config.instance_group:
        group.ClearField("profile")
        group.ClearField("secondary_devices")
    if config.optimization.HasField("cuda"):
        config.optimization.ClearField("cuda")


def _without_gpu(config: Any, cores: int) -> list[str]:
    """Move what is meant for a GPU to the CPU."""
    differences = []
    groups = [group for group in config.instance_group if _wants_gpu(group)]
    for group in groups:
        group.kind = ModelInstanceGroup.KIND_CPU
        group.count = max(1, group.count)  # on the CPU, Triton reads 0 as 2 for onnxruntime
        for field in ("gpus", "secondary_devices", "profile"):
            group.ClearField(field)
    if groups:
        differences += ["its GPU instances run on the CPU, as this machine has no GPU", *_without_gpu_arenas(config)]
    accelerators = config.optimization.execution_accelerators.gpu_execution_accelerator
    if accelerators:
        differences.append(f"the GPU accelerator {', '.join(item.name for item in accelerators)} is left out")
        config.optimization.execution_accelerators.ClearField("gpu_execution_accelerator")
        if not config.optimization.execution_accelerators.ListFields():
            config.optimization.ClearField("execution_accelerators")
    if config.optimization.HasField("cuda"):
        config.optimization.ClearField("cuda")
        differences.append("CUDA settings are left out")
    if differences and not config.optimization.ListFields():
        config.ClearField("optimization")
    instances = sum(max(1, group.count) for group in config.instance_group)
    if groups and instances > 1 and _INTRA_OP not in config.parameters:
        threads = max(1, cores // instances)
        config.parameters[_INTRA_OP].string_value = str(threads)
        differences.append(f"each of its {instances} instances uses {threads} of {cores} cores")
    return differences


def _without_gpu_arenas(config: Any) -> list[str]:
    """Take GPUs out of the devices whose memory is given back: ONNX Runtime fails every request of a session that has not got one of them."""
    devices = config.parameters[_SHRINKAGE].string_value.split(";") if _SHRINKAGE in config.parameters else []
    kept = [device for device in devices if not device.startswith("gpu")]
    if kept == devices:
        return []
    if kept:
        config.parameters[_SHRINKAGE].string_value = ";".join(kept)
    else:
        del config.parameters[_SHRINKAGE]
    return ["no memory of a GPU is given back"]


def _remap_caches(config: Any, engine_cache: str) -> list[str]:
    """Send engine caches that cannot be written here to a folder that can; the folders."""
    folders = []
    for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator:
        for name in _CACHE_PATHS:
            path = accelerator.parameters.get(name, "")
            if path and not os.access(path, os.W_OK):
                parts = PurePosixPath(path).parts
                below = parts[2:] if parts[:2] == ("/", "engine-cache") else (config.name, parts[-1])
                moved = PurePosixPath(engine_cache, *(part for part in below if part not in ("..", "/")))
                accelerator.parameters[name] = str(moved)
                # ONNX Runtime takes a folder or a file for a model that holds engines; it makes the file, not its folder.
                folders.append(str(moved.parent if moved.suffix == ".onnx" else moved))
    return list(dict.fromkeys(folders))
