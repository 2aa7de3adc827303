"""The settings of the tensorrt backend: CUDA graphs for the sizes that are formed, streams, and the memory of execution contexts.

Source: tensorrt_backend/src/instance_state.cc and model_state.cc; section on `optimization.cuda` of model_config.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tritongen.batching import Batching
from tritongen.modelconfig import ModelOptimizationPolicy
from tritongen.render.findings import Findings, Key
from tritongen.render.tensors import Sizes
from tritongen.signature import Signature
from tritongen.spec import ModelSpec

_STRATEGY = "execution_context_allocation_strategy"
_PRIORITIES = {"max": ModelOptimizationPolicy.PRIORITY_MAX, "min": ModelOptimizationPolicy.PRIORITY_MIN}


def add_tensorrt(config: Any, model: ModelSpec, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings) -> None:
    """Write what `tensorrt` says. Graphs need the size of every input; where one is not known, that is reported as the plan's own problem."""
    settings = model.tensorrt
    _check_profiles(model, findings)
    if settings.cuda_graphs is not None:
        config.optimization.cuda.graphs = True
        if all(tensor.name in sizes for tensor in signature.inputs):
            _add_graphs(config.optimization.cuda, signature, batching, sizes, lower_bounds=settings.cuda_graphs.lower_bounds)
            if settings.cuda_graphs.lower_bounds and all(_is_exact(spec) for spec in config.optimization.cuda.graph_spec):
                findings.idle(
                    ("tensorrt", "cuda_graphs", "lower_bounds"),
                    "lower_bounds has no effect: every size that can be asked for has a graph of its own",
                    hint="write cuda_graphs: true",
                )
    if settings.busy_wait_events:
        config.optimization.cuda.busy_wait_events = True
    if settings.output_copy_stream:
        config.optimization.cuda.output_copy_stream = True
    if settings.stream_priority is not None:
        config.optimization.priority = _PRIORITIES[settings.stream_priority]
    if settings.execution_context_allocation_strategy is not None:
        config.parameters[_STRATEGY].string_value = settings.execution_context_allocation_strategy.upper()


def _check_profiles(model: ModelSpec, findings: Findings) -> None:
    """Say where copies are to use profiles of which the spec says nothing: `shapes` and `batching` describe one profile, number 0."""
    for index, group in enumerate(model.instances):
        if others := [profile for profile in group.profiles if profile != 0]:
            named = f"profile{'s' * (len(others) > 1)} {', '.join(map(str, others))}"
            findings.warning(
                "TG122",
                ("instances", index, "profiles"),
                f"the spec describes one profile of the plan, number 0, and not {named}",
                consequence=f"Triton refuses to load a plan without {named}; for which sizes {'they are' if len(others) > 1 else 'it is'} is not known here",
                hint="remove profiles, or bring a plan of your own that has them, with preferred batch sizes that fit them",
            )


def _add_graphs(cuda: Any, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], *, lower_bounds: bool) -> None:
    """One graph for each size that the batching decision forms.

    Triton alone captures the sizes 1, preferred and max only where there is a dynamic batcher, and picks the profile's opt sizes; stated, they are those that
    are warmed up. A lower bound lets a graph serve all that is smaller, down to the next smaller graph, padded.
    """
    formed = batching.warmed if batching.max_batch_size else (0,)
    below = [0, *formed] if batching.max_batch_size else [-1, 0]
    for previous, size in pairwise(below):
        spec = cuda.graph_spec.add(batch_size=size)
        _add_dims(spec.input, {tensor.name: sizes[tensor.name].usual for tensor in signature.inputs})
        if lower_bounds:
            spec.graph_lower_bound.batch_size = previous + 1
            _add_dims(spec.graph_lower_bound.input, {tensor.name: sizes[tensor.name].minimum for tensor in signature.inputs})


def _is_exact(spec: Any) -> bool:
    """Whether a graph's lower bound is its own size."""
    bound = spec.graph_lower_bound
    return bound.batch_size == spec.batch_size and all(bound.input[name].dim == shape.dim for name, shape in spec.input.items())


def _add_dims(target: Any, dims: Mapping[str, tuple[int, ...]]) -> None:
    for name, values in dims.items():
        target[name].dim.extend(values)


def spec_keys() -> Iterator[tuple[Key, Key]]:
    """(path in the config, key of the spec) of everything that is written here."""
    for field in ("busy_wait_events", "output_copy_stream"):
        yield ("optimization", "cuda", field), ("tensorrt", field)
    for field in ("graphs", "graph_spec"):
        yield ("optimization", "cuda", field), ("tensorrt", "cuda_graphs")
    yield ("optimization", "priority"), ("tensorrt", "stream_priority")
    yield ("parameters", _STRATEGY), ("tensorrt", _STRATEGY)
