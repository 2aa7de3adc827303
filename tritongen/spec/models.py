"""What a spec can say: frozen pydantic models of `spec.yaml`, version 1.

Owns the keys, their defaults and the rules between keys of one model. Knows nothing about files, positions or ONNX: `load` brings the text here, the compile
stage reads the result. Every key is described where it is declared; `schema` turns the descriptions into the JSON Schema that editors show.

A rule between two keys is a validator of the *later* key, which sees the earlier ones that were fine: it runs even where an unrelated key is wrong, and never
on top of a value that was already reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, ValidationInfo, ValidatorFunctionWrapHandler, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.batching import Batching, BatchingField
from tritongen.spec.instances import InstanceGroup, InstanceKind, InstancesField
from tritongen.spec.shapes import ShapeField, ShapeRange
from tritongen.spec.source import Source, SourceField
from tritongen.spec.strict import Strict, listed
from tritongen.spec.values import (
    ModelName,
    ModelVersion,
    PathText,
    PositiveInt,
    Release,
    Sample,
    ServerPath,
    Warmup,
    number_problems,
    order_problems,
    problem,
    raise_all,
)
from tritongen.spec.versions import VersionPolicy

__all__ = [
    "SPEC_VERSION",
    "Accelerator",
    "Backend",
    "Batching",
    "Defaults",
    "InstanceGroup",
    "InstanceKind",
    "ModelSpec",
    "Precision",
    "Settings",
    "ShapeRange",
    "Source",
    "Spec",
    "Target",
    "VersionPolicy",
]

SPEC_VERSION = 1
"""The only spec version there is; a file with a higher one was written for a newer tritongen."""

Backend = Literal["onnxruntime", "tensorrt"]
Accelerator = Literal["none", "cuda", "tensorrt", "openvino"]
Precision = Literal["fp32", "fp16", "bf16", "int8"]


class Settings(Strict):
    """The keys that `defaults` and every model share."""

    backend: Backend = Field(
        "onnxruntime",
        description="What runs the model. onnxruntime serves the ONNX file; tensorrt serves a plan that is built from it. Sets backend and platform.",
    )
    accelerator: Accelerator = Field(
        "none",
        description="What ONNX Runtime hands the graph to: cuda and tensorrt on GPUs, openvino on CPUs. With backend onnxruntime only."
        " Sets optimization.execution_accelerators.",
    )
    precision: Precision = Field(
        "fp32",
        description="Arithmetic that TensorRT may use, with accelerator tensorrt or backend tensorrt only. Sets precision_mode, or how the plan is built.",
    )
    batching: BatchingField = Field(
        default_factory=Batching, description="How requests are put together: auto (the default), none, or a mapping. Sets max_batch_size and dynamic_batching."
    )
    instances: InstancesField = Field(
        default_factory=lambda: (InstanceGroup(),),
        description="Copies of the model and where they run: a list of groups, or a single group. Sets instance_group. Default: one copy of kind auto.",
    )
    cpu_threads: PositiveInt | None = Field(
        None,
        description="Threads inside one operator, for each copy; with backend onnxruntime only. Sets parameters.intra_op_thread_count. Default: all cores.",
    )
    warmup: Warmup = Field(
        "auto", description="Batch sizes to run once while loading: auto ({1, max} and the preferred sizes), none, or a list. Sets model_warmup."
    )
    versions: VersionPolicy = Field(
        default_factory=VersionPolicy, description="Which version folders Triton serves. Sets version_policy. Default: the latest one."
    )
    version: ModelVersion = Field(
        1,
        description="The version folder to write: a number (replaced in place), or auto (new weights get the next one, versions.count are kept).",
    )


class Defaults(Settings):
    """Values for every model that does not set the key itself. A model's own key replaces the whole value; nothing is merged inside it."""


class ModelSpec(Settings):
    """One model: its file, and how it is served."""

    name: ModelName = Field(
        description="The model's name in Triton, in URLs and as a folder: letters, digits and _ . + -, unique whatever the letter case. Sets name."
    )
    source: SourceField = Field(
        description="The ONNX file: a path relative to the spec's folder, or {package: ..., path: ...} for a file of an installed Python package."
    )
    shapes: Mapping[str, ShapeField] = Field(
        default_factory=dict,
        description="Sizes of tensors by name, without the batch dimension: {min: [16], opt: [128], max: [512]}, or [3, 48, 320] for one fixed size.",
    )
    samples: Mapping[str, Sample] = Field(
        default_factory=dict,
        description="Values for inputs that cannot be guessed, by input name: a number, true/false, a text, a nested list, or a .npy file inside the"
        " spec's folder. Used for warmup, verification and load tests.",
    )
    labels: Mapping[str, PathText] = Field(
        default_factory=dict,
        description="Text files with one class name per line, by output name; inside the spec's folder. Copied, and set as label_filename.",
    )
    config: Mapping[str, Any] = Field(
        default_factory=dict, description="Settings that have no key here, in the field names of Triton's ModelConfig. Laid over what was derived; it wins."
    )

    @property
    def sample_files(self) -> Mapping[str, str]:
        """The samples that are .npy files, by input name; paths as they are written, relative to the spec's folder."""
        return {name: value for name, value in self.samples.items() if isinstance(value, str) and value.endswith(".npy")}

    @field_validator("accelerator")
    @classmethod
    def _accelerator_has_effect(cls, accelerator: str, info: ValidationInfo) -> str:
        backend = info.data.get("backend", "onnxruntime")
        if accelerator != "none" and backend != "onnxruntime":
            raise problem(
                f"accelerator: {accelerator} has no effect with backend: {backend}",
                code="TG015",
                consequence="only the onnxruntime backend has accelerators",
                hint="remove accelerator (a TensorRT plan already runs in TensorRT), or write backend: onnxruntime",
            )
        return accelerator

    @field_validator("precision")
    @classmethod
    def _precision_has_effect(cls, precision: str, info: ValidationInfo) -> str:
        known = "backend" in info.data and "accelerator" in info.data
        if precision != "fp32" and known and "tensorrt" not in (info.data["backend"], info.data["accelerator"]):
            raise problem(
                f"precision: {precision} has no effect with backend: {info.data['backend']} and accelerator: {info.data['accelerator']}",
                code="TG015",
                consequence="ONNX Runtime computes in the types that the model file states",
                hint="add accelerator: tensorrt, or write precision: fp32 and convert the ONNX file itself",
            )
        return precision

    @field_validator("cpu_threads")
    @classmethod
    def _threads_have_effect(cls, threads: int | None, info: ValidationInfo) -> int | None:
        if threads is not None and info.data.get("backend") == "tensorrt":
            raise problem(
                "cpu_threads has no effect with backend: tensorrt", code="TG015", consequence="a TensorRT plan runs on a GPU", hint="remove cpu_threads"
            )
        return threads

    @field_validator("warmup", mode="wrap")
    @classmethod
    def _warmup_fits(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        batching = info.data.get("batching")
        if batching is None or batching.max is None or not isinstance(value, list | tuple):
            return handler(value)
        sizes, problems = number_problems(value)
        most = max(batching.max, 1)
        if above := [size for size in sizes if size > most]:
            off = batching.max == 0
            message = f"{listed(above)} {'is' if len(above) == 1 else 'are'} above batching.max: {batching.max}"
            fault = problem(
                f"batching is off, so {listed(above)} cannot be warmed up" if off else message,
                code="TG015",
                consequence="Triton refuses to load a model when a warmup sample is larger than max_batch_size",
                hint="write warmup: [1]" if off else f"warm up sizes up to {batching.max}, or raise batching.max to {max(above)}",
            )
            problems.append(fault)
        raise_all([*problems, *order_problems(sizes, "batch sizes", most=most)], value)
        return tuple(sizes)


class Target(Strict):
    """The server that the repository is made for."""

    release: Release | None = Field(
        None, description='NVIDIA container release as quoted YY.MM, such as "25.08". Default: the newest one that tritongen knows.'
    )
    engine_cache: ServerPath = Field(
        "/engine-cache", description="Absolute folder inside the container where the TensorRT accelerator keeps its engines. Sets trt_engine_cache_path."
    )


class Spec(Strict):
    """A whole spec. `models` already hold what `defaults` gave them."""

    version: Literal[1] = Field(description="Version of the spec format; 1 is the only one.")
    triton: Target = Field(default_factory=Target, description="The server that the repository is made for: its release, and where it keeps engines.")
    repository: PathText = Field("model_repository", description="Folder to write the Triton model repository to, relative to the spec's folder.")
    defaults: Defaults = Field(default_factory=Defaults, description="Values for every model that does not set the key itself.")
    models: tuple[ModelSpec, ...] = Field(min_length=1, description="The models to serve.")

    @model_validator(mode="before")
    @classmethod
    def _merge_defaults(cls, data: object) -> object:
        """Gives every model the defaults it does not set. Unknown keys of `defaults` stay there, so that they are reported once."""
        if not isinstance(data, Mapping):
            return data
        defaults, models = data.get("defaults"), data.get("models")
        if not isinstance(defaults, Mapping) or not isinstance(models, list | tuple):
            return data
        keys = {field.alias or name for name, field in Settings.model_fields.items()}
        shared = {key: value for key, value in defaults.items() if key in keys}
        return {**data, "models": [{**shared, **model} if isinstance(model, Mapping) else model for model in models]}

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        for first, second in same_names([model.name for model in models]):
            raise same_name_problem(models[first].name, models[second].name)
        return models


def same_names(names: Iterable[object]) -> list[tuple[int, int]]:
    """Index pairs (first, later) of names that are equal or differ only by letter case; what is no text is skipped."""
    seen: dict[str, int] = {}
    pairs = []
    for index, name in enumerate(names):
        if isinstance(name, str):
            first = seen.setdefault(name.casefold(), index)
            if first != index:
                pairs.append((first, index))
    return pairs


def same_name_problem(first: str, second: str, *, where: str = "") -> PydanticCustomError:
    """The problem of two models that would share a folder; `where` says where the first one is."""
    fault = f"the name {second!r} is taken by another model" if first == second else f"the name {second!r} differs from {first!r} only by letter case"
    consequence = "both would be one folder of the repository" if first == second else "both would be one folder on a disk that ignores letter case"
    return problem(fault + where, code="TG014", consequence=consequence, hint="rename one of the two models")
