"""How a model's file is changed before it is served, and what is proved about it.

A rewrite never touches the source: its result goes into the repository in the source's place. The order is fixed: sizes written in, the batch made variable,
the graph optimised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.values import describe, problem

OptimizationLevel = Literal["basic", "extended", "all"]
DEFAULT_TOLERANCE = 1e-5


class Optimization(Strict, json_schema_extra={"examples": [{"level": "extended", "tolerance": 0.001}]}):
    """ONNX Runtime's own optimisation of the graph, made once at render and not at every load. Its answers are compared with the original's."""

    level: OptimizationLevel = setting(
        "basic keeps to ONNX's own operators and holds for every device. extended fuses operators for the CPU. all also lays the graph out for one processor.",
        default="basic",
        sets="the graph in the version folder",
        why="extended where the model is served by the onnxruntime backend on CPUs; all where the machine that renders is of the kind that serves",
    )
    hardware: str = setting(
        "The machine that level: all is made for, in your words; it goes into the record of how the file was made.",
        default="",
        validate_default=True,
        sets="nothing in the model",
        why="level: all must be rendered on such a machine, and whoever finds the file must know on which",
    )
    tolerance: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] = setting(
        "The largest difference from the original's answers that is accepted, as a part of an answer's largest value. 16-bit floats get what they resolve.",
        default=DEFAULT_TOLERANCE,
        sets="nothing in the model; what differs by more is refused",
        why="where fused operators round otherwise and you know that it does not matter",
    )

    @field_validator("hardware")
    @classmethod
    def _layout_is_for_a_machine(cls, hardware: str, info: ValidationInfo) -> str:
        if info.data.get("level") == "all" and not hardware.strip():
            raise problem(
                "level: all lays the graph out for the machine that renders, and hardware does not say which that is",
                code="TG009",
                consequence="on another processor the graph runs slowly, or not at all",
                hint="add hardware: (such as AVX-512 servers), or write level: extended",
            )
        return hardware


def _optimize_forms(value: object) -> object:
    """`none` as nothing, `offline` as the mapping that it stands for."""
    if value == "none":
        return None
    if value == "offline":
        return {"level": "basic"}
    if value is None or isinstance(value, Mapping | Optimization):
        return value
    levels = ("basic", "extended", "all")
    hint = f"write optimize: {{level: {value}}}" if value in levels else "write optimize: none, optimize: offline or optimize: {level: extended}"
    raise problem(f"expected none, offline or a mapping with level, hardware and tolerance, got {describe(value)}", code="TG010", hint=hint)


OptimizeField = Annotated[Optimization | None, BeforeValidator(_optimize_forms), Forms(lambda full: [{"enum": ["none", "offline"]}, full])]


def _check_prove(value: object) -> object:
    """`auto`, true or false."""
    if value != "auto" and not isinstance(value, bool):
        raise problem(f"expected auto, true or false, got {describe(value)}", code="TG010", hint="write prove: auto, prove: true or prove: false")
    return value


ProveField = Annotated[Literal["auto"] | bool, BeforeValidator(_check_prove), WithJsonSchema({"anyOf": [{"enum": ["auto"]}, {"type": "boolean"}]})]
Switch = Annotated[bool, Field(strict=True)]


class Rewriting(Strict):
    """The keys that change a model's file, and the one that proves it."""

    freeze: Switch = setting(
        "Writes the sizes of shapes into the model, so that these dimensions are no longer variable; each input has one size there. Default: false.",
        default=False,
        sets="the graph in the version folder, and so the dims of input and output",
        why="TensorRT, CUDA graphs and memory planning do best with fixed shapes, and Triton then refuses other sizes itself",
    )
    rebatch: Switch = setting(
        "Makes the fixed leading dimension of every input and output variable, also where nodes pin it, and proves the result row by row. Default: false.",
        default=False,
        sets="the graph in the version folder, and so max_batch_size",
        why="for a model that was exported with a batch of 1: without it Triton runs each request alone",
    )
    prove: ProveField = setting(
        "Whether the model is run at batch sizes 1, 2, 3 and the largest, each row compared with the row alone: auto (where it batches, ONNX Runtime is"
        " installed and it is below --prove-limit), true (it is an error where that is not possible) or false.",
        default="auto",
        sets="nothing in the model; a batch axis that is none is refused",
        why="true in CI, so that no model goes out unproven; false for a model that does not answer the same twice",
    )
    optimize: OptimizeField = setting(
        "Saves ONNX Runtime's optimised graph: none (the default), offline (level basic), or a mapping.",
        sets="the graph in the version folder",
        why="loads get faster; the result depends on the version of onnxruntime that renders, which is recorded in config.pbtxt",
    )
