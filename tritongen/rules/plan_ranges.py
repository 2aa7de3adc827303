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


def takes(taken: Mapping[str, Ranges], sizes: Mapping[str, Sequence[int]]) -> bool:
    """Whether a profile, as the ranges of its inputs, takes a request of these sizes: those of all inputs together."""
    return all(name in sizes and lie_in(sizes[name], ranges) for name, ranges in taken.items())


def ranges_text(ranges: Ranges) -> str:
    """Ranges in words, such as `[1 to 8, 64]`."""
    return f"[{', '.join(str(low) if low == high else f'{low} to {high}' for low, high in ranges)}]"
