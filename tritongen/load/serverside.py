"""What the server itself counted during a run: differences of its statistics and metrics between two moments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
"""Where a request's time goes inside Triton, in the words of its statistics."""

_LINE = re.compile(r"^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>[-+0-9.eEnaInf]+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Window:
    """A span of time, in seconds from the run's beginning. `whole`: the server still answered at its end, and had answered every request."""

    begin_s: float = 0.0
    end_s: float = 0.0
    whole: bool = True


@dataclass(frozen=True)
class ServerSide:
    """One model over a span of time, added up over its versions.

    Attributes:
        requests: requests that succeeded.
        failures: requests that failed.
        inferences: rows that were executed.
        executions: how often the model ran; `inferences / executions` is the average batch.
        mean_ms: mean time of a request in each of `PARTS`, in milliseconds.
        batches: how often each batch size ran.
        cache_hits, cache_misses: of the response cache.
        gauges: the largest value seen of some gauges: pending requests, GPU use (0 to 1) and memory (bytes).
        window: the time that it is about.
    """

    requests: int
    failures: int
    inferences: int
    executions: int
    mean_ms: Mapping[str, float]
    batches: Mapping[int, int]
    cache_hits: int = 0
    cache_misses: int = 0
    gauges: Mapping[str, float] = field(default_factory=dict)
    window: Window = Window()

    @property
    def average_batch(self) -> float:
        """Rows in one execution; 0 where nothing ran."""
        return self.inferences / self.executions if self.executions else 0.0

    @property
    def requests_together(self) -> float:
        """Requests in one execution; 0 where nothing ran. Of requests with several rows, an average batch is large also where each ran alone."""
        return max(self.requests - self.cache_hits, 0) / self.executions if self.executions else 0.0


def difference(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], gauges: Mapping[str, float] | None = None, window: Window = Window()
) -> ServerSide:
    """What happened between two answers of the statistics endpoint about one model. A version that was loaded in between counts from zero."""
    first, last = _sums(before), _sums(after)
    delta = {key: max(last.get(key, 0) - first.get(key, 0), 0) for key in last}
    if any(last.get(key, 0) < first.get(key, 0) for key in (("inference", "count"), ("execution", "count"))):
        delta = dict(last)  # the model was loaded again, and its counters with it
    count = delta.get(("success", "count"), 0)
    mean = {part: delta.get((part, "ns"), 0) / max(delta.get((part, "count"), 0), 1) / 1e6 for part in PARTS}
    batches = {size: int(number) for (name, size), number in delta.items() if name == "batch" and isinstance(size, int) and number}
    return ServerSide(
        int(count),
        int(delta.get(("fail", "count"), 0)),
        int(delta.get(("inference", "count"), 0)),
        int(delta.get(("execution", "count"), 0)),
        mean,
        dict(sorted(batches.items())),
        int(delta.get(("cache_hit", "count"), 0)),
        int(delta.get(("cache_miss", "count"), 0)),
        gauges or {},
        window,
    )


def _sums(statistics: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str | int], float]:
    """Counters over all versions. gRPC gives 64-bit numbers as text."""
    found: dict[tuple[str, str | int], float] = {}

    def add(key: tuple[str, str | int], value: object) -> None:
        found[key] = found.get(key, 0) + int(value or 0)  # type: ignore[call-overload]

    for version in statistics:
        add(("inference", "count"), version.get("inference_count"))
        add(("execution", "count"), version.get("execution_count"))
        for name, duration in (version.get("inference_stats") or {}).items():
            add((name, "count"), duration.get("count"))
            add((name, "ns"), duration.get("ns"))
        for batch in version.get("batch_stats") or ():
            add(("batch", int(batch.get("batch_size", 0))), (batch.get("compute_infer") or {}).get("count"))
    return found


def parse_metrics(text: str) -> list[tuple[str, Mapping[str, str], float]]:
    """The samples of a page in Prometheus's text format: name, labels, value. Lines that are none are left out."""
    samples: list[tuple[str, Mapping[str, str], float]] = []
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match is None or line.startswith("#"):
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        samples.append((match["name"], dict(_LABEL.findall(match["labels"] or "")), value))
    return samples


def gauges_of(text: str, model: str) -> dict[str, float]:
    """The gauges that matter for a run, of one moment: pending requests of the model, use and memory of each GPU."""
    found: dict[str, float] = {}
    for name, labels, value in parse_metrics(text):
        if name == "nv_inference_pending_request_count" and labels.get("model") == model:
            found["pending requests"] = max(found.get("pending requests", 0.0), value)
        elif name in ("nv_gpu_utilization", "nv_gpu_memory_used_bytes"):
            what = "use" if name == "nv_gpu_utilization" else "memory"
            found[f"GPU {labels.get('gpu_uuid', '?')} {what}"] = value
    return found
