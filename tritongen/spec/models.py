"""What a spec can say: frozen pydantic models of `spec.yaml`, version 1.

Owns the keys, their defaults and the rules between keys of one model. Knows nothing about files, positions or ONNX: `load` brings the text here, the compile
stage reads the result. Every key is described where it is declared; `schema` turns the descriptions into the JSON Schema that editors show.

A rule between two keys is a validator of the *later* key, which sees the earlier ones that were fine: it runs even where an unrelated key is wrong, and never
on top of a value that was already reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.batching import Batching
from tritongen.spec.deploy import Deploy
from tritongen.spec.instances import InstanceGroup, InstanceKind
from tritongen.spec.libraries import LibraryPath
from tritongen.spec.plans import spanned
from tritongen.spec.ragged import Requests
from tritongen.spec.rewriting import Rewriting
from tritongen.spec.samples import Sample
from tritongen.spec.scenario_fit import disagreements
from tritongen.spec.scenarios import LoadTests
from tritongen.spec.server import Server
from tritongen.spec.serving import Accelerator, Backend, Precision, Serving
from tritongen.spec.shapes import ShapeField, ShapeRange
from tritongen.spec.source import Source, Sourced
from tritongen.spec.strict import Strict, listed, setting
from tritongen.spec.target import Target
from tritongen.spec.values import (
    ModelName,
    PathText,
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


class Settings(Rewriting, Serving):
    """The keys that `defaults` and every model share."""


class Defaults(Settings, json_schema_extra={"examples": [{"instances": [{"kind": "gpu"}], "batching": {"max_queue_delay": "1ms"}}]}):
    """Values for every model that does not set the key itself. A model's own key replaces the whole value; nothing is merged inside it."""


class ModelSpec(
    Sourced,
    Requests,
    Settings,
    json_schema_extra={
        "examples": [{"name": "resnet50", "source": "resnet50.onnx", "accelerator": "tensorrt", "precision": "fp16", "version": "auto"}],
        "anyOf": [{"required": ["source"]}, {"required": ["sources"]}],
    },
):
    """One model: its file, and how it is served."""

    name: ModelName = setting(
        "The model's name in Triton, in URLs and as a folder: letters, digits and _ . + -, unique whatever the letter case.",
        default=...,
        sets="name, and the name of the model's folder",
        why="it is what clients ask for",
    )
    shapes: Mapping[str, ShapeField] = setting(
        "Sizes of inputs by name: {min: [16], opt: [128], max: [512]}, or [3, 48, 320] for one fixed size. Those of one row, without the batch dimension;"
        " all dimensions where the model does not batch.",
        default_factory=dict,
        sets="the TensorRT profile (trt_profile_min_shapes, _opt_shapes, _max_shapes) and the sizes of warmup samples",
        why="where the model has variable dimensions besides the batch: nothing can be warmed up or built for a size that is not known",
    )
    samples: Mapping[str, Sample] = setting(
        "Values for inputs that cannot be guessed, by input name: a number, true/false, a text, a nested list, a .npy file inside the"
        " spec's folder, or {files: ...} for pictures, recordings, texts and arrays. Used for warmup, verification and load tests.",
        default_factory=dict,
        sets="model_warmup.inputs.input_data_file, and a parameter that clients of tritongen read",
        why="where zeros are no valid input: indices, sampling rates, lengths, texts",
    )
    labels: Mapping[str, PathText] = setting(
        "Text files with one class name per line, by output name; inside the spec's folder. They are copied.",
        default_factory=dict,
        sets="output.label_filename",
        why="clients that ask for the classification of an output get names with it",
    )
    op_libraries: tuple[LibraryPath, ...] = setting(
        "Libraries of custom operators, loaded in this order: absolute paths inside the container, or plain file names that the dynamic loader finds there."
        " With backend onnxruntime only.",
        default=(),
        sets="model_operations.op_library_filename",
        why="for a model with operators of your own; Triton refuses it without their library",
    )
    config: Mapping[str, Any] = setting(
        "Settings that have no key here, in the field names of Triton's ModelConfig. Laid over what was derived; it wins."
        " Controls and states of sequence_batching are then no inputs and outputs of requests.",
        default_factory=dict,
        sets="any field of ModelConfig but those that a key above derives",
        why="for the rare fields; an unknown field or a value of another type is refused at its place",
    )

    @property
    def known_shapes(self) -> Mapping[str, ShapeRange]:
        """`shapes`, and of inputs that are not there what the profiles of the model's plan span."""
        return {**spanned(self.tensorrt.profiles), **self.shapes} if self.backend == "tensorrt" else self.shapes

    @property
    def known_samples(self) -> Mapping[str, Sample]:
        """`samples`, and of shape tensors that are not there the values that the model's plan is tuned for: zeros are mostly no sizes."""
        if self.backend != "tensorrt":
            return self.samples
        tuned = {name: span.opt[0] if len(span.opt) == 1 else span.opt for name, span in self.tensorrt.shape_tensors.items()}
        return {**tuned, **self.samples}

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
                beside=("batching", "max"),
            )
            problems.append(fault)
        raise_all([*problems, *order_problems(sizes, "batch sizes", most=most)], value)
        return tuple(sizes)


class Spec(
    Strict,
    json_schema_extra={
        "examples": [
            {
                "version": 1,
                "triton": {"release": "25.08"},
                "repository": "model_repository",
                "defaults": {"batching": {"max": 16}},
                "models": [{"name": "resnet50", "source": "resnet50.onnx"}],
            }
        ]
    },
):
    """A whole spec. `models` already hold what `defaults` gave them."""

    version: Literal[1] = setting(
        "Version of the spec format; 1 is the only one.",
        default=...,
        sets="how the rest is read",
        why="always, so that a later tritongen can tell an old spec from a mistake",
    )
    triton: Target = setting(
        "The server that the repository is made for: its release, and where it keeps engines.",
        default_factory=Target,
        sets="what all models may use",
        why="to write for the release that you run",
    )
    repository: PathText = setting(
        "Folder to write the Triton model repository to, relative to the spec's folder.",
        default="model_repository",
        sets="where models are written",
        why="to write into a mounted volume; `tritongen render -o` does it once",
    )
    server: Server = setting(
        "How the server is started.",
        default_factory=Server,
        sets="the command line of tritonserver",
        why="for a response cache, p99 in the metrics, other ports; `tritongen serve` and the rendered deployment start it so",
    )
    deploy: Deploy = setting(
        "How its container is run.",
        default_factory=Deploy,
        sets="docker-compose.yml",
        why="to choose GPUs, memory and users; `tritongen render --deploy compose` writes it",
    )
    defaults: Defaults = setting(
        "Values for every model that does not set the key itself.",
        default_factory=Defaults,
        sets="what models have in common",
        why="to say once what several models share",
    )
    models: tuple[ModelSpec, ...] = setting(
        "The models to serve.", default=..., min_length=1, sets="one folder of the repository for each", why="without a model there is nothing to serve"
    )
    load: LoadTests | None = setting(
        "Load tests of the models, by name. Default: none.",
        sets="no file; `tritongen load` runs them",
        why="to keep with the models what they are measured with",
    )

    @model_validator(mode="before")
    @classmethod
    def _merge_defaults(cls, data: object) -> object:
        return with_defaults(data) if isinstance(data, Mapping) else data

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        for first, second in same_names([model.name for model in models]):
            raise same_name_problem(models[first].name, models[second].name)
        return models

    @field_validator("load")
    @classmethod
    def _fits_models(cls, load: LoadTests | None, info: ValidationInfo) -> LoadTests | None:
        models = info.data.get("models")
        if load is not None and models is not None and (found := disagreements(load, models)):
            raise ValidationError.from_exception_data("load", found)
        return load


def with_defaults(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a spec in which every model has the defaults that it does not set. Unknown keys of `defaults` stay there, so that they are reported once."""
    defaults, models = data.get("defaults"), data.get("models")
    if not isinstance(defaults, Mapping) or not isinstance(models, list | tuple):
        return data
    keys = {field.alias or name for name, field in Settings.model_fields.items()}
    shared = {key: value for key, value in defaults.items() if key in keys}
    return {**data, "models": [{**shared, **model} if isinstance(model, Mapping) else model for model in models]}


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
