"""How fast answers must come, and how many may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationInfo, field_validator, model_validator

from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import Duration, Percent, duration_text
from tritongen.spec.values import problem

PERCENTILES = ("p50", "p90", "p95", "p99")


def _limit(key: str, share: str, why: str) -> Any:
    return setting(f"{share} requests are answered within this time.", alias=key, sets="no field; delays and timeouts are judged by it", why=why)


class Slo(Strict, json_schema_extra={"examples": [{"p50": "8ms", "p99": "20ms", "error_rate": "0.1%"}]}):
    """What clients are promised: the longest that a request may take, from the client's request to its answer, by percentile, and how many may fail.

    Triton is not told of it: settings are judged by it, the alerts of a deployment are made from it, and load tests are judged by it.
    """

    p50_us: Duration | None = _limit("p50", "Half of all", "it is what a usual request feels like")
    p90_us: Duration | None = _limit("p90", "Nine of ten", "it is the tail that many users meet")
    p95_us: Duration | None = _limit("p95", "19 of 20", "it is the tail that most agreements name")
    p99_us: Duration | None = _limit("p99", "99 of 100", "it is what a page of many requests waits for")
    error_rate: Percent | None = setting(
        "The part of all requests that may fail, as a percentage or 0; those that their client cancelled do not count.",
        sets="no field; a deployment's alerts are made from it unless it is 0, and load tests are judged by it",
        why="to be woken where more fail than was promised, and not by each that does",
    )

    @field_validator("p50_us", "p90_us", "p95_us", "p99_us")
    @classmethod
    def _ascending(cls, limit_us: int | None, info: ValidationInfo) -> int | None:
        key = str(info.field_name).removesuffix("_us")
        if limit_us == 0:
            raise problem(f"{key} is 0, and every request takes some time", hint="write the time with its unit, such as 20ms")
        lower = [(name, info.data[f"{name}_us"]) for name in PERCENTILES[: PERCENTILES.index(key)] if info.data.get(f"{name}_us")]
        if limit_us is not None and lower and lower[-1][1] > limit_us:
            name, below_us = lower[-1]
            raise problem(
                f"{key} is {duration_text(limit_us)}, below {name}: {duration_text(below_us)}",
                code="TG015",
                consequence=f"what {key[1:]} of 100 requests keep, {name[1:]} of 100 keep too",
                hint=f"write {key}: {duration_text(below_us)} or more, or lower {name}",
                beside=(name,),
            )
        return limit_us

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if value == {}:
            raise problem("it promises nothing", code="TG009", hint="write slo: {p99: 20ms}, with one of p50, p90, p95, p99 and error_rate")
        return value

    @property
    def times_us(self) -> Mapping[str, int]:
        """The times that are promised, in microseconds by percentile, the lowest first."""
        return {name: limit for name in PERCENTILES if (limit := getattr(self, f"{name}_us")) is not None}

    @property
    def tightest(self) -> tuple[str, int]:
        """The shortest of the times: its key, and itself in microseconds. There must be one."""
        return next(iter(self.times_us.items()))
