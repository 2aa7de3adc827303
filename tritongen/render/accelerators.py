"""ONNX Runtime's execution accelerators, and what a TensorRT profile needs to know."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tritongen.batching import Batching
from tritongen.releases import Release
from tritongen.render.findings import Findings, Key
from tritongen.render.keys import is_stated
from tritongen.render.onnxruntime import build_options, cache_options
from tritongen.render.precision import heeds_precision_mode
from tritongen.render.profiles import value_count
from tritongen.render.tensors import Sizes
from tritongen.render.versions import served_versions
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.spec.target import Target

_LONGEST_NAME = 200
"""Letters of a model's name in the name of a folder, which file systems end at 255; the fingerprint tells the rest."""


def add_accelerator(
    config: Any,
    model: ModelSpec,
    signature: Signature,
    batching: Batching,
    sizes: Mapping[str, Sizes],
    target: Target,
    digest: str,
    findings: Findings,
) -> None:
    """Write `optimization.execution_accelerators` for the model's `accelerator`. `digest`: SHA-256 (hex) of the model's files.

    `cuda` needs nothing: a GPU instance of the onnxruntime backend always has ONNX Runtime's CUDA provider.
    """
    accelerators = config.optimization.execution_accelerators
    release = target.known_release
    if model.accelerator == "openvino":
        accelerators.cpu_execution_accelerator.add(name="openvino")
    elif model.accelerator == "tensorrt":
        tensorrt = accelerators.gpu_execution_accelerator.add(name="tensorrt")
        if heeds_precision_mode(target.release_name):
            # TF32 is TensorRT's way with FP32, unless its builder is told otherwise; the backend has no word for that.
            tensorrt.parameters["precision_mode"] = "FP32" if model.precision == "tf32" else model.precision.upper()
        tensorrt.parameters.update(build_options(model.onnxruntime.tensorrt))
        if model.ragged is None:  # refused together with it
            profile = profile_shapes(signature, batching, sizes, findings, asked=model.freeze or bool(model.shapes.keys() - sizes.keys()))
            tensorrt.parameters.update(profile)
            _say_values(signature, batching, findings, beside_profile=bool(profile))
        folder = _engine_folder(model, target, release, digest, tensorrt.parameters)
        tensorrt.parameters.update(cache_options(model.onnxruntime.tensorrt, folder, release))


def without_shared_engines(model: ModelSpec, versions: Sequence[int], findings: Findings) -> ModelSpec:
    """The model with its engine cache off where several of its versions are served; says so.

    They have one config and so one cache, in which ONNX Runtime finds engines by names and not by weights: one version could answer with another's engine.
    `versions`: the version folders that there are, ascending.
    """
    served, provider = served_versions(model, versions), model.onnxruntime.tensorrt
    if model.accelerator != "tensorrt" or len(served) < 2 or not provider.engine_cache:
        return model
    message = f"versions {', '.join(map(str, served))} are served, and would find each other's engines in the one cache that they have"
    consequence = "it is switched off: every start, and every copy, builds all engines again before the model is ready"
    hint = "serve one version (versions: {policy: latest, count: 1}), give each a model of its own, or write backend: tensorrt, with a plan for each"
    key: Key = ("onnxruntime", "tensorrt", "engine_cache")
    if is_stated(model, key):
        findings.idle(key, f"engine_cache has no effect: {message}", consequence=consequence, hint=hint)
    else:
        findings.warning("TG129", ("versions",), f"there is no engine cache: {message}", consequence=consequence, hint=hint)
    settings = model.onnxruntime.model_copy(update={"tensorrt": provider.model_copy(update={"engine_cache": False})})
    return model.model_copy(update={"onnxruntime": settings})


def _engine_folder(model: ModelSpec, target: Target, release: Release | None, digest: str, parameters: Mapping[str, str]) -> str:
    """Where a model's engines are kept: a folder of its own for each thing that makes engines others, directly in the one of all engines.

    These are the model, its files, precision, release (and so TensorRT), profile with the batch, and options of building. ONNX Runtime itself finds engines
    again by the names in the graph, the versions of libraries and the GPU alone, whatever the weights (`TRTGenerateId` in its TensorRT provider). It makes the
    folder, but none above it: `fs::create_directory` in the provider's constructor throws where the one above is missing, and the model does not load.
    """
    parts = [
        model.name,
        digest,
        model.precision,
        release.name if release else str(target.release),
        *(f"{key}={value}" for key, value in sorted(parameters.items())),
    ]
    fingerprint = hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
    return f"{target.engine_cache.rstrip('/')}/{model.name[:_LONGEST_NAME]}-{fingerprint}"


def profile_shapes(signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings, *, asked: bool = False) -> dict[str, str]:
    """The accelerator's `trt_profile_{min,opt,max}_shapes`, for all inputs with variable dimensions or for none (ONNX Runtime wants all three for all of them).

    Empty where a size is not known, with a finding that says what that costs, unless sizes were `asked` for already.
    """
    dynamic = [tensor for tensor in signature.inputs if tensor.shape and any(not isinstance(dim, int) for dim in tensor.shape)]
    unknown = [tensor.name for tensor in dynamic if tensor.name not in sizes]
    if unknown and asked:
        return {}
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


def _say_values(signature: Signature, batching: Batching, findings: Findings, *, beside_profile: bool) -> None:
    """Say which inputs may be shape tensors. A range of their values cannot be relied on here: ONNX Runtime read it wrongly before 1.17 (its pull request
    18253), and took opt for max from TensorRT 10.11 on (32415), so that the engine is not built.

    `beside_profile`: whether there is a profile, in which ONNX Runtime then misses them (`has_explicit_profile` of its TensorRT provider).
    """
    rebuilt = "TensorRT builds a new engine, for minutes, whenever a value comes that lies outside those seen before"
    refused = "ONNX Runtime refuses to load the model, since other inputs have a profile"
    if may_be := [tensor for tensor in signature.inputs if value_count(tensor, batching)]:
        findings.advice(
            "TG113",
            ("accelerator",),
            f"the values of {', '.join(tensor.describe() for tensor in may_be)} may be sizes that the network works with, and no profile holds their range",
            consequence=f"where they are, {refused if beside_profile else rebuilt}",
            hint="write backend: tensorrt with tensorrt: {shape_tensors: {...}}, or accelerator: cuda; where the values are no sizes, leave it as it is",
        )


def _profile(name: str, dims: Sequence[int], batch: int | None) -> str:
    return f"{name}:{'x'.join(str(size) for size in ((batch, *dims) if batch else dims))}"
