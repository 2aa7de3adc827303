"""Keys of a spec that have no effect in their combination: each is said, and the rest of the compilation works on the model without them.

One row for each key that other keys of the spec decide about, in order: where a whole section has no effect, its keys are not looked at any more. What depends
on a decision that is made later (batches, threads) is said where that is made. What contradicts another key is no matter of this table: it is an error where
the later of the two is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from tritongen.diagnostics import Diagnostic, Location
from tritongen.releases import tensorrt_major_of, tensorrt_text_of
from tritongen.render.findings import Findings, Key
from tritongen.render.keys import is_given, is_stated, key_text, value_of, without
from tritongen.render.placement import placed_groups
from tritongen.render.precision import is_converted, without_idle_dla
from tritongen.rewrite import PRECISIONS
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.spec.models import Spec

_CLASSIFIED = frozenset({"UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP32", "FP64"})
"""Dtypes of outputs that the classification extension takes (TopkClassifications in the server's classification.cc); others are an error of the request."""

Facts = tuple[ModelSpec, str]
"""A model, and the tag of the release that will serve it."""


@dataclass(frozen=True)
class Effect:
    """When a key has an effect.

    Attributes:
        key: the key, by its path in the model.
        works: whether it has an effect in a model for a release.
        against: what it has none with, such as `backend: tensorrt`.
        instead: what happens, as a finding's consequence.
        hint: what to do.
        belongs_to: the key without which it has none; where that one has no effect itself, this is what stands against it.
    """

    key: Key
    works: Callable[[Facts], bool]
    against: Callable[[Facts], str]
    instead: str
    hint: str
    belongs_to: Key = ()


def effective(model: ModelSpec, signature: Signature, release: str, findings: Findings) -> ModelSpec:
    """The model with every key that has no effect in the release of this tag at its default. Says which ones; labels stay, since their files do."""
    dropped: set[Key] = set()
    _say_empty(model, findings)
    for effect in EFFECTS:
        if is_given(model, effect.key) and not effect.works((model, release)):
            value = value_of(model, effect.key)
            said = f"{key_text(effect.key)}: {value}" if isinstance(value, str) else key_text(effect.key)
            if effect.belongs_to in dropped:
                parent = f"{key_text(effect.belongs_to)} ({findings.locate(effect.belongs_to)})"
                findings.idle(effect.key, f"{said} has no effect with {parent}, which has none itself", hint=f"remove it together with {effect.belongs_to[-1]}")
            else:
                findings.idle(effect.key, f"{said} has no effect with {effect.against((model, release))}", consequence=effect.instead, hint=effect.hint)
            dropped.add(effect.key)
            model = without(model, effect.key)
    model = without_idle_dla(model, release, findings)
    for output in signature.outputs:
        if output.name in model.labels and output.dtype.wire not in _CLASSIFIED:
            findings.idle(
                ("labels", output.name),
                f"labels of '{output.name}' have no effect: it is {output.dtype}",
                consequence="Triton refuses requests for classes of such an output",
                hint="remove the labels, or export the model with an output of FP32",
            )
    return model


_SECTIONS: tuple[Key, ...] = (
    *(
        ("queue",),
        ("conversion",),
        ("onnxruntime",),
        ("onnxruntime", "cuda"),
        ("onnxruntime", "tensorrt"),
        ("onnxruntime", "tensorrt", "tactic_sources"),
        ("tensorrt",),
    ),
    *(("tensorrt", "build"), ("tensorrt", "shape_tensors")),
    *(("batching", "pinned_memory"), ("versions",), ("shapes",), ("samples",), ("labels",), ("config",), ("queue", "priority_queue_policy")),
)
"""Mappings whose keys may all be left out; a spec without them says the same. Others have a meaning when they are empty, or are refused."""


def _say_empty(model: ModelSpec, findings: Findings) -> None:
    """Mappings that were opened and left empty."""
    for key in _SECTIONS:
        if not is_stated(model, key):
            continue
        section = value_of(model, key)
        if not (section.model_fields_set if isinstance(section, BaseModel) else section):
            findings.idle(key, f"{key_text(key)} says nothing: it is empty", hint="write one of its keys, or remove it")


def idle_target(spec: Spec, locate: Callable[[Key], Location]) -> list[Diagnostic]:
    """What `triton` says without an effect on any model."""
    findings = Findings("", locate, lambda key: False)
    users = [model for model in spec.models if model.backend == "onnxruntime" and model.accelerator == "tensorrt"]
    caching = any(model.onnxruntime.tensorrt.engine_cache or model.onnxruntime.tensorrt.timing_cache for model in users)
    if "engine_cache" in spec.triton.model_fields_set and not caching:
        findings.idle(
            ("triton", "engine_cache"),
            f"triton.engine_cache has no effect: {'no engines and no times of kernels are kept' if users else 'no model has accelerator: tensorrt'}",
            consequence="nothing is kept there; plans of backend tensorrt are files of the repository",
            hint="remove it, or write onnxruntime: {tensorrt: {engine_cache: true}}" if users else "remove it, or add accelerator: tensorrt to a model",
        )
    if spec.triton.gpu_memory is not None and not any(group.kind in ("gpu", "auto") for model in spec.models for group in placed_groups(model)):
        message = "triton.gpu_memory has no effect: no model has copies on a GPU"
        findings.idle(("triton", "gpu_memory"), message, hint="remove it, or write instances: {kind: gpu}")
    return findings.found


def _is_onnx(facts: Facts) -> bool:
    return facts[0].backend == "onnxruntime"


def _backend(facts: Facts) -> str:
    return f"backend: {facts[0].backend}"


def _against_precision(facts: Facts) -> str:
    model = facts[0]
    on_cpu = model.precision in PRECISIONS and model.accelerator == "none" and not _kinds(facts) & {"auto", "gpu"}
    return _kinds_text(facts) if on_cpu else f"{_backend(facts)} and accelerator: {model.accelerator}"


def _kinds(facts: Facts) -> set[str]:
    """Where the copies run."""
    return {group.kind for group in placed_groups(facts[0])}


def _kinds_text(facts: Facts) -> str:
    return f"instances of kind {' and '.join(sorted(_kinds(facts)))} only"


def _tensorrt_major(facts: Facts) -> int:
    return tensorrt_major_of(facts[1])


def _tensorrt_text(facts: Facts) -> str:
    return f"TensorRT {tensorrt_text_of(facts[1])} of release {facts[1]}"


def _is_parallel(facts: Facts) -> bool:
    return facts[0].onnxruntime.execution_mode == "parallel"


_SESSION: Key = ("onnxruntime",)
_CUDA: Key = ("onnxruntime", "cuda")
_ACCELERATOR: Key = ("onnxruntime", "tensorrt")


def _tactics() -> Iterator[Effect]:
    """Libraries that TensorRT takes no kernels from any more."""
    for name in ("cudnn", "cublas", "cublas_lt"):
        yield Effect(
            (*_ACCELERATOR, "tactic_sources", name),
            lambda facts: _tensorrt_major(facts) < 11,
            _tensorrt_text,
            "TensorRT 11 has no such tactic source",
            "remove it",
        )


EFFECTS: tuple[Effect, ...] = (
    Effect(
        ("accelerator",),
        _is_onnx,
        _backend,
        "only the onnxruntime backend has accelerators",
        "remove accelerator (a TensorRT plan already runs in TensorRT), or write backend: onnxruntime",
    ),
    Effect(
        ("precision",),
        lambda facts: "tensorrt" in (facts[0].backend, facts[0].accelerator) or is_converted(facts[0]),
        _against_precision,
        "ONNX Runtime computes in the types that the model file states, on the GPU with TF32 unless onnxruntime: {cuda: {use_tf32: false}} is written",
        "write precision: fp32; fp16 is for GPUs (accelerator: cuda or tensorrt), the others for accelerator: tensorrt and backend: tensorrt",
    ),
    Effect(
        ("conversion",),
        lambda facts: is_converted(facts[0]),
        lambda facts: f"precision: {facts[0].precision}",
        "the file is served as it is",
        "write precision: fp16, or remove conversion",
        belongs_to=("precision",),
    ),
    Effect(("cpu_threads",), _is_onnx, _backend, "a TensorRT plan runs on a GPU", "remove cpu_threads"),
    Effect(_SESSION, _is_onnx, _backend, "only the onnxruntime backend reads them", "remove onnxruntime, or write backend: onnxruntime"),
    Effect(
        ("op_libraries",),
        _is_onnx,
        _backend,
        "the tensorrt backend loads no libraries of a model",
        "start the server with --backend-config=tensorrt,plugins=<path>;<path>, or write backend: onnxruntime",
    ),
    Effect(
        ("tensorrt",),
        lambda facts: facts[0].backend == "tensorrt",
        _backend,
        "only the tensorrt backend, which serves plans, reads them",
        "write the accelerator's options in onnxruntime: {tensorrt: {...}}, or write backend: tensorrt",
    ),
    Effect(
        ("tensorrt", "cuda_graphs"),
        lambda facts: not facts[0].tensorrt.shape_tensors,
        lambda facts: "shape_tensors",
        "Triton captures no CUDA graph of a plan with shape tensors",
        "remove cuda_graphs",
        belongs_to=("tensorrt",),
    ),
    Effect(
        _ACCELERATOR,
        lambda facts: facts[0].accelerator == "tensorrt",
        lambda facts: f"accelerator: {facts[0].accelerator}",
        "TensorRT is not asked",
        "add accelerator: tensorrt, or remove onnxruntime.tensorrt",
    ),
    Effect(
        _CUDA,
        lambda facts: bool(_kinds(facts) & {"auto", "gpu"}),
        _kinds_text,
        "the CUDA provider serves copies on GPUs only",
        "write instances: [{kind: gpu}], or remove onnxruntime.cuda",
    ),
    Effect(
        (*_SESSION, "execution_mode"),
        lambda facts: not _is_parallel(facts) or _kinds(facts) != {"gpu"},
        _kinds_text,
        "ONNX Runtime runs one operator after another wherever the CUDA provider is used",
        "remove execution_mode: parallel",
    ),
    Effect(
        (*_SESSION, "inter_op_threads"),
        _is_parallel,
        lambda facts: "execution_mode: sequential",
        "ONNX Runtime runs one operator after another and does not use these threads",
        "add execution_mode: parallel, or remove inter_op_threads",
        belongs_to=(*_SESSION, "execution_mode"),
    ),
    Effect(
        (*_SESSION, "enable_mem_pattern"),
        lambda facts: not _is_parallel(facts),
        lambda facts: "execution_mode: parallel",
        "ONNX Runtime plans memory in sequential execution only",
        "remove enable_mem_pattern, or execution_mode: parallel",
    ),
    Effect(
        (*_ACCELERATOR, "engine_cache_prefix"),
        lambda facts: facts[0].onnxruntime.tensorrt.engine_cache,
        lambda facts: "engine_cache: false",
        "no engine is kept",
        "remove one of the two",
    ),
    Effect(
        (*_ACCELERATOR, "force_timing_cache"),
        lambda facts: facts[0].onnxruntime.tensorrt.timing_cache,
        lambda facts: "timing_cache: false",
        "no times are kept",
        "remove one of the two",
    ),
    Effect(
        (*_ACCELERATOR, "dla_core"),
        lambda facts: facts[0].precision in ("fp16", "int8"),
        lambda facts: f"precision: {facts[0].precision}",
        "a deep learning accelerator computes in FP16 and INT8 only, so that the GPU does it all",
        "write precision: fp16, or remove dla_core",
    ),
    Effect(
        (*_ACCELERATOR, "int8_calibration_table_name"),
        lambda facts: facts[0].precision == "int8",
        lambda facts: f"precision: {facts[0].precision}",
        "the table is not read",
        "write precision: int8, or remove the table",
    ),
    Effect(
        (*_ACCELERATOR, "int8_calibration_table_name"),
        lambda facts: _tensorrt_major(facts) < 11,
        _tensorrt_text,
        "TensorRT 11 takes scales from Q/DQ nodes of the model, and from nothing else",
        "quantize the ONNX file (NVIDIA's ModelOpt does), or use a release up to 26.05",
    ),
    Effect(
        (*_ACCELERATOR, "int8_use_native_calibration_table"),
        lambda facts: facts[0].onnxruntime.tensorrt.int8_calibration_table_name is not None,
        lambda facts: "no int8_calibration_table_name",
        "there is no table to read",
        "add int8_calibration_table_name, or remove it",
        belongs_to=(*_ACCELERATOR, "int8_calibration_table_name"),
    ),
    Effect(
        (*_ACCELERATOR, "build_heuristics"),
        lambda facts: _tensorrt_major(facts) < 10,
        _tensorrt_text,
        "TensorRT 10 took the flag away",
        "write builder_optimization_level: 2 or lower for a faster build",
    ),
    *_tactics(),
    Effect(
        ("tensorrt", "build", "gpu_fallback"),
        lambda facts: any(group.dla is not None for group in placed_groups(facts[0])),
        lambda facts: "no dla in instances",
        "the plan is built for the GPU",
        "remove gpu_fallback, or write instances: [{kind: gpu, dla: 0}]",
    ),
    Effect(
        ("versions", "count"),
        lambda facts: facts[0].versions.policy == "latest" or facts[0].version == "auto",
        lambda facts: f"versions.policy: {facts[0].versions.policy}",
        "it is for policy: latest, and says how many versions version: auto keeps",
        "remove count, or write policy: latest",
    ),
)
"""Every key that may be without effect, outer ones first."""
