"""How a TensorRT plan is built from the ONNX file: its profiles, its shape tensors, and what the builder is told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, ValidatorFunctionWrapHandler, WithJsonSchema, field_validator

from tritongen.spec.libraries import PluginPath
from tritongen.spec.shapes import ShapeField, ShapeRange
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import SomeSize
from tritongen.spec.values import INT64_MAX, Flag, PositiveInt, describe, order_problems, problem, together

HardwareCompatibility = Literal["none", "ampere_plus", "same_compute_capability"]

_CAPABILITY = r"(?:[1-9]|1[0-9])\.[0-9]"


def _check_capability(value: object) -> str:
    """A GPU's compute capability, as Triton writes it."""
    if not isinstance(value, str) or not re.fullmatch(_CAPABILITY, value):
        quoted = f'write "{value}", in quotes' if isinstance(value, float) and re.fullmatch(_CAPABILITY, str(value)) else 'write it in quotes, such as "8.6"'
        raise problem(
            f'expected a compute capability such as "8.6" as a text, got {describe(value)}',
            code="TG010",
            hint=f"{quoted}; nvidia-smi --query-gpu=compute_cap --format=csv prints that of a machine's GPUs",
        )
    return value


ComputeCapability = Annotated[str, BeforeValidator(_check_capability), WithJsonSchema({"type": "string", "pattern": f"^{_CAPABILITY}$"})]

Values = Annotated[tuple[Annotated[int, Field(strict=True, ge=-INT64_MAX, le=INT64_MAX)], ...], Field(min_length=1)]


class ValueRange(Strict, json_schema_extra={"examples": [{"min": [32, 32], "opt": [224, 224], "max": [512, 512]}]}):
    """The values of a shape tensor: smallest, usual, largest."""

    min: Values = setting("Smallest value of each element.", default=..., sets="the profile of the plan", why="requests with smaller ones are refused")
    opt: Values = setting(
        "The values that kernels are tuned for; those of the warmup samples, too, where samples gives none.",
        default=...,
        sets="the profile of the plan and the warmup samples",
        why="it is the request that comes most often",
    )
    max: Values = setting("Largest value of each element.", default=..., sets="the profile of the plan", why="requests with larger ones are refused")

    @field_validator("opt", "max")
    @classmethod
    def _ascending(cls, values: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        name = next((name for name in ("opt", "min") if name != info.field_name and info.data.get(name) is not None), None)
        if name is not None and (len(values) != len(info.data[name]) or any(low > high for low, high in zip(info.data[name], values, strict=True))):
            raise problem(
                f"{info.field_name} is {list(values)} and {name} is {list(info.data[name])}",
                code="TG015",
                consequence="TensorRT refuses a profile in which min <= opt <= max does not hold",
                hint="give min, opt and max the same number of values, each so that min <= opt <= max",
                beside=(name,),
            )
        return values


class PlanProfile(Strict, json_schema_extra={"examples": [{"batch": 8, "shapes": {"input_ids": {"min": [1], "opt": [64], "max": [128]}}}]}):
    """One optimization profile: the sizes that its kernels are tuned for. Every profile takes batches from 1 to max."""

    batch: PositiveInt | None = setting(
        "The batch size that kernels are tuned for. Default: the largest preferred size, or max.",
        sets="opt of the batch dimension",
        why="kernels for one size are slow at others",
    )
    shapes: Mapping[str, ShapeField] = setting(
        "Sizes of inputs in this profile, as in the model's shapes; those that are left out are taken from there. An input that all profiles name"
        " needs no shapes.",
        default_factory=dict,
        sets="min, opt and max of the other dimensions",
        why="buckets of lengths: short requests are then not run by kernels for long ones",
    )


def spanned(profiles: Sequence[PlanProfile]) -> dict[str, ShapeRange]:
    """For every input that all profiles give sizes for, the range from the smallest to the largest of them; its usual size is that of the first profile.

    Inputs whose number of dimensions is not the same in all profiles are left out: one of the two does not fit the model, which is said there.
    """
    found = {}
    for name in profiles[0].shapes if profiles else ():
        given = [profile.shapes[name] for profile in profiles if name in profile.shapes]
        if len(given) == len(profiles) and len({len(shape.opt) for shape in given}) == 1:
            low, high = (tuple(map(pick, zip(*sizes, strict=True))) for pick, sizes in ((min, [s.min for s in given]), (max, [s.max for s in given])))
            found[name] = ShapeRange(min=low, opt=given[0].opt, max=high)
    return found


class PlanBuild(
    Strict, json_schema_extra={"examples": [{"max_workspace_size": "4GiB", "builder_optimization_level": 4, "compute_capabilities": ["8.6", "9.0"]}]}
):
    """What the builder is told."""

    max_workspace_size: SomeSize | None = setting(
        "Most scratch memory of a layer. Default: all memory of the GPU.",
        sets="the builder's workspace pool",
        why="less where other models need the memory of the GPU; too little rules fast kernels out",
    )
    builder_optimization_level: Annotated[int, Field(strict=True, ge=0, le=5)] | None = setting(
        "How long TensorRT looks for fast kernels, from 0 to 5. Default: 3.",
        sets="the builder's optimization level",
        why="lower for a faster build, higher for a faster plan; 0 ignores the timing cache",
    )
    compute_capabilities: tuple[ComputeCapability, ...] = setting(
        'The kinds of GPU that serve the model, such as ["8.6", "9.0"]: one plan is built for each, on such a GPU.'
        " Default: one plan, for the GPU that builds it.",
        default=(),
        sets="cc_model_filenames",
        why="a plan is fast, and by default only there at all, on the kind of GPU that built it",
    )
    hardware_compatibility: HardwareCompatibility = setting(
        "Which other GPUs load the plan: none, ampere_plus for all from Ampere on, same_compute_capability for all of the same compute capability.",
        default="none",
        sets="the builder's hardware compatibility level",
        why="one plan for mixed GPUs, at the cost of some speed",
    )
    version_compatible: Flag = setting(
        "Whether later versions of TensorRT of the same major load the plan; a rendered deployment has the option of the server that this needs.",
        default=False,
        sets="the builder's flag VERSION_COMPATIBLE",
        why="plans that outlive an update of the container",
    )
    refit: Flag = setting(
        "Whether weights can be replaced in the plan.",
        default=False,
        sets="the builder's flag REFIT",
        why="new weights without a build, by a tool of yours: Triton itself replaces none",
    )
    strip_weights: Flag = setting(
        "Whether weights are left out of the plan, to be put back by a tool of yours: Triton itself puts none back.",
        default=False,
        sets="the builder's flag STRIP_PLAN",
        why="small plans to ship, where the weights are on the target already",
    )
    plugins: tuple[PluginPath, ...] = setting(
        "Libraries with TensorRT plugins: absolute paths on the machine that builds, or plain file names that the loader finds there. A rendered"
        " deployment has the option by which the server loads them.",
        default=(),
        sets="what is loaded before the ONNX file is read",
        why="for operators that TensorRT has only by a plugin of yours",
    )
    gpu_fallback: Flag = setting(
        "Whether layers that a deep learning accelerator cannot run go to the GPU; with instances.dla only.",
        default=True,
        sets="the builder's flag GPU_FALLBACK",
        why="false to be told which layers those are: the build then fails",
    )

    @field_validator("compute_capabilities", mode="wrap")
    @classmethod
    def _each_once(cls, value: object, handler: ValidatorFunctionWrapHandler) -> Any:
        def judge(found: list[str], _: bool) -> list[Any]:
            numbers = [tuple(map(int, each.split("."))) for each in found]
            codes = [major * 10 + minor for major, minor in numbers]
            if order_problems(codes, ""):
                right = [f"{code // 10}.{code % 10}" for code in sorted(set(codes))]
                return [problem("compute capabilities must ascend, each once", hint=f"write {right}".replace("'", '"'))]
            return []

        return together(value, handler, judge)
