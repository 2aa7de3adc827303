"""How near one output of a converted model is to the original's: figures of two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tritongen.rewrite.facts import Array
from tritongen.rewrite.running import COARSE, deviation, largest

_SUM_TOLERANCE = 1e-2
_NEARLY_ONE = 1 - 1e-6


@dataclass(frozen=True)
class Agreement:
    """How near one output is to the original's at one batch size.

    Attributes:
        output: its name.
        size: rows in the batch; 0 for a model that was run as a whole.
        max_abs: the largest difference; 0 for truth values and text, which have none.
        max_rel: the same as a part of the original's largest value.
        cosine: the least cosine similarity of a row with the original's; 1 for an output that is not of floats.
        rows: rows of scores; 0 for an output that does not look like scores.
        same_top1: how many of them have their largest score where the original has it, or where it has one that FP16 cannot tell from it.
        values: elements of an output of whole numbers, truth values or text; 0 for one of floats.
        equal: how many of them are the original's.
        reason: why the two do not compare, such as another shape, or numbers that are none; empty where they do.
        empty: why there is nothing to compare, such as an output without elements; empty where there is something.
    """

    output: str
    size: int
    max_abs: float = 0.0
    max_rel: float = 0.0
    cosine: float = 1.0
    rows: int = 0
    same_top1: int = 0
    values: int = 0
    equal: int = 0
    reason: str = ""
    empty: str = ""

    @property
    def numbers(self) -> str:
        """The figures in words."""
        if self.reason or self.empty:
            return self.reason or self.empty
        differences = f"max abs {self.max_abs:.2g}, max rel {self.max_rel:.2g}"
        if self.values:
            share = f"{100 * self.equal / self.values:.4g} % of the values are equal ({self.equal:,} of {self.values:,})"
            return f"{share}, {differences}" if self.max_abs else share
        top = f", the same top-1 in {self.same_top1} of {self.rows} rows" if self.rows else ""
        digits = 7 if self.cosine < _NEARLY_ONE else 12  # else what misses a tolerance near 1 would read as 1
        return f"{differences}, cosine {self.cosine:.{digits}g}{top}"

    def is_within(self, *, cosine: float, top1: bool) -> bool:
        """Whether it is as near as is asked for: by its cosine similarity, or, where it is not of floats, by the part of its values that are equal."""
        return not self.reason and self.cosine >= cosine and self.equal >= cosine * self.values and (not top1 or self.same_top1 == self.rows)


def worst_of(output: str, found: Sequence[Agreement]) -> Agreement:
    """The worst of each figure of an output, its rows and values added up."""
    return Agreement(
        output,
        0,
        max(each.max_abs for each in found),
        max(each.max_rel for each in found),
        min(each.cosine for each in found),
        sum(each.rows for each in found),
        sum(each.same_top1 for each in found),
        sum(each.values for each in found),
        sum(each.equal for each in found),
        next((each.reason for each in found if each.reason), ""),
    )


def agreement_of(output: str, size: int, want: Array, got: Array) -> Agreement:
    """How near `got` is to the original's `want`: an output of a batch of `size` rows, or, with 0, of a model that was run as a whole."""
    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray):
        return Agreement(output, size, reason=f"it is a {type(want).__name__} and not a tensor")
    if want.shape != got.shape:
        return Agreement(output, size, reason=f"it has the shape {list(got.shape)}, and the original's {list(want.shape)}")
    if not want.size:
        return Agreement(output, size, empty="it has no elements for the inputs that were tried")
    if want.dtype.kind != "f":
        return _of_values(output, size, want, got)
    first, second = want.astype(np.float64), got.astype(np.float64)
    if strays := _strays(first, second):
        return Agreement(output, size, reason=strays)
    finite = np.isfinite(first)
    if not finite.any():
        return Agreement(output, size, empty=f"all of its {first.size:,} numbers are infinite or none, the original's too")
    first, second = np.where(finite, first, 0), np.where(finite, second, 0)
    max_abs = float(np.abs(first - second).max())
    top = _top1(first, second)
    return Agreement(output, size, max_abs, deviation(first, second, largest(first)), _cosine(first, second, rowwise=bool(size)), *top)


def _of_values(output: str, size: int, want: Array, got: Array) -> Agreement:
    """The figures of whole numbers, truth values or text."""
    max_abs = max_rel = 0.0
    if want.dtype.kind in "iu":
        first = want.astype(np.float64)
        max_abs = float(np.abs(first - got.astype(np.float64)).max())
        max_rel = max_abs / (largest(first) or max_abs) if max_abs else 0.0
    return Agreement(output, size, max_abs, max_rel, values=want.size, equal=int((want == got).sum()))


def _strays(first: Array, second: Array) -> str:
    """What is infinite, or no number, in one of the two only, or of another kind or sign; empty where nothing is."""
    finite = np.isfinite(first)
    if lost := int((finite & ~np.isfinite(second)).sum()):
        return f"{lost:,} of its {second.size:,} numbers are infinite or none, and the original's are not"
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if other := int((~finite & ~same).sum()):
        return f"{other:,} of the original's {first.size:,} numbers are infinite or none, and it has something else there"
    return ""


def _cosine(first: Array, second: Array, *, rowwise: bool) -> float:
    """The least cosine similarity of the rows; of equal ones, zeros among them, it is 1 to the last digit."""
    count = len(first) if rowwise and first.ndim else 1
    one, two = first.reshape(count, -1), second.reshape(count, -1)
    norms = np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1)
    product = norms[0] * norms[1]
    cosines = np.where(product > 0, (one * two).sum(axis=1) / np.where(product > 0, product, 1), 0.0)
    cosines = np.where((one == two).all(axis=1), 1.0, cosines)
    return float(min(cosines.min(initial=1.0), 1.0))


def _top1(first: Array, second: Array) -> tuple[int, int]:
    """The rows of scores, and those with the same winner; (0, 0) where there is nothing like scores."""
    if first.ndim < 2 or first.shape[-1] < 2 or not first.size:
        return 0, 0
    if first.ndim > 2 and not (first.min() >= 0 and np.abs(first.sum(axis=-1) - 1).max() < _SUM_TOLERANCE):
        return 0, 0
    one, two = first.reshape(-1, first.shape[-1]), second.reshape(-1, first.shape[-1])
    winner = np.take_along_axis(one, two.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    lost = one.max(axis=1) - winner
    return len(one), int((lost <= COARSE["float16"] * np.abs(one).max(axis=1)).sum())
