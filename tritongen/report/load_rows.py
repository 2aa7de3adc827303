"""The rows of a load test's tables: the whole run, each stage, each model; what one says where it had nothing to count."""

from __future__ import annotations

from dataclasses import dataclass

from tritongen.load.histogram import Histogram
from tritongen.load.model_result import measure
from tritongen.load.recorder import PERCENTILES
from tritongen.load.result import LoadResult
from tritongen.load.verdict import is_thin
from tritongen.report.text import printable

MEASURES = (*(f"p{value:g}" for value in PERCENTILES), "max")
"""The usual percentiles, and the largest."""

NOTHING = "-"
"""What stands where nothing was answered, or nothing was due: 0 would be a figure."""


@dataclass(frozen=True)
class Row:
    """A part of a run.

    Attributes:
        name: of the stage or the model, as it can be printed.
        sent: requests that were sent.
        due: those that were due: sent or not.
        rate: requests a second that were sent.
        error_rate: the part of all due requests that were not answered well.
        latencies: of those that were.
    """

    name: str
    sent: int
    due: int
    rate: float
    error_rate: float
    latencies: Histogram

    @property
    def errors(self) -> str:
        """The error rate in percent."""
        return f"{self.error_rate:.3%}" if self.due else NOTHING

    def latency(self, name: str, digits: int) -> str:
        """A measure such as `p99` or `max` in milliseconds."""
        return f"{measure(self.latencies, name):.{digits}f}" if self.latencies.count else NOTHING

    def is_thin(self, name: str) -> bool:
        """Whether a measure is a percentile that stands on few samples."""
        return bool(self.latencies.count) and name.startswith("p") and is_thin(self.latencies.count, name)


def whole_row(result: LoadResult) -> Row:
    """The row of all requests."""
    return Row("all", sum(result.recorder.sent.values()), result.due, result.rate, result.error_rate, result.latencies())


def stage_rows(result: LoadResult) -> list[Row]:
    """A row for each measured stage; none where there is but one."""
    stages = [(index, stage.name) for index, stage in enumerate(result.plan.stages) if stage.measured]
    return [_stage(result, index, name) for index, name in stages] if len(stages) > 1 else []


def _stage(result: LoadResult, index: int, name: str) -> Row:
    sent = result.recorder.sent[index]
    due = sent + result.recorder.missed_in(stage=index)
    return Row(name, sent, due, result.stage_rate(index), result.stage_error_rate(index), result.latencies(index))


def model_rows(result: LoadResult) -> list[Row]:
    """A row for each model; none where there is but one."""
    if len(result.models) < 2:
        return []
    return [Row(printable(each.load.model), sum(each.counts.values()), each.due, each.rate, each.error_rate, each.latencies()) for each in result.models]
