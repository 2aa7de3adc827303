"""The building blocks of a model in the spec: source, batching, shapes, instances, versions.

Frozen pydantic models, each with the short forms that people may write for it. A rule between two keys is a validator of the *later* key, which sees the
earlier ones that were fine: it runs even where an unrelated key is wrong, and never on top of a value that was already reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from tritongen.spec.units import Duration
from tritongen.spec.values import (
    INT64_MAX,
    PATH_SCHEMA,
    UINT32_MAX,
    Dims,
    PackageName,
    PathText,
    PositiveInt,
    Size32,
    VersionNumber,
    describe,
    order_problems,
    problem,
    raise_all,
    together,
    whole_numbers,
)

InstanceKind = Literal["auto", "gpu", "cpu", "model"]


class Strict(BaseModel):
    """Base of all parts of a spec: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Strict):
    """Where a model's ONNX file is: a path, or a file inside an installed Python package."""

    package: PackageName | None = Field(None, description="Import name of an installed Python package that carries the file; it is located, never imported.")
    path: PathText = Field(description="Path of the ONNX file: relative to the spec's folder (~ and absolute paths work too), or relative to the package.")

    @field_validator("path")
    @classmethod
    def _no_url(cls, path: str) -> str:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
            raise problem(f"URLs are not read: {path[:80]!r}", hint="download the file, and write its path relative to the spec's folder")
        return path

    @field_validator("path")
    @classmethod
    def _inside_package(cls, path: str, info: ValidationInfo) -> str:
        if info.data.get("package") is not None and (path.startswith(("/", "~", "\\")) or ".." in path.replace("\\", "/").split("/")):
            raise problem(f"the path {path!r} leaves the package", code="TG017", hint="write it relative to the package's own folder, with / and without ..")
        return path


def _source_forms(value: object) -> object:
    """A plain path as the mapping that it stands for."""
    if isinstance(value, str):
        return {"path": value}
    if not isinstance(value, Mapping | Source):
        raise problem(f"expected a path or a mapping with package and path, got {describe(value)}", code="TG010", hint="write source: model.onnx")
    return value


class Batching(Strict):
    """How requests are put together. Every value that is left out is decided from the model: it batches where each input and output allows it."""

    max: Size32 | None = Field(
        None, description="Most rows in one execution; 0 turns batching off. Sets max_batch_size. Left out: decided from the model's inputs and outputs."
    )
    preferred: tuple[PositiveInt, ...] = Field(
        (),
        description="Batch sizes to form when requests are queued, ascending, none above max. Sets dynamic_batching.preferred_batch_size. Default: max alone.",
    )
    max_queue_delay_us: Duration = Field(
        0,
        alias="max_queue_delay",
        description="How long the oldest request may wait for a fuller batch, with a unit such as 500us or 2ms."
        " Sets dynamic_batching.max_queue_delay_microseconds. Default: no waiting.",
    )

    @field_validator("preferred", mode="wrap")
    @classmethod
    def _preferred_fit(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        return together(value, handler, lambda sizes, _: _preferred_problems(sizes, info.data.get("max")))

    @field_validator("max_queue_delay_us")
    @classmethod
    def _delay_has_effect(cls, delay: int, info: ValidationInfo) -> int:
        if delay and info.data.get("max") == 0:
            raise problem(
                "batching is off (max: 0), so nothing waits for a fuller batch",
                code="TG015",
                consequence="Triton executes every request alone, at once",
                hint="remove max_queue_delay, or set max to at least 2",
            )
        return delay


def _preferred_problems(sizes: list[int], most: int | None) -> Iterator[PydanticCustomError]:
    """What is wrong with preferred sizes; every remedy gives a list that is right as a whole."""
    disorder = order_problems(sizes, "preferred sizes", most=most)
    above, ascending = [size for size in sizes if most is not None and size > most], sorted(set(sizes))
    rewrite = f" and write preferred: {ascending}" if disorder else ""
    if sizes and most == 0:
        yield problem(
            "batching is off (max: 0), so there is no batch size to prefer",
            code="TG015",
            consequence="Triton refuses a preferred size above max_batch_size",
            hint=f"remove preferred, or set max to {max(sizes)} or more{rewrite}",
        )
        return
    if above:
        fitting = [size for size in ascending if size not in above]
        yield problem(
            f"{listed(above)} {'is' if len(above) == 1 else 'are'} above max: {most}",
            code="TG015",
            consequence="Triton refuses to load a model whose preferred batch size is above max_batch_size",
            hint=f"raise max to {max(above)}{rewrite}, or {f'prefer {fitting}' if fitting else 'remove preferred'}",
        )
    yield from disorder


def _batching_forms(value: object) -> object:
    """`none` and `auto` as the mappings that they stand for."""
    if value == "none":
        return {"max": 0}
    if value == "auto":
        return {}
    if not isinstance(value, Mapping | Batching):
        hint = f"write batching: {{max: {value}}}" if type(value) is int else "write batching: none to turn it off, or batching: {max: 8}"
        raise problem(f"expected auto, none or a mapping with max, preferred and max_queue_delay, got {describe(value)}", code="TG010", hint=hint)
    return value


class ShapeRange(Strict):
    """The sizes of one tensor, without the batch dimension: smallest, usual, largest. Used for TensorRT profiles, warmup and generated requests."""

    min: Dims = Field(description="Smallest size of each dimension.")
    opt: Dims = Field(description="The size that kernels are tuned for.")
    max: Dims = Field(description="Largest size of each dimension.")

    @field_validator("opt", "max")
    @classmethod
    def _ascending(cls, dims: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        name = next((name for name in ("opt", "min") if name != info.field_name and info.data.get(name) is not None), None)
        if name is None:
            return dims
        lower = info.data[name]
        if len(lower) != len(dims):
            raise problem(
                f"{info.field_name} has {len(dims)} dimension{'s' * (len(dims) != 1)} and {name} has {len(lower)}",
                code="TG015",
                hint="give min, opt and max the same number of dimensions, without the batch dimension",
            )
        problems = [
            problem(
                f"dimension {index + 1} of {info.field_name} is {high}, below {name}: {low}",
                code="TG015",
                consequence="TensorRT refuses a profile in which min <= opt <= max does not hold",
                hint="order each dimension so that min <= opt <= max",
            )
            for index, (low, high) in enumerate(zip(lower, dims, strict=True))
            if low > high
        ]
        raise_all(problems, dims)
        return dims

    @property
    def fixed(self) -> bool:
        """True where every dimension has one size only."""
        return self.min == self.max


def _shape_forms(value: object) -> object:
    """A plain list of dimensions as the range that holds just them."""
    if isinstance(value, list | tuple):
        if not value:
            raise problem("the list of dimensions is empty", hint="give each dimension after the batch dimension, or leave the tensor out")
        dims = whole_numbers(value, most=INT64_MAX)
        return {"min": dims, "opt": dims, "max": dims}
    if not isinstance(value, Mapping | ShapeRange):
        raise problem(
            f"expected a list of dimensions or a mapping with min, opt and max, got {describe(value)}",
            code="TG010",
            hint="write [3, 48, 320], without the batch dimension",
        )
    return value


class InstanceGroup(Strict):
    """Copies of a model that run side by side, and where. Becomes one entry of instance_group."""

    kind: InstanceKind = Field(
        "auto", description="auto: on GPUs where there are some, else on the CPU. gpu, cpu: only there. model: the backend decides. Sets kind."
    )
    count: PositiveInt = Field(1, description="Copies on each GPU (or on the CPU). Each holds its own weights. Sets count.")
    gpus: tuple[Size32, ...] = Field((), description="GPU numbers to use, with kind: gpu only. Default: every GPU, each with count copies. Sets gpus.")

    @field_validator("gpus", mode="wrap")
    @classmethod
    def _only_with_gpu(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        return together(value, handler, lambda gpus, _: _gpu_problems(gpus, info.data.get("kind", "gpu")))


def _gpu_problems(gpus: list[int], kind: str) -> Iterator[PydanticCustomError]:
    if gpus and kind != "gpu":
        consequence = f"Triton refuses to load a model with gpus in a group of kind {kind}"
        if kind == "auto":
            consequence = "Triton reads kind auto as cpu where a listed GPU is missing, and then refuses the model"
        yield problem(f"gpus is for kind: gpu, and the kind is {kind}", code="TG015", consequence=consequence, hint="write kind: gpu, or remove gpus")
    if twice := [gpu for gpu in dict.fromkeys(gpus) if gpus.count(gpu) > 1]:
        message = f"GPU {twice[0]} is listed twice" if len(twice) == 1 else f"GPUs {listed(twice)} are listed twice"
        yield problem(message, hint=f"write gpus: {list(dict.fromkeys(gpus))}, and use count for more copies on one GPU")


def _instance_forms(value: object) -> object:
    """A single group as a list of one."""
    if isinstance(value, Mapping | InstanceGroup):
        return [value]
    if not isinstance(value, list | tuple):
        raise problem(f"expected a list of groups, got {describe(value)}", code="TG010", hint="write instances: [{kind: gpu, count: 2}]")
    if not value:
        raise problem("the list of groups is empty", hint="leave instances out for one copy of kind auto, or add a group")
    return value


class VersionPolicy(Strict):
    """Which version folders Triton serves. Becomes version_policy."""

    policy: Literal["latest", "all", "specific"] = Field(
        "latest", description="latest: the highest numbers. all: every folder. specific: those listed in versions."
    )
    count: Annotated[int, Field(strict=True, ge=1, le=UINT32_MAX)] = Field(1, description="How many of the highest versions, with policy: latest only.")
    versions: tuple[VersionNumber, ...] = Field((), validate_default=True, description="The version numbers to serve, with policy: specific only.")

    @field_validator("count")
    @classmethod
    def _count_has_effect(cls, count: int, info: ValidationInfo) -> int:
        if info.data.get("policy", "latest") != "latest":
            raise problem(f"count is for policy: latest, and the policy is {info.data['policy']}", code="TG015", hint="remove count, or write policy: latest")
        return count

    @field_validator("versions", mode="wrap")
    @classmethod
    def _versions_fit(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        return together(value, handler, lambda versions, is_whole: _version_problems(versions, info.data.get("policy"), is_whole=is_whole))


def _version_problems(versions: list[int], policy: str | None, *, is_whole: bool) -> Iterator[PydanticCustomError]:
    if policy == "specific" and not versions and is_whole:
        consequence = "Triton would serve no version at all"
        yield problem("policy: specific needs the versions to serve", code="TG009", consequence=consequence, hint="add versions: [1]")
    if policy in ("latest", "all") and versions:
        message = f"versions is for policy: specific, and the policy is {policy}"
        yield problem(message, code="TG015", hint="remove versions, or write policy: specific")
    yield from order_problems(versions, "versions")


@dataclass(frozen=True)
class _Forms:
    """The JSON Schema of a field that has short forms: `widen` makes it out of the schema of the full form."""

    widen: Callable[[JsonSchemaValue], list[JsonSchemaValue]]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": self.widen(handler(schema))}


_DIMS_SCHEMA: JsonSchemaValue = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": INT64_MAX}}

SourceField = Annotated[Source, BeforeValidator(_source_forms), _Forms(lambda full: [PATH_SCHEMA, full])]
BatchingField = Annotated[Batching, BeforeValidator(_batching_forms), _Forms(lambda full: [{"enum": ["auto", "none"]}, full])]
ShapeField = Annotated[ShapeRange, BeforeValidator(_shape_forms), _Forms(lambda full: [_DIMS_SCHEMA, full])]
InstancesField = Annotated[tuple[InstanceGroup, ...], BeforeValidator(_instance_forms), _Forms(lambda full: [full["items"], full | {"minItems": 1}])]


def listed(sizes: list[int]) -> str:
    """`4`, `4 and 8`, `4, 8 and 16`."""
    texts = [str(size) for size in sizes]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
