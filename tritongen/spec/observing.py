"""What the server shows of itself: metrics and its log."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, field_validator

from tritongen.spec.options import Milliseconds
from tritongen.spec.strict import Strict, setting
from tritongen.spec.values import Flag, Size32, raise_all, twice


class Quantile(Strict, json_schema_extra={"examples": [{"quantile": 0.99, "error": 0.001}]}):
    """One line of the summaries."""

    quantile: Annotated[float, Field(gt=0, lt=1)] = setting("Which one; 0.99 is p99.", default=..., sets="--metrics-config=summary_quantiles", why="to see it")
    error: Annotated[float, Field(gt=0, lt=1)] = setting(
        "How far off it may be, as a share of the requests.", default=..., sets="--metrics-config=summary_quantiles", why="smaller ones cost memory and time"
    )

    @property
    def text(self) -> str:
        """As the server's option has it: `0.99:0.001`, without an exponent."""
        return f"{_plain(self.quantile)}:{_plain(self.error)}"


def _plain(number: float) -> str:
    return f"{Decimal(repr(number)):f}"


class Metrics(Strict, json_schema_extra={"examples": [{"summary_latencies": True, "interval": "1s"}]}):
    """What Prometheus is shown."""

    enabled: Flag | None = setting("Whether there are metrics at all. Default: true.", sets="--allow-metrics", why="where nobody reads them")
    gpu: Flag | None = setting("Whether those of GPUs are among them. Default: true.", sets="--allow-gpu-metrics", why="where another exporter has them")
    cpu: Flag | None = setting("Whether those of the CPU are among them. Default: true.", sets="--allow-cpu-metrics", why="where another exporter has them")
    interval: Milliseconds | None = setting("Time between two looks at GPUs and CPU. Default: 2s.", sets="--metrics-interval-ms", why="to see short peaks")
    counter_latencies: Flag | None = setting(
        "Whether times are summed up, by stage. Default: true.", sets="--metrics-config=counter_latencies", why="averages are made of them"
    )
    histogram_latencies: Flag | None = setting(
        "Whether there are histograms of the time to the first response. Default: false.",
        sets="--metrics-config=histogram_latencies",
        why="histograms of several servers can be added up, which summaries cannot",
    )
    summary_latencies: Flag | None = setting(
        "Whether there are quantiles of times, by stage. Default: false.", sets="--metrics-config=summary_latencies", why="to see p99, and be warned by it"
    )
    summary_quantiles: tuple[Quantile, ...] = setting(
        "Which quantiles. Default: p50, p90, p95, p99 and p99.9.",
        default=(),
        sets="--metrics-config=summary_quantiles",
        why="to see others, or fewer; each costs a little for every request",
    )

    @field_validator("summary_quantiles")
    @classmethod
    def _each_once(cls, quantiles: tuple[Quantile, ...]) -> tuple[Quantile, ...]:
        raise_all(twice([f"quantile {each.quantile:.16g}" for each in quantiles], consequence="Prometheus gets one series twice"), quantiles)
        return quantiles


class Log(Strict, json_schema_extra={"examples": [{"verbose": 1, "format": "ISO8601"}]}):
    """What the server writes."""

    verbose: Size32 | None = setting("How much about each request: 0 is nothing. Default: 0.", sets="--log-verbose", why="to find a mistake; it costs time")
    info: Flag | None = setting("Whether it says what it does. Default: true.", sets="--log-info", why="where only trouble is of interest")
    warning: Flag | None = setting("Whether it warns. Default: true.", sets="--log-warning", why="rarely")
    error: Flag | None = setting(
        "Whether it says what went wrong. Default: true.", sets="--log-error", why="rarely: why a model did not load stands there alone"
    )
    format: Literal["default", "ISO8601"] | None = setting(
        "How each line begins. Default: default, such as `I1130 12:00:00.000000 1 `.", sets="--log-format", why="for programs that read times"
    )
