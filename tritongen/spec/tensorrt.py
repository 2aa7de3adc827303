"""Settings of the tensorrt backend, which serves plans. Source: tensorrt_backend/src/instance_state.cc and model_state.cc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator

from tritongen.spec.plans import PlanBuild, PlanProfile, ValueRange
from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.values import Flag, describe, problem

StreamPriority = Literal["max", "min"]
ContextAllocation = Literal["static", "on_profile_change"]


class CudaGraphs(Strict, json_schema_extra={"examples": [{"lower_bounds": True}]}):
    """CUDA graphs: for batches of 1, of each preferred size and of max, at the opt sizes of `shapes` and of each profile."""

    lower_bounds: Flag = setting(
        "Whether a graph also serves what is smaller, padded: batch sizes down to the next smaller graph's, and the min sizes of shapes or of the profile.",
        default=False,
        sets="optimization.cuda.graph_spec.graph_lower_bound",
        why="a request whose size has no graph is launched kernel by kernel; with bounds only one above the opt sizes is",
    )


def _graph_forms(value: object) -> object:
    """`true` as graphs with nothing said about them, `false` as none."""
    if isinstance(value, bool):
        return {} if value else None
    if not isinstance(value, Mapping | CudaGraphs):
        raise problem(
            f"expected true, false or a mapping with lower_bounds, got {describe(value)}", code="TG010", hint="write cuda_graphs: true, without quotes"
        )
    return value


CudaGraphsField = Annotated[CudaGraphs | None, BeforeValidator(_graph_forms), Forms(lambda full: [{"type": "boolean"}, full])]


class TensorRT(Strict, json_schema_extra={"examples": [{"cuda_graphs": {"lower_bounds": True}, "stream_priority": "max"}]}):
    """How plans are built, and settings of Triton's tensorrt backend; with backend tensorrt only."""

    profiles: tuple[PlanProfile, ...] = setting(
        "The plan's optimization profiles, in the order of their numbers. Default: one for each preferred batch size that the spec names, else one.",
        default=(),
        sets="the profiles of the plan, and instance_group.profile",
        why="a request is run by the profile whose sizes are nearest; each profile that a copy uses takes memory of its own",
    )
    shape_tensors: Mapping[str, ValueRange] = setting(
        "Inputs whose values are sizes that the network works with, by name: the range of their values.",
        default_factory=dict,
        sets="input.is_shape_tensor, and the profiles of the plan",
        why="TensorRT builds nothing for sizes that it does not know",
    )
    build: PlanBuild = setting(
        "What the builder is told: workspace, optimization level, kinds of GPU, compatibility, plugins.",
        default_factory=PlanBuild,
        sets="how the plan is built",
        why="to tune the build; what is left out stays as TensorRT has it",
    )

    cuda_graphs: CudaGraphsField = setting(
        "Whether the plan's kernels are captured as CUDA graphs while loading, one for batches of 1, of each preferred size and of max: true,"
        " false, or a mapping. Default: false.",
        sets="optimization.cuda.graphs and graph_spec",
        why="small and fast networks spend most of their time launching kernels; Triton alone would capture sizes 1 and max only",
    )
    busy_wait_events: Flag | None = setting(
        "Whether a CPU core spins while it waits for the GPU. Default: false.",
        sets="optimization.cuda.busy_wait_events",
        why="for the last microseconds of latency, at the cost of a core",
    )
    output_copy_stream: Flag | None = setting(
        "Whether outputs are copied in a stream of their own, with a second set of buffers. Default: false.",
        sets="optimization.cuda.output_copy_stream",
        why="where copying large outputs keeps the next batch waiting",
    )
    stream_priority: StreamPriority | None = setting(
        "The priority of the model's CUDA streams: max is served before the others on the GPU, min after them. Default: the one between.",
        sets="optimization.priority",
        why="when a model that must be fast shares its GPU",
    )
    execution_context_allocation_strategy: ContextAllocation | None = setting(
        "static takes the memory of the largest profile at once; on_profile_change takes what each profile needs. Default: static.",
        sets="parameters.execution_context_allocation_strategy",
        why="on_profile_change saves memory where profiles differ much, and costs time at each change",
    )
