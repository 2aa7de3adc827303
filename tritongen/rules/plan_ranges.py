"""The sizes that the profiles of a TensorRT plan take, and which of the profiles copies use. Knows nothing of who asks, a render or a rule.

Source: tensorrt_backend/src/instance_state.cc, which maximizes the dims of every input over each profile of a copy, holds them against the profile's sizes, and
uses the first profile alone where a group lists none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tritongen.recipe import Span

Ranges = Sequence[tuple[int, int]]
"""The least and the most of each dimension of an input, without that of the batch."""

REFUSED_SAMPLE = "the sample fails while the model is loaded, and Triton refuses the model"
"""What follows of a warmup sample that a plan does not take."""

UNCAPTURED = "Triton logs that it captures no graph, and launches kernel by kernel"
"""What follows where a CUDA graph cannot be captured."""


def listed_profiles(group: Any) -> Iterator[int]:
    """The profiles that an instance group lists, as Triton reads them: the number at the beginning of each text. What is none is another finding's."""
    return (int(found[1]) for profile in group.profile if (found := re.match(r"\s*\+?(\d+)", profile)))


def used_profiles(config: Any, count: int) -> list[int]:
    """The numbers of the profiles that some copy uses, ascending. `count`: how many the plan has; others are a finding of their own."""
    groups = [[number for number in listed_profiles(group) if number < count] or [0] for group in config.instance_group] or [[0]]
    return sorted({number for numbers in groups for number in numbers})


def range_of(span: Span) -> Ranges:
    """The least and the most of each size, or value, that a profile allows; that of the batch included."""
    return [*zip(span.minimum, span.maximum, strict=True)]


def row_ranges(whole: Ranges, *, batched: bool) -> Ranges:
    """The ranges of an input as a config has its dims: one that is nothing but the batch dimension, or a scalar, is one element."""
    return whole[1 if batched else 0 :] or [(1, 1)]


def plan_dims(tensor: Any) -> list[int]:
    """The dims of a config's input as the plan gets them: those that it is reshaped to."""
    return list(tensor.reshape.shape) or [1] if tensor.HasField("reshape") else list(tensor.dims)


def lie_in(dims: Sequence[int], ranges: Ranges) -> bool:
    """Whether dims are possible sizes; a variable one (-1) always is."""
    return len(dims) == len(ranges) and all(dim == -1 or low <= dim <= high for dim, (low, high) in zip(dims, ranges, strict=True))


def ranges_text(ranges: Ranges) -> str:
    """Ranges in words, such as `[1 to 8, 64]`."""
    return f"[{', '.join(str(low) if low == high else f'{low} to {high}' for low, high in ranges)}]"


def unknown_profiles(config: Any, count: int) -> Iterator[tuple[int, str]]:
    """The instance groups, by index, that list profiles which the plan has not, and which these are, in words. `count`: how many it has."""
    for index, group in enumerate(config.instance_group):
        if others := [number for number in listed_profiles(group) if number >= count]:
            has = "one profile, number 0," if count == 1 else f"{count} profiles, numbers 0 to {count - 1},"
            yield index, f"instance group {index + 1} uses the profile {', '.join(map(str, others))}, and the plan has {has} and no other"


def dims_outside(config: Any, by_profile: Sequence[Mapping[str, Ranges]]) -> Iterator[tuple[int, str]]:
    """The inputs, by index, whose dims some profile that a copy uses does not take, and why, in words. `by_profile` as for `uncaptured_graphs`."""
    for index, tensor in enumerate(config.input):
        dims = plan_dims(tensor)
        ranges = [taken[tensor.name] for taken in by_profile if tensor.name in taken and not tensor.allow_ragged_batch]
        if outside := [each for each in ranges if not lie_in(dims, each)]:
            yield index, f"input '{tensor.name}' has the dims {dims}, and the plan takes {ranges_text(outside[0])}"


def samples_outside(config: Any, by_profile: Sequence[Mapping[str, Ranges]]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The inputs of warmup samples, by their field of the config, that no profile takes, and why, in words. `by_profile` as for `uncaptured_graphs`."""
    reshaped = {tensor.name for tensor in config.input if tensor.HasField("reshape")}
    for index, sample in enumerate(config.model_warmup):
        for name in sorted(sample.inputs.keys() - reshaped):
            dims = list(sample.inputs[name].dims)
            ranges = [taken[name] for taken in by_profile if name in taken]
            if ranges and not any(lie_in(dims, each) for each in ranges):
                message = f"the warmup sample '{sample.name}' gives '{name}' the dims {dims}, and the plan takes {' or '.join(map(ranges_text, ranges))}"
                yield ("model_warmup", index, "inputs", name), message


def uncaptured_graphs(cuda: Any, by_profile: Sequence[Mapping[str, Ranges]], shape_tensors: Sequence[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The CUDA graphs that cannot be captured: the field of `cuda`, a config's `optimization.cuda`, and why, in words.

    A graph has sizes that a profile takes, for every input; one without sizes has those that the profile is tuned for. None is of a plan with shape tensors
    (`SetCudaGraphShape` in the file above).

    Args:
        cuda: the settings.
        by_profile: what each profile that a copy uses takes of the inputs, by name.
        shape_tensors: the names of the plan's shape tensors.
    """
    if cuda.graphs and shape_tensors:
        yield ("graphs",), f"the plan has shape tensors, {', '.join(map(repr, shape_tensors))}, and Triton captures no CUDA graph of such a plan"
    elif cuda.graphs:
        takes = " or ".join(_listed({name: ranges_text(ranges) for name, ranges in taken.items()}) for taken in by_profile)
        for index, spec in enumerate(cuda.graph_spec):
            sizes = {name: list(shape.dim) for name, shape in sorted(spec.input.items())}
            if sizes and not any(all(name in sizes and lie_in(sizes[name], ranges) for name, ranges in taken.items()) for taken in by_profile):
                yield ("graph_spec", index), f"graph_spec {index + 1} is for {_listed(sizes)}, and the plan takes {takes}"


def _listed(sizes: Mapping[str, object]) -> str:
    return ", ".join(f"'{name}' {each}" for name, each in sizes.items())
