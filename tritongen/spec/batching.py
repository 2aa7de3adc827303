"""How requests are put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, ValidatorFunctionWrapHandler, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from tritongen.spec.strict import Forms, Strict, listed, setting
from tritongen.spec.units import Duration
from tritongen.spec.values import (
    INT32_MAX,
    Count32,
    Flag,
    PositiveInt,
    Size32,
    describe,
    order_problems,
    problem,
    together,
)

Preferred = Annotated[
    tuple[PositiveInt, ...] | None,
    WithJsonSchema({"anyOf": [{"enum": ["auto", "none"]}, {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": INT32_MAX}}]}),
]
"""None where the sizes are to be decided, which is written `auto`; `none` is no size at all."""


_POOL = "false where the server's pool of pinned memory is needed for others"


class PinnedMemory(Strict, json_schema_extra={"examples": [{"input": True, "output": False}]}):
    """Whether data passes through pinned memory, from which a GPU copies faster. Matters for instances on a GPU only."""

    input: Flag = setting("Inputs. Default: true.", default=True, sets="optimization.input_pinned_memory", why=_POOL)
    output: Flag = setting("Outputs. Default: true.", default=True, sets="optimization.output_pinned_memory", why=_POOL)


class Batching(Strict, json_schema_extra={"examples": [{"max": 16, "preferred": [4, 8, 16], "max_queue_delay": "2ms"}]}):
    """How requests are put together. Every value that is left out is decided from the model: it batches where each input and output allows it."""

    max: Size32 | None = setting(
        "Most rows in one execution; 0 turns batching off. Left out: decided from the model's inputs and outputs.",
        sets="max_batch_size",
        why="to bound the memory and the time of one execution, or to take the largest batch that clients send",
    )
    preferred: Preferred = setting(
        "Batch sizes to form when requests are queued: a list, ascending, none above max; none; or auto. Default: auto, which is none, so that Triton forms"
        " whatever is there up to max, except where few sizes are fast: then 2, 4, 8 and so on up to max.",
        sets="dynamic_batching.preferred_batch_size",
        why="where few sizes are fast (several TensorRT profiles, CUDA graphs, convolutions on the CUDA provider); else Triton's makers advise against it",
    )
    max_queue_delay_us: Duration = setting(
        "How long the oldest request may wait for a fuller batch, with a unit such as 500us or 2ms. Default: no waiting.",
        default=0,
        alias="max_queue_delay",
        sets="dynamic_batching.max_queue_delay_microseconds",
        why="when throughput counts more than the latency of a single request; at low load each request waits this long for nothing",
    )
    eager: Flag = setting(
        "Whether the inputs of a batch are gathered while it still grows. Default: false.",
        default=False,
        sets="optimization.eager_batching",
        why="where copying the inputs takes as long as the model, and several copies wait for work",
    )
    pinned_memory: PinnedMemory = setting(
        "Whether data passes through pinned memory on its way to and from a GPU.",
        default_factory=PinnedMemory,
        sets="optimization.input_pinned_memory and optimization.output_pinned_memory",
        why="to keep a model with large tensors from using up the server's pool of pinned memory",
    )
    gather_kernel_buffer_threshold: Count32 | None = setting(
        "From how many request buffers on a GPU kernel gathers them, in place of one copy for each. Default: Triton's own, no kernel.",
        sets="optimization.gather_kernel_buffer_threshold",
        why="with many small inputs that are in GPU memory already",
    )

    @field_validator("preferred", mode="wrap")
    @classmethod
    def _preferred_fit(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if value in ("auto", "none"):
            return None if value == "auto" else ()
        if isinstance(value, str):
            raise problem(f"expected auto, none or a list of batch sizes, got {describe(value)}", code="TG010", hint="write preferred: [4, 8], or none")
        return together(value, handler, lambda sizes, _: _preferred_problems(sizes, info.data.get("max")))


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
            beside=("max",),
        )
        return
    if above:
        fitting = [size for size in ascending if size not in above]
        yield problem(
            f"{listed(above)} {'is' if len(above) == 1 else 'are'} above max: {most}",
            code="TG015",
            consequence="Triton refuses to load a model whose preferred batch size is above max_batch_size",
            hint=f"raise max to {max(above)}{rewrite}, or {f'prefer {fitting}' if fitting else 'remove preferred'}",
            beside=("max",),
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


BatchingField = Annotated[Batching, BeforeValidator(_batching_forms), Forms(lambda full: [{"enum": ["auto", "none"]}, full])]
