"""Dims and reshapes are judged as Triton's core does: the verdicts here were given by core 2.51.0."""

import pytest

from tritongen.rules.shapes import agree, reshape_problem, segments

REFUSED = [
    ([4], [2], "4 elements and the reshape holds 2"),
    ([2, 4, -1, 6], [4, -1, 2, 6], "before the first -1"),
    ([2, -1, 6, -1], [2, -1, 3, -1], "between the -1 number 1 and the next"),
    ([2, -1, 6], [2, -1, 3], "behind the last -1"),
    ([4], [-1], "0 variable dimensions in dims and 1 in the reshape"),
    ([4], [-1, 4], "the batch dimension is never part of dims or reshape"),
    ([4], [], "4 elements and the reshape holds 1"),
    ([-1], [], "1 variable dimensions in dims and 0 in the reshape"),
]


@pytest.mark.parametrize(("dims", "shape", "reason"), REFUSED)
def test_a_refused_reshape_says_why(dims, shape, reason):
    assert reason in reshape_problem(dims, shape, batches=True)


@pytest.mark.parametrize(("dims", "shape"), [([2, 4, -1, 6], [8, -1, 1, 6]), ([1, 1], []), ([4], [1, 4]), ([-1], [-1, 1])])
def test_a_reshape_that_triton_loads_is_fine(dims, shape):
    assert reshape_problem(dims, shape, batches=True) == ""


def test_only_a_batching_model_may_have_an_empty_reshape():
    assert reshape_problem([1], [], batches=True) == ""
    assert "without batching" in reshape_problem([1], [], batches=False)


def test_segments_are_the_products_around_variable_dimensions():
    assert segments([2, 4, -1, 6]) == [8, 6]
    assert segments([-1, -1]) == [1, 1, 1]
    assert segments([]) == [1]


def test_shapes_agree_where_one_is_variable_and_ranks_are_equal():
    assert agree([4, -1], [-1, 5])
    assert not agree([4], [5])
    assert not agree([4], [4, 1])
