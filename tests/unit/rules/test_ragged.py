"""The tensors that a backend makes for a ragged batch, from the shapes of its requests."""

from __future__ import annotations

import pytest

from tritongen.rules import ortload

SHAPES = [(1, 2, 3), (2, 1, 2), (1, 0, 5)]  # 6, 4 and 0 elements


@pytest.mark.parametrize(
    ("kind", "shape", "values"),
    [
        ("BATCH_ELEMENT_COUNT", (3,), (6, 4, 0)),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT", (3,), (6, 10, 10)),
        ("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", (4,), (0, 6, 10, 10)),
        ("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", (6,), (0,) * 6),
        ("BATCH_ITEM_SHAPE", (4, 2), (2, 3, 1, 2, 1, 2, 0, 5)),
        ("BATCH_ITEM_SHAPE_FLATTEN", (8,), (2, 3, 1, 2, 1, 2, 0, 5)),
    ],
)
def test_each_kind(kind, shape, values):
    assert ortload.batch_tensor(kind, SHAPES) == ortload.BatchTensor(shape, values)


def test_a_single_request_is_a_batch_too():
    assert ortload.batch_tensor("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", [(1, 4)]).values == (0, 4)
    assert ortload.batch_tensor("BATCH_ITEM_SHAPE", [(3, 4)]) == ortload.BatchTensor((3, 1), (4, 4, 4))


def test_an_outputs_variable_dimensions_are_the_inputs_at_the_same_place():
    config = {
        "max_batch_size": 4,
        "output": [{"name": "y", "dims": ["-1", "8"]}, {"name": "z", "dims": ["3"]}],
        "batch_output": [{"target_name": ["y"], "source_input": ["x"]}],
    }
    assert ortload.scatters(config) == {"y": ("x", (-1, -1, 8))}
    assert ortload.scattered_shape((-1, -1, 8), (1, 5)) == (1, 5, 8)
    with pytest.raises(IndexError):
        ortload.scattered_shape((-1, -1, -1), (1, 5))
