"""ONNX Runtime's execution accelerators, and what a TensorRT profile needs to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritongen.batching import Batching
from tritongen.releases import Release
from tritongen.render.findings import Findings
from tritongen.render.onnxruntime import accelerator_options
from tritongen.render.tensors import Sizes
from tritongen.signature import Signature
from tritongen.spec import ModelSpec


def add_accelerator(
    config: Any,
    model: ModelSpec,
    signature: Signature,
    batching: Batching,
    sizes: Mapping[str, Sizes],
    cache_path: str,
    release: Release | None,
    findings: Findings,
) -> None:
    """Write `optimization.execution_accelerators` for the model's `accelerator`.

    `cuda` needs nothing: a GPU instance of the onnxruntime backend always has ONNX Runtime's CUDA provider.
    """
    accelerators = config.optimization.execution_accelerators
    if model.accelerator == "openvino":
        accelerators.cpu_execution_accelerator.add(name="openvino")
    elif model.accelerator == "tensorrt":
        tensorrt = accelerators.gpu_execution_accelerator.add(name="tensorrt")
        tensorrt.parameters["precision_mode"] = model.precision.upper()
        tensorrt.parameters.update(accelerator_options(model.onnxruntime.tensorrt, cache_path, release))
        tensorrt.parameters.update(profile_shapes(signature, batching, sizes, findings))


def profile_shapes(signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings) -> dict[str, str]:
    """The accelerator's `trt_profile_{min,opt,max}_shapes`, for all inputs with variable dimensions or for none (ONNX Runtime wants all three for all of them).

    Empty where a size is not known, with a finding that says what that costs.
    """
    dynamic = [tensor for tensor in signature.inputs if tensor.shape and any(not isinstance(dim, int) for dim in tensor.shape)]
    unknown = [tensor.name for tensor in dynamic if tensor.name not in sizes]
    if unknown:
        message = f"no TensorRT profile: the sizes of {', '.join(repr(name) for name in unknown)} are not known"
        consequence = "TensorRT builds a new engine, for minutes, whenever a request has a shape outside those seen before"
        findings.warning("TG113", ("shapes",), message, consequence=consequence, hint="give their smallest, usual and largest sizes in shapes:")
        return {}
    unwritable = [tensor.name for tensor in dynamic if any(char in tensor.name for char in ":,")]
    for name in unwritable:
        message = f"input '{name}' cannot be written in a TensorRT profile: ':' and ',' separate its parts"
        findings.error(
            "TG114",
            ("accelerator",),
            message,
            consequence="ONNX Runtime would read another name",
            hint="rename the input in the ONNX file, or use accelerator: cuda",
        )
    if not dynamic or unwritable:
        return {}
    batches = (1, batching.optimum, batching.max_batch_size) if batching.max_batch_size else None
    parts = ((sizes[tensor.name].minimum, sizes[tensor.name].usual, sizes[tensor.name].maximum) for tensor in dynamic)
    columns = zip(*parts, strict=True)
    names = [tensor.name for tensor in dynamic]
    return {
        f"trt_profile_{which}_shapes": ",".join(_profile(name, dims, batches[index] if batches else None) for name, dims in zip(names, column, strict=True))
        for index, (which, column) in enumerate(zip(("min", "opt", "max"), columns, strict=True))
    }


def _profile(name: str, dims: Sequence[int], batch: int | None) -> str:
    return f"{name}:{'x'.join(str(size) for size in ((batch, *dims) if batch else dims))}"
