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
