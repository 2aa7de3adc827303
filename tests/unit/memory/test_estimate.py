"""What copies of models take of each GPU, and which batches fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritongen.memory import Footprint, ModelEstimate, Placement, estimate_memory, largest_fitting
from tritongen.memory.estimate import CONTEXT_BYTES, HANDLES_BYTES, MOST_BATCH

MIB = 1 << 20
ONE = Placement((), 1)


def model(name="m", *, batch=8, placements=(ONE,), weights=100 * MIB, row=10 * MIB, **how):
    def at(size):
        return Footprint(weights, row * max(size, 1), row // 10)

    return ModelEstimate(name, batch, placements, at(batch), at, **how)


def total(*models, gpu=None):
    (found,) = (each.total for each in estimate_memory(models, None).gpus if each.gpu == gpu)
    return found


def test_a_session_for_each_copy_has_weights_of_its_own():
    assert total(model(placements=(Placement((), 3),))) == CONTEXT_BYTES + 3 * (100 * MIB + 80 * MIB + MIB + HANDLES_BYTES)


def test_copies_of_an_engine_without_profiles_share_its_weights():
    assert total(model(placements=(Placement((), 3),), shares_weights=True)) == CONTEXT_BYTES + 100 * MIB + 3 * (80 * MIB + MIB + HANDLES_BYTES)


def test_each_profile_that_a_copy_uses_has_activations_of_its_own():
    assert total(model(placements=(Placement((), 2, contexts=3),))) == CONTEXT_BYTES + 2 * (100 * MIB + HANDLES_BYTES) + 6 * (80 * MIB + MIB)


def test_an_arena_takes_more_than_is_alive_and_a_bound_of_scratch_is_kept():
    assert total(model(slack=2)) - total(model()) == 80 * MIB
    assert total(model()) - total(model(workspace=MIB // 4)) == MIB - MIB // 4


def test_each_gpu_holds_what_is_placed_there():
    first, everywhere, cpu = model("a", placements=(Placement((1,), 1),)), model("b"), model("c", placements=())
    found = estimate_memory([first, everywhere, cpu], None)
    assert [(gpu.gpu, sorted(gpu.shares)) for gpu in found.gpus] == [(1, ["a", "b"]), (None, ["b"])]
    assert [found.name_of(gpu) for gpu in found.gpus] == ["GPU 1", "Each other GPU"]
    assert estimate_memory([everywhere], None).name_of(found.gpus[1]) == "Each GPU"
    assert estimate_memory([cpu], None).gpus == ()
    assert estimate_memory([cpu], 1).fits


@pytest.mark.parametrize("memory", [1000, 1500, 4000])
def test_the_largest_batch_is_the_last_that_fits_beside_the_others(memory):
    def models(batch):
        return [model("a", batch=batch), model("b", batch=4)]

    found = estimate_memory(models(8), memory * MIB)
    best = found.largest["a"]
    assert best > 0
    assert estimate_memory(models(best), memory * MIB).fits
    assert not estimate_memory(models(best + 1), memory * MIB).fits


def test_where_not_even_one_fits_it_is_said():
    found = estimate_memory([model()], 700 * MIB)
    assert (found.fits, found.largest) == (False, {"m": 0})


def test_a_batch_that_costs_nothing_has_no_end():
    assert estimate_memory([model(row=0)], 4 << 30).largest == {"m": MOST_BATCH}


def test_what_is_not_known_is_not_taken_to_fit():
    lone = ModelEstimate("m", 8, (Placement((), 2),), Footprint(100 * MIB, 0, 0), None, ("its sizes",))
    found = estimate_memory([lone], 1 << 30)
    assert (found.is_complete, found.largest) == (False, {})
    assert found.gpus[0].total == CONTEXT_BYTES + 2 * (100 * MIB + HANDLES_BYTES)
    assert not estimate_memory([lone], 900 * MIB).fits


@given(st.integers(0, MOST_BATCH), st.integers(-10, 2 * MOST_BATCH))
def test_the_search_finds_the_largest_from_any_guess(largest, guess):
    asked = []
    assert largest_fitting(lambda size: asked.append(size) or size <= largest, guess) == largest
    assert len(asked) == len(set(asked)) <= 34
