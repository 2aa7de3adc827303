"""Where a model's instances run: on a GPU, not on one, or nobody knows.

Source: `NormalizeInstanceGroup` in core/src/backend_model.cc. KIND_AUTO becomes KIND_GPU where the server sees a GPU (and every listed one), else KIND_CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.modelconfig import ModelInstanceGroup
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Key


def on_gpu(context: ModelContext) -> bool | None:
    """True where some instance runs on a GPU, False where none does, None where that depends on a machine that is not known."""
    gpus = context.server.gpus
    kinds = [group.kind for group in context.config.instance_group] or [ModelInstanceGroup.KIND_AUTO]
    if ModelInstanceGroup.KIND_GPU in kinds:
        return True
    if ModelInstanceGroup.KIND_AUTO not in kinds:
        return False
    if gpus is None:
        return None
    automatic = [group for group in context.config.instance_group if group.kind == ModelInstanceGroup.KIND_AUTO]
    return gpus > 0 and (not automatic or any(all(0 <= gpu < gpus for gpu in group.gpus) for group in automatic))


def why_not(context: ModelContext) -> str:
    """Why no instance runs on a GPU, as part of a sentence."""
    kinds = {ModelInstanceGroup.Kind.Name(group.kind) for group in context.config.instance_group} - {"KIND_AUTO"}
    return f"all instances are {' and '.join(sorted(kinds))}" if kinds else "the server has no GPU, and without one KIND_AUTO means the CPU"


def tensorrt_accelerators(context: ModelContext) -> Iterator[tuple[Key, Any]]:
    """The `tensorrt` accelerators that the onnxruntime backend reads, or may read on a machine that is not known, with their places."""
    if context.is_onnx and on_gpu(context) is not False:
        for index, accelerator in enumerate(context.config.optimization.execution_accelerators.gpu_execution_accelerator):
            if accelerator.name == "tensorrt":
                yield ("optimization", "execution_accelerators", "gpu_execution_accelerator", index), accelerator
