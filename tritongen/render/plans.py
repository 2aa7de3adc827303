"""The settings of the tensorrt backend: CUDA graphs for the sizes that are warmed up, streams, and the memory of execution contexts.

Source: tensorrt_backend/src/instance_state.cc and model_state.cc; section on `optimization.cuda` of model_config.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from tritongen.batching import Batching
from tritongen.modelconfig import ModelOptimizationPolicy
from tritongen.recipe import Profile
from tritongen.releases import Release
from tritongen.render.backend_settings import say_needed_settings
from tritongen.render.backends import BACKENDS
from tritongen.render.findings import Findings, Key
from tritongen.render.placement import placed_groups
from tritongen.render.tensors import Sizes
from tritongen.rules.plan_ranges import used_profiles
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.spec.plans import PlanBuild
from tritongen.spec.server import Server
from tritongen.spec.tensorrt import CudaGraphs

_AMPERE, _BLACKWELL = (8, 0), (10, 0)
_DLA_CORES = 2
_STRATEGY = "execution_context_allocation_strategy"
_PRIORITIES = {"max": ModelOptimizationPolicy.PRIORITY_MAX, "min": ModelOptimizationPolicy.PRIORITY_MIN}


def add_tensorrt(
    config: Any,
    model: ModelSpec,
    signature: Signature,
    batching: Batching,
    sizes: Mapping[str, Sizes],
    profiles: Sequence[Profile],
    release: Release | None,
    server: Server | None,
    findings: Findings,
) -> None:
    """Write what `tensorrt` says. Graphs need the size of every input; where one is not known, that is reported as the plan's own problem.

    `profiles`: those of the plan; none where it needs none, or where they are not known. `server`: what the spec says of it; None where that is not known.
    """
    settings = model.tensorrt
    _check_profiles(model, findings)
    _say_equal(profiles, findings)
    _check_gpus(settings.build, release, findings)
    _check_dla(model, findings)
    say_needed_settings(settings.build, server, findings)
    _say_stripped(settings.build, findings)
    for capability in settings.build.compute_capabilities:
        config.cc_model_filenames[capability] = plan_name(capability)
    for tensor in config.input:
        if tensor.name in settings.shape_tensors:
            tensor.is_shape_tensor = True
    if settings.cuda_graphs is not None:
        config.optimization.cuda.graphs = True
        if all(tensor.name in sizes for tensor in signature.inputs):
            used = [profiles[number] for number in used_profiles(config, len(profiles))] if profiles else []
            graphs = _graph_sizes(signature, batching, sizes, used)
            _add_graphs(config.optimization.cuda, batching, graphs, lower_bounds=settings.cuda_graphs.lower_bounds)
            if settings.cuda_graphs.lower_bounds and all(_is_exact(spec) for spec in config.optimization.cuda.graph_spec):
                findings.idle(
                    ("tensorrt", "cuda_graphs", "lower_bounds"),
                    "lower_bounds has no effect: every size that can be asked for has a graph of its own",
                    hint="write cuda_graphs: true",
                )
        _say_gaps(batching, settings.cuda_graphs, findings)
    if settings.busy_wait_events:
        config.optimization.cuda.busy_wait_events = True
    if settings.output_copy_stream:
        config.optimization.cuda.output_copy_stream = True
    if settings.stream_priority is not None:
        config.optimization.priority = _PRIORITIES[settings.stream_priority]
    if settings.execution_context_allocation_strategy is not None:
        config.parameters[_STRATEGY].string_value = settings.execution_context_allocation_strategy.upper()


def _say_gaps(batching: Batching, graphs: CudaGraphs, findings: Findings) -> None:
    """Sizes that the batcher forms and no graph serves: without preferred ones, it forms whatever is there up to max."""
    between = range(2, batching.max_batch_size)
    if batching.dynamic and not batching.preferred and between and not graphs.lower_bounds:
        sizes = "2" if len(between) == 1 else f"2 to {between[-1]}"
        findings.advice(
            "TG183",
            ("tensorrt", "cuda_graphs"),
            f"there are graphs for batches of 1 and {batching.max_batch_size} only, and with preferred: none ({findings.locate(('batching', 'preferred'))})"
            f" batches of {sizes} are formed, too",
            consequence="their kernels are launched one by one, as without graphs",
            hint="leave preferred out, so that sizes with a graph are formed; or write cuda_graphs: {lower_bounds: true}",
        )


def plan_name(compute_capability: str) -> str:
    """The file name of a plan: Triton's own, or that of the plan for one kind of GPU."""
    usual = PurePosixPath(BACKENDS["tensorrt"].filename)
    return f"{usual.stem}.sm{compute_capability.replace('.', '')}{usual.suffix}" if compute_capability else usual.name


def _say_equal(profiles: Sequence[Profile], findings: Findings) -> None:
    """Profiles that are the same as an earlier one."""
    for index, profile in enumerate(profiles):
        if (first := profiles.index(profile)) < index:
            findings.warning(
                "TG128",
                ("tensorrt", "profiles", index),
                f"profile {index} is the same as profile {first}",
                consequence="every copy that uses both has working memory for each, and Triton never prefers the second",
                hint="remove it, or give it another batch or other shapes",
            )


def _check_gpus(build: PlanBuild, release: Release | None, findings: Findings) -> None:
    """GPUs that the release's TensorRT does not know, or that cannot build what is asked for."""
    key: Key = ("tensorrt", "build", "compute_capabilities")
    if build.hardware_compatibility == "same_compute_capability" and release is not None and not release.knows_same_compute_capability:
        findings.error(
            "TG127",
            ("tensorrt", "build", "hardware_compatibility"),
            f"release {release.name} has TensorRT {release.tensorrt_text}, which has no hardware_compatibility: same_compute_capability",
            consequence="the plan cannot be built",
            hint="use release 25.03 or newer, which have TensorRT 10.9 or newer, or write hardware_compatibility: none or ampere_plus",
        )
    for index, capability in enumerate(build.compute_capabilities):
        numbers = tuple(map(int, capability.split(".")))
        least = release.least_compute_capability if release else (0, 0)
        if release and (numbers < least or (numbers >= _BLACKWELL and not release.knows_blackwell)):
            span = f"from {least[0]}.{least[1]} on" if numbers < least else "below 10.0"
            findings.error(
                "TG127",
                (*key, index),
                f"release {release.name} has TensorRT {release.tensorrt_text}, which knows GPUs of compute capability {span}, and not {capability}",
                consequence="no plan can be built for such a GPU, and the server uses none",
                hint="remove it, or use a release that knows it (older ones for older GPUs, 25.01 and newer for Blackwell)",
            )
        elif numbers < _AMPERE and build.hardware_compatibility == "ampere_plus":
            findings.error(
                "TG127",
                (*key, index),
                f"hardware_compatibility: ampere_plus ({findings.locate(('tensorrt', 'build', 'hardware_compatibility'))}) is for compute capabilities from 8.0"
                f" on, and not {capability}",
                consequence="TensorRT refuses to build such a plan on such a GPU",
                hint="remove it, or write hardware_compatibility: none, with one plan for each kind of GPU",
            )


def _check_dla(model: ModelSpec, findings: Findings) -> None:
    """Deep learning accelerators that no device has."""
    asked: list[tuple[Key, int | None]] = [(group.dla_key, group.dla) for group in placed_groups(model)]
    asked.append((("onnxruntime", "tensorrt", "dla_core"), model.onnxruntime.tensorrt.dla_core))
    for key, number in asked:
        if number is not None and number >= _DLA_CORES:
            findings.warning(
                "TG127",
                key,
                f"there is most likely no deep learning accelerator {number}: Jetson and Drive have {_DLA_CORES}, numbers 0 and 1",
                consequence="no plan can be built for one that is not there",
                hint="write 0 or 1",
            )


def _say_stripped(build: PlanBuild, findings: Findings) -> None:
    if build.strip_weights:
        findings.warning(
            "TG126",
            ("tensorrt", "build", "strip_weights"),
            "the plan is built without its weights, and Triton puts none back",
            consequence="the model cannot answer until a tool of yours has put the weights back",
            hint="remove strip_weights, or refit the plan before it is served",
        )


def _check_profiles(model: ModelSpec, findings: Findings) -> None:
    """Say where copies of a model without a plan are to use profiles of one."""
    for index, group in enumerate(model.instances):
        if group.profiles and model.backend != "tensorrt":
            findings.error(
                "TG283",
                ("instances", index, "profiles"),
                f"profiles are those of a TensorRT plan, and the model has backend: {model.backend} ({findings.locate(('backend',))})",
                consequence="Triton refuses to load the model",
                hint="remove profiles (that of accelerator: tensorrt is derived from shapes), or write backend: tensorrt",
            )


_Ends = Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
"""For each input, the sizes of a CUDA graph, and the smallest that it may serve; without the batch."""


def _graph_sizes(signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], used: Sequence[Profile]) -> list[_Ends]:
    """What graphs are captured for, each once: the sizes that come most often, and those that a profile is tuned for.

    A copy tries each graph with each of its profiles, so that one for other sizes, such as long texts beside short ones, needs graphs of its own.
    """
    first = 1 if batching.max_batch_size else 0
    usual = {tensor.name: (sizes[tensor.name].usual, sizes[tensor.name].minimum) for tensor in signature.inputs}
    tuned = [usual | {name: (span.optimum[first:], span.minimum[first:]) for name, span in profile.shapes.items()} for profile in used]
    by_size: dict[tuple[tuple[int, ...], ...], _Ends] = {}
    for ends in (usual, *tuned):
        by_size.setdefault(tuple(most for most, _ in ends.values()), ends)
    return list(by_size.values())


def _add_graphs(cuda: Any, batching: Batching, sizes: Sequence[_Ends], *, lower_bounds: bool) -> None:
    """One graph for each batch that the batching decision prefers, for 1 and for the most, of each of the sizes.

    Triton alone captures the batches 1, preferred and max only where there is a dynamic batcher, and picks the profile's opt sizes; stated, those that are
    warmed up are among them. A lower bound lets a graph serve all that is smaller, down to the next smaller batch with a graph, padded.
    """
    formed = batching.warmed if batching.max_batch_size else (0,)
    below = [0, *formed] if batching.max_batch_size else [-1, 0]
    for ends in sizes:
        for previous, size in pairwise(below):
            spec = cuda.graph_spec.add(batch_size=size)
            _add_dims(spec.input, {name: most for name, (most, _) in ends.items()})
            if lower_bounds:
                spec.graph_lower_bound.batch_size = previous + 1
                _add_dims(spec.graph_lower_bound.input, {name: least for name, (_, least) in ends.items()})


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
    yield ("cc_model_filenames",), ("tensorrt", "build", "compute_capabilities")
    yield ("optimization", "priority"), ("tensorrt", "stream_priority")
    yield ("parameters", _STRATEGY), ("tensorrt", _STRATEGY)
