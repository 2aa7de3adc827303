"""Copies of a model, and where they run."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, ValidatorFunctionWrapHandler, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.strict import Forms, Strict, listed, setting
from tritongen.spec.values import (
    CONTROL_CHARACTERS,
    Count32,
    Flag,
    PositiveInt,
    Size32,
    describe,
    order_problems,
    problem,
    together,
)

InstanceKind = Literal["auto", "gpu", "cpu", "model"]


def _check_gpu(value: object) -> object:
    """A GPU's number; MIG devices and GPUs have names too, which Triton does not take."""
    if isinstance(value, str) and not value.strip().isdigit():
        raise problem(
            f"a GPU is a number, and this is {describe(value)}",
            code="TG010",
            consequence="Triton numbers the devices that the container is given, MIG devices included, from 0",
            hint=f"give the device to the container (docker run --gpus 'device={value[:60]}') and write its number there, such as 0",
        )
    return value


GpuNumber = Annotated[Size32, BeforeValidator(_check_gpu)]


def _check_option_name(value: str, *, end: str, option: str) -> str:
    """A name that an option of the server can state."""
    if not value or end in value or CONTROL_CHARACTERS.search(value):
        raise problem(
            f"the name {value[:60]!r} cannot be written in the server's {option}",
            consequence=f"the server ends the name at the first {end!r}",
            hint=f"write a name without {end!r}, the same that the option has",
        )
    return value


PolicyName = Annotated[
    str,
    AfterValidator(functools.partial(_check_option_name, end=",", option="--host-policy=<name>,<setting>=<value>")),
    WithJsonSchema({"type": "string", "pattern": r"^[^,\x00-\x1f\x7f]+$"}),
]
ResourceName = Annotated[
    str,
    AfterValidator(functools.partial(_check_option_name, end=":", option="--rate-limit-resource=<name>:<count>:<device>")),
    WithJsonSchema({"type": "string", "pattern": r"^[^:\x00-\x1f\x7f]+$"}),
]


class Resource(Strict, json_schema_extra={"examples": [{"name": "gpu_memory", "count": 4}]}):
    """Something of which there is only so much, and how much of it one execution takes. Becomes one entry of rate_limiter.resources."""

    name: ResourceName = setting(
        "Its name; models that share it give it the same one.",
        default=...,
        sets="instance_group.rate_limiter.resources.name",
        why="the server counts what runs by this name",
    )
    count: Count32 = setting(
        "How many of it one execution takes.",
        default=1,
        sets="instance_group.rate_limiter.resources.count",
        why="for a model that takes more than others",
    )
    is_global: Flag = setting(
        "Whether all devices share it; else each has its own. Default: false.",
        default=False,
        alias="global",
        sets="instance_group.rate_limiter.resources.global",
        why="for what the host has only one of, such as a licence",
    )


class RateLimiter(Strict, json_schema_extra={"examples": [{"resources": [{"name": "gpu_memory", "count": 4}], "priority": 2}]}):
    """What a copy must have before it may run, with the server's option --rate-limit=execution_count. Becomes rate_limiter."""

    resources: tuple[Resource, ...] = setting(
        "What one execution takes. Default: nothing.",
        default=(),
        sets="instance_group.rate_limiter.resources",
        why="copies whose resources are taken wait",
    )
    priority: Count32 | None = setting(
        "How often the copy has its turn: one of priority 2 half as often as one of 1. Default: 1.",
        sets="instance_group.rate_limiter.priority",
        why="to let one model run more often than another",
    )


class InstanceGroup(Strict, json_schema_extra={"examples": [{"kind": "gpu", "count": 2, "gpus": [0, 1]}]}):
    """Copies of a model that run side by side, and where. Becomes one entry of instance_group."""

    kind: InstanceKind = setting(
        "auto: on GPUs where there are some, else on the CPU. gpu, cpu: only there. model: the backend decides; onnxruntime takes the CPU.",
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
    gpus: tuple[GpuNumber, ...] = setting(
        "GPU numbers to use, with kind: gpu only. Default: every GPU, each with count copies.",
        default=(),
        sets="instance_group.gpus",
        why="to give models their own GPUs on a host with several",
    )
    profiles: tuple[Size32, ...] = setting(
        "Numbers of the optimization profiles of a TensorRT plan that these copies use, with backend: tensorrt only. Default: all of the plan's.",
        default=(),
        sets="instance_group.profile",
        why="a plan with several profiles is fast at several sizes, and Triton uses those that are listed here",
    )
    dla: Size32 | None = setting(
        "Number of the deep learning accelerator that a TensorRT plan was built for. Default: none.",
        sets="instance_group.secondary_devices",
        why="on Jetson and Drive, to leave the GPU to other models",
    )
    host_policy: PolicyName | None = setting(
        "Name of a policy of the server's option --host-policy: NUMA node and CPU cores. Default: none.",
        sets="instance_group.host_policy",
        why="on hosts with several sockets, to keep the threads of a copy beside its GPU",
    )
    rate_limiter: RateLimiter | None = setting(
        "What a copy must have before it may run, and its priority; the server looks at it with --rate-limit=execution_count only. Default: nothing.",
        sets="instance_group.rate_limiter",
        why="to keep models that share a GPU from running at the same time",
    )

    @field_validator("gpus", mode="wrap")
    @classmethod
    def _only_with_gpu(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        return together(value, handler, lambda gpus, _: _gpu_problems(gpus, info.data.get("kind", "gpu")))

    @field_validator("profiles", mode="wrap")
    @classmethod
    def _each_profile_once(cls, value: object, handler: ValidatorFunctionWrapHandler) -> Any:
        return together(value, handler, lambda profiles, _: order_problems(profiles, "profiles"))


def _gpu_problems(gpus: list[int], kind: str) -> Iterator[PydanticCustomError]:
    if gpus and kind != "gpu":
        consequence = f"Triton refuses to load a model with gpus in a group of kind {kind}"
        if kind == "auto":
            consequence = "Triton reads kind auto as cpu where a listed GPU is missing, and then refuses the model"
        yield problem(
            f"gpus is for kind: gpu, and the kind is {kind}",
            code="TG015",
            consequence=consequence,
            hint="write kind: gpu, or remove gpus",
            beside=("kind",),
        )
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
