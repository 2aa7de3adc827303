"""The sizes of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo, field_validator
from pydantic.json_schema import JsonSchemaValue

from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.values import (
    INT32_MAX,
    Dims,
    describe,
    problem,
    raise_all,
    whole_numbers,
)


class ShapeRange(Strict, json_schema_extra={"examples": [{"min": [16], "opt": [128], "max": [512]}]}):
    """The sizes of one input, without the batch dimension where there is one: smallest, usual, largest. For TensorRT profiles, warmup, generated requests."""

    min: Dims = setting("Smallest size of each dimension.", default=..., sets="trt_profile_min_shapes", why="it is the smallest request that is fast")
    opt: Dims = setting(
        "The size that kernels are tuned for.", default=..., sets="trt_profile_opt_shapes and the warmup samples", why="it is the request that comes most often"
    )
    max: Dims = setting("Largest size of each dimension.", default=..., sets="trt_profile_max_shapes", why="it is the largest request that is fast")

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
                hint="give min, opt and max the same number of dimensions",
                beside=(name,),
            )
        problems = [
            problem(
                f"dimension {index + 1} of {info.field_name} is {high}, below {name}: {low}",
                code="TG015",
                consequence="TensorRT refuses a profile in which min <= opt <= max does not hold",
                hint="order each dimension so that min <= opt <= max",
                beside=(name,),
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
            raise problem("the list of dimensions is empty", hint="give each dimension, or leave the tensor out")
        dims = whole_numbers(value, most=INT32_MAX)
        return {"min": dims, "opt": dims, "max": dims}
    if not isinstance(value, Mapping | ShapeRange):
        raise problem(
            f"expected a list of dimensions or a mapping with min, opt and max, got {describe(value)}",
            code="TG010",
            hint="write [3, 48, 320]: all dimensions but that of the batch",
        )
    return value


_DIMS_SCHEMA: JsonSchemaValue = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": INT32_MAX}}

ShapeField = Annotated[ShapeRange, BeforeValidator(_shape_forms), Forms(lambda full: [_DIMS_SCHEMA, full])]
