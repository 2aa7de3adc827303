"""What an HDR histogram's samples are, read all at once: its own methods walk over its twenty thousand counters one by one, which takes milliseconds a figure.

The figures are those of HdrHistogram's own methods; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Samples:
    """The counters of histograms that are not 0, in ascending order, for histograms that begin at 1.

    Attributes:
        lowest: the smallest value that each counter stands for.
        width: how many values it stands for.
        counts: how many samples it has.
    """

    lowest: Whole
    width: Whole
    counts: Whole

    @classmethod
    def of(cls, *histograms: HdrHistogram) -> Samples:
        """The samples of histograms together; a copy, which later samples do not change."""
        parts = [_occupied(histogram) for histogram in histograms]
        lowest, width, counts = (np.concatenate([np.empty(0, np.int64), *(part[index] for part in parts)]) for index in range(3))
        order = np.argsort(lowest, kind="stable")
        return cls(lowest[order], width[order], counts[order])

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @property
    def smallest(self) -> int:
        """The smallest, as the largest value that its counter stands for, like all others; 0 without samples."""
        return int(self.lowest[0] + self.width[0] - 1) if self.counts.size else 0

    @property
    def mean(self) -> float:
        """Their mean, each taken as the middle of its counter; 0 without samples."""
        return float(np.dot(self.lowest + self.width // 2, self.counts) / self.count) if self.counts.size else 0.0

    def percentiles(self, wanted: Sequence[float]) -> list[int]:
        """For each percentile the largest value of the counter that holds it; 0 without samples."""
        if not self.counts.size:
            return [0] * len(wanted)
        targets = [max(int(min(percentile, 100.0) * self.count / 100 + 0.5), 1) for percentile in wanted]
        places = np.searchsorted(np.cumsum(self.counts), targets)
        return [int(value) for value in (self.lowest + self.width - 1)[places]]


def _occupied(histogram: HdrHistogram) -> tuple[Whole, Whole, Whole]:
    counters = np.asarray(histogram.counts).astype(np.int64)
    indices = np.flatnonzero(counters)
    # The first 2 * half counters stand for one value each; from there on, each `half` of them for values twice as wide as those before.
    half = int(histogram.sub_bucket_half_count)
    doublings = np.maximum(indices // half - 1, 0)
    return (indices - doublings * half) << doublings, np.left_shift(np.int64(1), doublings), counters[indices]
