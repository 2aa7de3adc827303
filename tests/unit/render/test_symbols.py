"""Dimensions that bear one name, and the sizes that they are given."""

from __future__ import annotations

import pytest

from tests.unit.render.compiling import FP32, compiled
from tritongen.signature import Signature, TensorSpec

IDS = "ids: {min: [1], opt: [16], max: [64]}"


def words(*shapes: tuple[str | int | None, ...]) -> Signature:
    return Signature(tuple(TensorSpec(name, FP32, shape) for name, shape in zip(("ids", "mask"), shapes, strict=True)), (TensorSpec("y", FP32, ("batch", 2)),))


@pytest.mark.parametrize("keys", ["accelerator: tensorrt", "backend: tensorrt", "backend: tensorrt\ntensorrt: {cuda_graphs: true}"])
@pytest.mark.parametrize("mask", ["{min: [2], opt: [16], max: [64]}", "{min: [1], opt: [32], max: [64]}", "{min: [1], opt: [16], max: [32]}", "[16]"])
def test_sizes_of_one_name_must_be_equal_in_a_profile(keys, mask):
    outcome = compiled(f"{keys}\nshapes: {{{IDS}, mask: {mask}}}\nwarmup: none", words(("batch", "seq"), ("batch", "seq")))
    found = outcome.only("TG104")
    assert found.location.path == "shapes.mask"
    assert "dimension 1 of 'mask' is the model's 'seq', as is dimension 1 of 'ids' (shapes.ids)" in found.message
    assert "1, 16, 64 (min, opt, max)" in found.message


@pytest.mark.parametrize(
    ("keys", "first", "second"),
    [
        ("accelerator: tensorrt", ("batch", "seq"), ("batch", "other")),
        ("accelerator: tensorrt", ("batch", "?"), ("batch", "?")),
        ("accelerator: tensorrt", ("batch", None), ("batch", None)),
        ("accelerator: tensorrt", ("batch", "batch"), ("batch", "batch")),
        ("accelerator: none", ("batch", "seq"), ("batch", "seq")),
    ],
)
def test_others_may_differ(keys, first, second):
    assert "TG104" not in compiled(f"{keys}\nshapes: {{{IDS}, mask: [8]}}", words(first, second)).codes


def test_without_a_batch_the_first_axis_counts_too():
    keys = "accelerator: tensorrt\nbatching: none\nshapes: {ids: [2, 8], mask: [3, 8]}"
    assert "dimension 1 of 'mask' is the model's 'batch'" in compiled(keys, words(("batch", "seq"), ("batch", "seq"))).only("TG104").message
