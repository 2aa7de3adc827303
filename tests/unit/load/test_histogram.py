"""The counters and figures of a histogram are HdrHistogram's own, for three significant digits."""

import json
import sys

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from tritongen.load.histogram import HIGHEST_US, Histogram, Samples
from tritongen.load.recorder import PERCENTILES

values = st.lists(
    st.one_of(st.integers(1, HIGHEST_US), st.integers(1, 5000), st.sampled_from([1, 1023, 1024, 2047, 2048, 4095, 4096, HIGHEST_US])), max_size=60
)


def histogram_of(recorded):
    histogram = Histogram()
    for value in recorded:
        histogram.record((value + 0.5) / 1e6)
    return histogram


@settings(deadline=None, max_examples=30)
@given(values, st.lists(st.floats(0.001, 100), max_size=5))
def test_they_agree(recorded, more):
    theirs, ours = HdrHistogram(1, HIGHEST_US, 3), histogram_of(recorded)
    for value in recorded:
        theirs.record_value(value)
    assert ours.counts == {index: count for index in range(theirs.counts_len) if (count := theirs.get_count_at_index(index))}
    samples, wanted = Samples.of(ours), [*PERCENTILES, *more]
    assert samples.count == ours.count == theirs.get_total_count() == len(recorded)
    assert samples.mean == pytest.approx(theirs.get_mean_value())
    if recorded:
        assert samples.percentiles(wanted) == [theirs.get_value_at_percentile(percentile) for percentile in wanted]
        assert samples.percentiles([100.0]) == [theirs.get_max_value()]
        assert samples.smallest == theirs.get_highest_equivalent_value(min(recorded))


def test_without_samples_everything_is_0():
    samples = Samples.of(Histogram())
    assert (samples.count, samples.mean, samples.smallest, samples.percentiles([50.0, 100.0])) == (0, 0.0, 0, [0, 0])
    assert Samples.of().count == 0


def test_values_beyond_the_limits_count_as_these():
    samples = Samples.of(histogram_of([-5, 0, 10 * HIGHEST_US]))
    assert samples.smallest == 1
    assert samples.percentiles([100.0]) == Samples.of(histogram_of([HIGHEST_US])).percentiles([100.0])


def test_later_samples_do_not_change_them():
    histogram = histogram_of([10])
    samples = Samples.of(histogram)
    histogram.record(0.001)
    assert samples.percentiles([100.0]) == [10]


@settings(deadline=None, max_examples=20)
@given(values, values)
def test_what_is_added_and_what_travels_is_whole(first, second):
    whole, added = histogram_of(first + second), histogram_of(first)
    added.add(Histogram.from_plain(json.loads(json.dumps(histogram_of(second).to_plain()))))
    assert (added.counts, added.count) == (whole.counts, whole.count)
    together, at_once = Samples.of(histogram_of(first), histogram_of(second)), Samples.of(whole)
    assert (together.count, together.mean, together.smallest) == (at_once.count, pytest.approx(at_once.mean), at_once.smallest)
    assert together.percentiles(PERCENTILES) == at_once.percentiles(PERCENTILES)


def test_a_second_of_a_run_takes_as_much_memory_as_it_has_samples():
    # An hour has 3,600 of them, and a run several hours.
    assert sys.getsizeof(histogram_of(range(1000, 1100)).counts) < 20_000
