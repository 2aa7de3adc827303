"""Copies of a model, and where they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationInfo, ValidatorFunctionWrapHandler, field_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.strict import Forms, Strict, listed, setting
from tritongen.spec.values import (
    PositiveInt,
    Size32,
    describe,
    problem,
    together,
)

InstanceKind = Literal["auto", "gpu", "cpu", "model"]


class InstanceGroup(Strict, json_schema_extra={"examples": [{"kind": "gpu", "count": 2, "gpus": [0, 1]}]}):
    """Copies of a model that run side by side, and where. Becomes one entry of instance_group."""

    kind: InstanceKind = setting(
        "auto: on GPUs where there are some, else on the CPU. gpu, cpu: only there. model: the backend decides.",
        default="auto",
        sets="instance_group.kind",
        why="to have a server without the GPU refuse the model, where it would run a hundred times slower on the CPU without a word",
    )
    count: PositiveInt = setting(
        "Copies on each GPU (or on the CPU). Each holds its own weights.",
        default=1,
        sets="instance_group.count",
        why="to fill a device that a single copy leaves idle while data is copied or the CPU works",
    )
    gpus: tuple[Size32, ...] = setting(
        "GPU numbers to use, with kind: gpu only. Default: every GPU, each with count copies.",
        default=(),
        sets="instance_group.gpus",
        why="to give models their own GPUs on a host with several",
    )

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


InstancesField = Annotated[tuple[InstanceGroup, ...], BeforeValidator(_instance_forms), Forms(lambda full: [full["items"], full | {"minItems": 1}])]
