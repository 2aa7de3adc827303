"""The figures of a histogram's samples are those of HdrHistogram's own methods."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritongen.load.histogram import Samples
from tritongen.load.recorder import DIGITS, HIGHEST_US, PERCENTILES, HdrHistogram

values = st.lists(
    st.one_of(st.integers(1, HIGHEST_US), st.integers(1, 5000), st.sampled_from([1, 1023, 1024, 2047, 2048, 4095, 4096, HIGHEST_US])), max_size=60
)


def histogram_of(recorded):
    histogram = HdrHistogram(1, HIGHEST_US, DIGITS)
    for value in recorded:
        histogram.record_value(value)
    return histogram


@settings(deadline=None, max_examples=30)
@given(values, st.lists(st.floats(0.001, 100), max_size=5))
def test_they_agree(recorded, more):
    wanted = [*PERCENTILES, *more]
    for histogram in (histogram_of(recorded), HdrHistogram.decode(histogram_of(recorded).encode())):
        samples = Samples.of(histogram)
        assert samples.count == histogram.get_total_count() == len(recorded)
        assert samples.mean == pytest.approx(histogram.get_mean_value())
        if recorded:
            assert samples.percentiles(wanted) == [histogram.get_value_at_percentile(percentile) for percentile in wanted]
            assert samples.percentiles([100.0]) == [histogram.get_max_value()]
            assert samples.smallest == histogram.get_highest_equivalent_value(min(recorded))


def test_without_samples_everything_is_0():
    samples = Samples.of(histogram_of([]))
    assert (samples.count, samples.mean, samples.smallest, samples.percentiles([50.0, 100.0])) == (0, 0.0, 0, [0, 0])


def test_later_samples_do_not_change_them():
    histogram = histogram_of([10])
    samples = Samples.of(histogram)
    histogram.record_value(1000)
    assert samples.percentiles([100.0]) == [10]


@settings(deadline=None, max_examples=20)
@given(values, values)
def test_histograms_together_are_one(first, second):
    together, whole = Samples.of(histogram_of(first), histogram_of(second)), Samples.of(histogram_of(first + second))
    assert (together.count, together.mean, together.smallest) == (whole.count, pytest.approx(whole.mean), whole.smallest)
    assert together.percentiles(PERCENTILES) == whole.percentiles(PERCENTILES)
