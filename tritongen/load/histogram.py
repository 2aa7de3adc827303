"""HDR histograms of latencies: counters whose width grows with the value, so that every value is known within 0.1 % from a microsecond to an hour.

The counters are HdrHistogram's for three significant digits, and so are the figures; tests hold both against it. Only counters that are not 0 are kept: of the
twenty thousand that there are, a second of a run fills some hundred, and adding, sending and reading them costs as much as what is in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

HIGHEST_US = 3_600_000_000
"""The largest value; what is above counts as this."""

_DIGITS_BITS = 11
"""Values of so many bits have a counter each: 2,048 of them, the least power of 2 that keeps three digits apart."""
_HALF_BITS = _DIGITS_BITS - 1

Whole = npt.NDArray[np.int64]


class Histogram:
    """How often each value was seen, in microseconds.

    Attributes:
        counts: samples by the number of their counter; those that are missing have none.
        count: how many samples there are.
    """

    __slots__ = ("count", "counts")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.count = 0

    def record(self, seconds: float) -> None:
        """One sample; below a microsecond it counts as one."""
        value = min(max(int(seconds * 1e6), 1), HIGHEST_US)
        doublings = value.bit_length() - _DIGITS_BITS
        number = value if doublings <= 0 else (doublings << _HALF_BITS) + (value >> doublings)
        self.counts[number] = self.counts.get(number, 0) + 1
        self.count += 1

    def add(self, other: Histogram) -> None:
        """Its samples too; nothing is lost."""
        counts = self.counts
        for number, count in other.counts.items():
            counts[number] = counts.get(number, 0) + count
        self.count += other.count

    def to_plain(self) -> list[int]:
        """Numbers of counters and their samples by turns, for JSON."""
        return [part for entry in self.counts.items() for part in entry]

    @classmethod
    def from_plain(cls, plain: Sequence[int]) -> Histogram:
        """What `to_plain` gave. Raises ValueError or TypeError for anything else."""
        made = cls()
        made.counts = dict(zip(plain[::2], plain[1::2], strict=True))
        made.count = sum(made.counts.values())
        return made


@dataclass(frozen=True)
class Samples:
    """What is in histograms, in ascending order.

    Attributes:
        lowest: the smallest value that each counter stands for.
        width: how many values it stands for.
        counts: how many samples it has.
    """

    lowest: Whole
    width: Whole
    counts: Whole

    @classmethod
    def of(cls, *histograms: Histogram) -> Samples:
        """The samples of histograms together; a copy, which later samples do not change."""
        numbers = np.fromiter((number for histogram in histograms for number in histogram.counts), np.int64)
        counts = np.fromiter((count for histogram in histograms for count in histogram.counts.values()), np.int64)
        order = np.argsort(numbers, kind="stable")
        numbers, counts = numbers[order], counts[order]
        # The first 2,048 counters stand for one value each; from there on, each 1,024 of them for values twice as wide as those before.
        doublings = np.maximum((numbers >> _HALF_BITS) - 1, 0)
        return cls((numbers - (doublings << _HALF_BITS)) << doublings, np.left_shift(np.int64(1), doublings), counts)

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
        targets = [_rank(percentile, self.count) for percentile in wanted]
        places = np.searchsorted(np.cumsum(self.counts), targets)
        return [int(value) for value in (self.lowest + self.width - 1)[places]]

    def percentile(self, wanted: float, *, slower: int = 0) -> float:
        """One percentile of these samples and `slower` others, which are larger than any: infinite where it falls on one of those; 0 without samples."""
        rank = _rank(wanted, self.count + slower)
        if rank > self.count:
            return math.inf if slower else 0.0
        place = np.searchsorted(np.cumsum(self.counts), rank)
        return float(self.lowest[place] + self.width[place] - 1)

    def beyond(self, value: int) -> int:
        """How many are larger than `value`, within the width of a counter."""
        return int(self.counts[self.lowest > value].sum())


def _rank(percentile: float, count: int) -> int:
    """The place of a percentile among so many samples in ascending order, from 1 on."""
    return max(int(min(percentile, 100.0) * count / 100 + 0.5), 1)
