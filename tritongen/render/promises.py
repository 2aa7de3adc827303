"""What models promise (`slo` in the spec), and what of it a server's metrics can show.

Pure facts: which alerts, rules and panels are made of them is the affair of `monitoring` and `dashboard`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tritongen.releases import DEFAULT_RELEASE, order_of
from tritongen.spec import ModelSpec

WINDOWS = ("5m", "30m", "1h", "6h", "3d")
"""Windows in which the use of what may be missed is looked at: those of "The Site Reliability Workbook", chapter 5, table 5-8."""

MISSED_WINDOWS = ("1h", "6h", "3d")
"""Those of them over which an alert needs some misses, and not one alone: the long ones."""

_FAST, _SLOW, _STEADY = Fraction("14.4"), Fraction(6), Fraction(1)
"""How many times faster than it lasts what may be missed is used up when somebody is called: factors of the same table."""

_WITHIN = Fraction("0.99")
"""The last of them for a percentile: one that stays above its limit burns at 1 exactly, give or take a rounding."""

DEFAULT_QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
"""Triton's `summary_quantiles` where nobody sets them (core/src/metric_model_reporter.h)."""

_FIRST_WITH_LOAD_TIMES = (24, 12)
"""`nv_model_load_duration_secs` is in no release before."""

ERRORS = "error_rate"
"""The objective that is about failures; the others are percentiles of the time."""


@dataclass(frozen=True)
class Exported:
    """What a server exports.

    Attributes:
        counters: the times that are summed up (`--metrics-config=counter_latencies`, on unless it is switched off).
        quantiles: those of its summaries, each above 0 and below 1; none without `--metrics-config=summary_latencies=true`.
        load_times: how long each model took to load.
        gpus: use and memory of GPUs.
    """

    counters: bool = True
    quantiles: tuple[float, ...] = ()
    load_times: bool = False
    gpus: bool = True

    def shows_quantiles(self, model: ModelSpec) -> bool:
        """Whether there are quantiles of this model's requests: Triton has none of whole requests where its cache answers some (metric_model_reporter.cc)."""
        return bool(self.quantiles) and not model.response_cache

    @property
    def rests(self) -> tuple[tuple[str, str], ...]:
        """The share of requests above each quantile, as PromQL has it, with the quantile as the metrics page has it (prometheus-cpp's text_serializer.cc)."""
        return tuple((_decimal(1 - Fraction(repr(quantile))), f"{quantile:.16g}") for quantile in self.quantiles)


@dataclass(frozen=True)
class Promise:
    """One line of a model's `slo`.

    Attributes:
        model: the model's name.
        objective: `p99` and the like, or `error_rate`.
        budget: the share of requests that may miss it.
        limit_us: the time of a percentile, in microseconds.
    """

    model: str
    objective: str
    budget: Fraction
    limit_us: int | None = None

    @property
    def budget_text(self) -> str:
        """The budget as PromQL has it."""
        return _decimal(self.budget)

    def most_missed(self, exported: Exported) -> Fraction:
        """The share of requests that is seen to miss it where all of them do: all that fail, but of the slow ones those above the lowest quantile alone."""
        return Fraction(1) if self.limit_us is None else max((1 - Fraction(repr(quantile)) for quantile in exported.quantiles), default=Fraction(0))

    def burn_limits(self, exported: Exported) -> Mapping[str, str]:
        """The factors above which the alerts that look for a fast, a slow and a steady burn call somebody, as PromQL has them.

        Where much may be missed, the usual ones are out of reach: half of all that can be seen takes their place, and never less than what may be missed.
        """
        steady = _STEADY if self.limit_us is None else _WITHIN
        highest = self.most_missed(exported) / self.budget
        fast = max(highest / 2, steady) if highest <= _FAST else _FAST
        return {"fast": _decimal(fast), "slow": _decimal(min(_SLOW, fast)), "steady": _decimal(steady)}


def has_load_times(release: str | None) -> bool:
    """Whether servers of this release (YY.MM; None for the default one) say how long models took to load."""
    return order_of(release or DEFAULT_RELEASE.name) >= _FIRST_WITH_LOAD_TIMES


def promises(model: ModelSpec) -> Iterator[Promise]:
    """What a model's `slo` promises, shortest time first."""
    if model.slo is None:
        return
    for objective, limit_us in model.slo.times_us.items():
        yield Promise(model.name, objective, 1 - Fraction(objective.removeprefix("p")) / 100, limit_us)
    if model.slo.error_rate:  # of 0 there is no part that could be used up too fast
        yield Promise(model.name, ERRORS, Fraction(repr(model.slo.error_rate)))


def why_not_watched(promise: Promise, model: ModelSpec, exported: Exported) -> str:
    """Why no alert can be made of a promise; empty where one is."""
    if promise.limit_us is None:
        return ""
    if not exported.quantiles:
        return "the server shows no quantiles of times without summary_latencies"
    if not exported.shows_quantiles(model):
        return "Triton shows no quantiles of whole requests for models with a response cache"
    if promise.most_missed(exported) < promise.budget:
        lowest = f"{min(exported.quantiles):.16g}"
        return f"the lowest of the server's summary_quantiles is {lowest}, which does not tell whether more than {float(promise.budget):.0%} took longer"
    return ""


def objectives(kept: Sequence[Promise]) -> tuple[str, ...]:
    """What is promised of any model, each once."""
    return tuple(dict.fromkeys(promise.objective for promise in sorted(kept, key=lambda promise: (promise.objective == ERRORS, promise.objective))))


def _decimal(share: Fraction) -> str:
    """A share as a decimal number without an exponent, exact to 15 places."""
    return f"{float(share):.15f}".rstrip("0").rstrip(".")
