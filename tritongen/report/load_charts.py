"""The pictures of a load test's result: which values are drawn on which scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tritongen.load.compare import Comparison
from tritongen.load.compare import Figure as Compared
from tritongen.load.findmax import Found
from tritongen.load.histogram import Histogram, Samples
from tritongen.load.model_result import ModelResult, measure
from tritongen.load.result import LoadResult
from tritongen.report.charts import Scale, Series, Shade, Tick, columns, line_chart, linear, logarithmic, stacked_bar, tail
from tritongen.report.text import printable

SPLIT_NAMES = {
    "queue": "queue",
    "compute_input": "input",
    "compute_infer": "infer",
    "compute_output": "output",
    "outside": "network + client",
}
_ALL_OF_IT = "The mean time of an answered request. The server counted queue, input, infer and output; what is left of the time measured here is outside it."
_AT_THE_SERVER = (
    "The mean time of a request at the server, which is more than the answers here took: it counts requests that were given up, or that others sent, too."
)
_MOST_STAGES_NAMED = 8
_SHORTEST_PART_S = 0.05
"""A second of which less than this was measured says nothing about a rate."""
_MOST_MOMENTS = 300
_STEPS_A_NINE = 40


@dataclass(frozen=True)
class Figure:
    """A chart with its heading, the names of its lines or areas in the order of their classes, and how to read it."""

    heading: str
    picture: Markup
    legend: Sequence[str]
    words: str
    filled: bool = False


@dataclass(frozen=True)
class Moment:
    """A second of a run, or some of a long one, by the instants at which requests were due.

    Attributes:
        begin: where it begins, in seconds from the run's beginning.
        end: where it ends.
        due: requests a second that were due.
        ok: those that were answered well.
        errors: those that failed.
        latencies: of those that were answered well.
    """

    begin: float
    end: float
    due: float
    ok: float
    errors: float
    latencies: Samples

    @property
    def middle(self) -> float:
        """Its middle, in seconds from the run's beginning."""
        return (self.begin + self.end) / 2

    @property
    def unanswered(self) -> float:
        """The part of its requests that got no good answer."""
        return 1 - self.ok / self.due if self.due else 0.0


def figures(result: LoadResult, comparison: Comparison | None, found: Found | None) -> list[Figure]:
    """Every chart that the result has values for; with the rates that a search tried where it is the result of one."""
    drawn: list[Figure] = []
    if result.latencies().count:
        drawn += [_latency_over_time(result), _distribution(result, comparison)]
    if result.recorder.seconds:
        drawn.append(_throughput(result))
    stages = [(stage.name, result.latencies(index), result.stage_seconds(index)) for index, stage in enumerate(result.plan.stages) if stage.measured]
    probes = [(f"{probe.rate:.4g}/s", probe.result.latencies(), probe.result.measured_s) for probe in found.probes] if found else []
    if len(probes or stages) > 1 and (loads := _loads(probes or stages)):
        drawn.append(
            _by_throughput(
                loads, _promises(result), f"One point for each {'rate that was tried' if probes else 'stage'}: what was answered well, and how fast."
            )
        )
    for part in result.models:
        drawn += _server_side(part, f" of {part.load.model}" if len(result.plan.models) > 1 else "")
    return drawn


def _server_side(part: ModelResult, whose: str) -> list[Figure]:
    """Where a model's time goes, and its batches, as far as the server said it. `whose` is added to headings."""
    drawn, split = [], part.split()
    if sum(split.values()):
        parts = [(SPLIT_NAMES[name], value) for name, value in split.items()]
        legend = [f"{name} {value:.2f} ms" for name, value in parts]
        words = _ALL_OF_IT if "outside" in split else _AT_THE_SERVER
        picture = stacked_bar("Mean time of a request by where it was spent", parts, "ms")
        drawn.append(Figure(printable(f"Where the time goes{whose}"), picture, legend, words, filled=True))
    if part.server is not None and part.server.batches:
        sizes = [(str(size), float(count)) for size, count in part.server.batches.items()]
        mean = f"{part.server.average_batch:.2f} rows of {part.server.requests_together:.2f} requests on average"
        words = f"How often the model ran with each number of rows; {mean}."
        picture = columns("Executions by batch size", sizes, "rows in the batch", "executions")
        drawn.append(Figure(printable(f"Executed batches{whose}"), picture, [], words))
    return drawn


def seconds_a_moment(result: LoadResult) -> int:
    """How many seconds are put together, so that a long run can be read."""
    return max(math.ceil(result.measured_s / _MOST_MOMENTS), 1)


def moments(result: LoadResult) -> list[Moment]:
    """The measured time in order. What was measured in part counts by that part; where there was no request, rates are 0."""
    seconds, step = result.recorder.seconds, seconds_a_moment(result)
    begin, end = _span(result)
    found = []
    for first in range(min(seconds), max(seconds) + 1, step):
        left, right = max(float(first), begin), min(float(first + step), end)
        if right - left < _SHORTEST_PART_S:
            continue
        inside = [seconds[number] for number in range(first, first + step) if number in seconds]
        due, ok, errors = (sum(counts) / (right - left) for counts in zip((0, 0, 0), *((one.due, one.ok, one.errors) for one in inside), strict=True))
        found.append(Moment(left, right, due, ok, errors, Samples.of(*(one.latencies for one in inside))))
    return found


def distribution(histogram: Histogram) -> list[tuple[float, float]]:
    """Points (percentile, milliseconds) that are even on `tail`'s scale, from the smallest sample to the largest."""
    count = histogram.count
    nines = math.log10(count)
    steps = math.ceil(nines * _STEPS_A_NINE)
    wanted = [100 - 100 * 10 ** -(step / _STEPS_A_NINE) for step in range(steps)] + [100.0]
    return [(percentile, value / 1000) for percentile, value in zip(wanted, Samples.of(histogram).percentiles(wanted), strict=True)]


def _latency_scale(values: Sequence[float]) -> Scale:
    return logarithmic("latency (ms)", max(min(values), 0.001), max(*values, 0.001))


def _promises(result: LoadResult) -> list[tuple[float, str]]:
    several = len(result.plan.models) > 1
    return [
        (limit, f"SLO {name} {limit:g} ms{f' {printable(load.model)}' if several else ''}")
        for load in result.plan.models
        for name, limit in load.slo.percentiles.items()
    ]


def _outside(promises: Sequence[tuple[float, str]], y: Scale) -> str:
    """The promises whose lines lie off a scale, in sentences that follow others; a line that is not there might be taken for a promise that is not."""
    said = [f" {words} lies {'above' if y.position(limit) > 1 else 'below'} what is drawn." for limit, words in promises if not 0 <= y.position(limit) <= 1]
    return "".join(said)


def _parts(result: LoadResult) -> list[Tick]:
    """Where stages begin, for the charts over time."""
    stages = result.plan.stages
    if not 1 < sum(stage.measured for stage in stages) <= _MOST_STAGES_NAMED:
        return []
    begins = [sum(stage.seconds for stage in stages[:index]) for index in range(len(stages))]
    return [(begin, stage.name) for begin, stage in zip(begins, stages, strict=True) if stage.measured]


def _each(result: LoadResult) -> str:
    step = seconds_a_moment(result)
    return "each second" if step == 1 else f"each {step} seconds"


def _span(result: LoadResult) -> tuple[float, float]:
    """Beginning and end of the measured time, in seconds from the run's beginning."""
    return result.plan.begin_s, result.plan.begin_s + result.measured_s


def _time_scale(result: LoadResult) -> Scale:
    """Seconds, from the beginning of the measured time."""
    return linear("seconds from the beginning of the run", *_span(result), exact=True)


def _latency_over_time(result: LoadResult) -> Figure:
    names = ("p50", "p99", "max")
    all_moments = moments(result)
    found = [(moment.middle, moment.latencies.percentiles([50.0, 99.0, 100.0]) if moment.ok else None) for moment in all_moments]
    lines = [Series(name, [(middle, values[place] / 1000 if values else None) for middle, values in found]) for place, name in enumerate(names)]
    values = [value for line in lines for _, value in line.points if value is not None]
    y, promises = _latency_scale(values), _promises(result)
    picture = line_chart("Latency over time", _time_scale(result), y, lines, limits=promises, parts=_parts(result), shades=_shades(all_moments))
    words = f"Of the requests that were due in {_each(result)} and answered well, from the instant at which they were due."
    words += " Shaded: some got no good answer, and the more the deeper; where no line is, none did." * any(moment.unanswered for moment in all_moments)
    return Figure("Latency over time", picture, names, words + _outside(promises, y))


def _shades(found: Sequence[Moment]) -> list[Shade]:
    """Where requests got no good answer, so that a line that stays low, or ends, is not taken for a server that is fast, or was not asked."""
    return [
        Shade(moment.begin, moment.end, moment.unanswered, f"{moment.unanswered:.1%} of the requests got no good answer")
        for moment in found
        if moment.unanswered
    ]


def _distribution(result: LoadResult, comparison: Comparison | None) -> Figure:
    histogram = result.latencies()
    lines = [Series("this run", distribution(histogram))]
    if comparison is not None:
        earlier = [(float(figure.name[1:]), figure.earlier) for figure in comparison.figures if _is_percentile(figure) and figure.earlier]
        lines.append(Series("the earlier run", earlier, marked=True))
    values = [value for line in lines for _, value in line.points if value]
    x, y, promises = tail("percentile", math.log10(histogram.count)), _latency_scale(values), _promises(result)
    picture = line_chart("Latency by percentile", x, y, lines, limits=promises)
    words = "Each step of the lower scale is ten times rarer than the one before; the line ends at the slowest request."
    return Figure("Latency by percentile", picture, [line.name for line in lines] if len(lines) > 1 else [], words + _outside(promises, y))


def _is_percentile(figure: Compared) -> bool:
    """Whether it is a percentile of all requests."""
    return figure.unit == "ms" and figure.name.startswith("p") and not figure.model


def _throughput(result: LoadResult) -> Figure:
    found = moments(result)
    lines = [
        Series("due", [(moment.middle, moment.due) for moment in found]),
        Series("answered", [(moment.middle, moment.ok) for moment in found]),
        Series("errors", [(moment.middle, moment.errors) for moment in found]),
    ]
    top = max((moment.due for moment in found), default=1.0)
    y = linear("requests a second", 0, top)
    picture = line_chart("Throughput over time", _time_scale(result), y, lines, parts=_parts(result))
    words = f"By the instants at which requests were due, for {_each(result)}. What was due and is neither answered nor an error was never sent."
    return Figure("Throughput over time", picture, [line.name for line in lines], words)


@dataclass(frozen=True)
class _Load:
    """How fast requests were answered at one rate: answered requests a second, and percentiles in milliseconds."""

    name: str
    rate: float
    p50: float
    p99: float


def _loads(runs: Sequence[tuple[str, Histogram, float]]) -> list[_Load]:
    """From names, latencies and seconds; those without an answer are left out."""
    found = [
        _Load(name, latencies.count / seconds, measure(latencies, "p50"), measure(latencies, "p99")) for name, latencies, seconds in runs if latencies.count
    ]
    return sorted(found, key=lambda load: load.rate)


def _by_throughput(loads: Sequence[_Load], promises: Sequence[tuple[float, str]], words: str) -> Figure:
    lines = [
        Series("p50", [(load.rate, load.p50) for load in loads], marked=True),
        Series("p99", [(load.rate, load.p99) for load in loads], marked=True, labels=[load.name for load in loads]),
    ]
    x = linear("answered requests a second", 0, max(load.rate for load in loads))
    y = _latency_scale([value for load in loads for value in (load.p50, load.p99)])
    picture = line_chart("Latency by throughput", x, y, lines, limits=promises)
    return Figure("Latency by throughput", picture, ["p50", "p99"], words + _outside(promises, y))
