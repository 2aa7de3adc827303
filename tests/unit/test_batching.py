import pytest

from tritongen import dtypes
from tritongen.batching import batch_blockers, decide_batching, fixed_sizes
from tritongen.signature import Signature, TensorSpec

FP32 = dtypes.from_wire("FP32")


def signature(input_shape, output_shape=("N", 4)):
    return Signature((TensorSpec("x", FP32, input_shape),), (TensorSpec("y", FP32, output_shape),))


@pytest.mark.parametrize("first", ["N", None, "p2o.DynamicDimension.0", "?", "unk__1 + 2*floor(a/2)"])
def test_a_variable_first_axis_batches_whatever_it_is_called(first):
    assert batch_blockers(signature((first, 8))) == ()


@pytest.mark.parametrize(
    ("input_shape", "output_shape", "words"),
    [
        ((1, 8), ("N", 4), "input 'x' has the fixed first dimension 1"),
        (("N", 8), (1, 4), "output 'y' has the fixed first dimension 1"),
        ((), ("N", 4), "input 'x' is a scalar"),
        (("N", 8), None, "output 'y' has no shape"),
    ],
)
def test_one_tensor_without_it_rules_batching_out(input_shape, output_shape, words):
    batching = decide_batching(signature(input_shape, output_shape), max_batch_size=8)
    assert batching.max_batch_size == 0
    assert not batching.dynamic
    assert words in batching.blockers[0]


def test_warmed_sizes_are_one_max_and_the_preferred_ones():
    assert decide_batching(signature(("N", 8)), max_batch_size=16, preferred=(8, 4)).warmed == (1, 4, 8, 16)
    assert decide_batching(signature(("N", 8)), max_batch_size=1).warmed == (1,)
    assert decide_batching(signature((3, 8))).warmed == (1,)


def test_a_preferred_size_raises_the_default_maximum():
    assert decide_batching(signature(("N", 8)), preferred=(32,)).max_batch_size == 32


def test_a_profile_is_tuned_for_the_size_that_the_batcher_forms():
    assert decide_batching(signature(("N", 8)), max_batch_size=16, preferred=(4, 8)).optimum == 8
    assert decide_batching(signature(("N", 8)), max_batch_size=16).optimum == 16
    assert decide_batching(signature((3, 8))).optimum == 1


def test_batching_that_is_switched_off_has_no_blockers():
    batching = decide_batching(signature(("N", 8)), max_batch_size=0)
    assert (batching.max_batch_size, batching.blockers) == (0, ())


@pytest.mark.parametrize(("most", "sizes"), [(1, ()), (2, (2,)), (3, (2, 3)), (8, (2, 4, 8)), (12, (2, 4, 8, 12)), (64, (2, 4, 8, 16, 32, 64))])
def test_few_sizes_are_powers_of_two_and_the_largest(most, sizes):
    assert fixed_sizes(most) == sizes
    batching = decide_batching(signature(("N", 8)), max_batch_size=most, few_sizes="a reason")
    assert (batching.preferred, batching.warmed) == (sizes, (1, *sizes))


def test_a_batch_of_one_is_no_batch():
    batching = decide_batching(signature(("N", 8)), max_batch_size=1, preferred=(1,), max_queue_delay_us=5)
    assert (batching.max_batch_size, batching.dynamic, batching.preferred, batching.max_queue_delay_us) == (1, False, (), 0)
