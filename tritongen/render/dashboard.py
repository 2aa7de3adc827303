"""Grafana's dashboard of a deployment, as JSON: an overview, the GPUs, and one row of panels for each model.

Every panel asks for a recorded series (the template of the recording rules names them), without variables of Grafana's: a panel shows what an alert sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tritongen.render.placement import placed_groups
from tritongen.render.promises import Exported, Promise
from tritongen.render.promql import promql_text, title_text
from tritongen.spec import ModelSpec

DASHBOARD_UID = "tritongen"
DATASOURCE_UID = "tritongen-prometheus"

_SCHEMA_VERSION = 39
"""Of Grafana 11; newer ones migrate it when they read it."""

_COLUMNS, _HEIGHT = 24, 7
_DATASOURCE = {"type": "prometheus", "uid": DATASOURCE_UID}


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        title: what it shows.
        unit: Grafana's name of the unit.
        text: how to read it; shown behind the i of the panel.
        queries: PromQL, each with the legend of its series.
        kind: `timeseries`, or `stat` for a single number.
        bounds: the least and the largest value of the axis, where both are known.
        thresholds: from which values on a number has which colour; the first one without a value.
    """

    title: str
    unit: str
    text: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    bounds: tuple[float, float] | None = None
    thresholds: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True)
class Row:
    """A row with its panels, `wide` columns each."""

    title: str
    panels: tuple[Panel, ...]
    wide: int = 8


def dashboard(models: Sequence[ModelSpec], promises: Sequence[Promise], exported: Exported, *, has_wanted: bool) -> str:
    """The dashboard's file. Equal arguments give equal bytes.

    Args:
        models: those of the spec; each has a row.
        promises: those that are watched.
        exported: what the server exports.
        has_wanted: whether there are models that must be loaded.
    """
    rows = [_overview(has_wanted=has_wanted), *([_gpus()] if exported.gpus else [])]
    rows += [_model(model, [promise for promise in promises if promise.model == model.name], exported) for model in models]
    content = {
        "uid": DASHBOARD_UID,
        "title": "Triton",
        "tags": ["tritongen"],
        "description": "Written by tritongen from the spec. How to read it: docs/monitoring.md",
        "schemaVersion": _SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": []},
        "links": [],
        "panels": list(_placed(rows)),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _placed(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Every row and panel with its number and its place on the grid, from top to bottom."""
    number, top = 0, 0
    for row in rows:
        number += 1
        grid = {"h": 1, "w": _COLUMNS, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": title_text(row.title), "collapsed": False, "gridPos": grid, "panels": []}
        top += 1
        height = _HEIGHT if row.wide > 4 else 4
        across = _COLUMNS // row.wide
        for index, panel in enumerate(row.panels):
            number += 1
            grid = {"h": height, "w": row.wide, "x": index % across * row.wide, "y": top + index // across * height}
            yield {"id": number, "gridPos": grid, **_panel(panel)}
        top += -(-len(row.panels) // across) * height


def _panel(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.bounds is not None:
        defaults |= {"min": panel.bounds[0], "max": panel.bounds[1]}
    if panel.thresholds:
        defaults["thresholds"] = {"mode": "absolute", "steps": [{"color": colour, "value": value} for colour, value in panel.thresholds]}
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "stat":
        options = {"colorMode": "value", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _DATASOURCE, "expr": expr, "legendFormat": legend}
            for index, (expr, legend) in enumerate(panel.queries)
        ],
    }


_GOOD_AT_1 = (("red", None), ("green", 1.0))
_BAD_FROM_1 = (("green", None), ("red", 1.0))


def _overview(*, has_wanted: bool) -> Row:
    loaded = Panel(
        "Models loaded",
        "percentunit",
        "The share of the models that must be loaded and are. Triton has no metric that says whether they are ready, too.",
        (("avg(model:triton_loaded)", "loaded"),),
        "stat",
        thresholds=_GOOD_AT_1,
    )
    panels = (
        Panel("Server", "none", "1 while the server shows its metrics.", (('min(up{job="tritonserver"})', "up"),), "stat", thresholds=_GOOD_AT_1),
        *((loaded,) if has_wanted else ()),
        Panel("Requests", "reqps", "Requests per second, over all models.", (("sum(model_version:triton_requests:rate1m)", "requests"),), "stat"),
        Panel(
            "Failed",
            "percentunit",
            "The share of all requests that failed in the last minute, whatever the reason.",
            (("sum(model_version_reason:triton_failures:rate1m) / (sum(model_version:triton_requests:rate1m) > 0)", "failed"),),
            "stat",
            thresholds=(("green", None), ("red", 0.01)),
        ),
        Panel("Waiting", "short", "Requests that wait for their execution.", (("sum(model_version:triton_pending_requests:sum)", "waiting"),), "stat"),
        Panel(
            "Alerts",
            "short",
            "Alerts that fire; Prometheus lists them under /alerts.",
            (('count(ALERTS{alertstate="firing"}) or vector(0)', "firing"),),
            "stat",
            thresholds=_BAD_FROM_1,
        ),
    )
    return Row("Overview", panels, wide=4)


def _gpus() -> Row:
    each = "{{instance}} {{gpu_uuid}}"
    panels = (
        Panel(
            "GPU use",
            "percentunit",
            "The share of time in which the GPU ran anything at all; 100 % can be one small kernel after another. MIG devices have none.",
            (("gpu:triton_gpu_utilization_share:max", each),),
            bounds=(0, 1),
        ),
        Panel(
            "GPU memory",
            "percentunit",
            "Memory in use by all processes. ONNX Runtime and TensorRT keep what they once took: it grows to a level and stays there.",
            (("gpu:triton_gpu_memory_share:max", each),),
            bounds=(0, 1),
        ),
        Panel("GPU memory in bytes", "bytes", "The same, as an amount.", (("gpu:triton_gpu_memory_used_bytes:max", each),)),
    )
    return Row("GPUs", panels)


def _model(model: ModelSpec, promises: Sequence[Promise], exported: Exported) -> Row:
    """The panels of one model; each version is a line."""
    own = f"{{model={promql_text(model.name)}}}"
    each = "version {{version}}"
    panels = [
        Panel("Requests", "reqps", "Requests per second, answered or not.", ((f"model_version:triton_requests:rate1m{own}", each),)),
        Panel(
            "Errors by reason",
            "percentunit",
            "The share of requests that failed. REJECTED: it waited too long. BACKEND: the model failed. CANCELED: its client went. OTHER: the rest."
            " Requests that a full queue turns away are not counted by 24.10: their clients see them.",
            ((f"model_version_reason:triton_error_share:rate1m{own}", "{{reason}}, version {{version}}"),),
        ),
        *_latency(model, own, promises, exported),
        Panel(
            "Rows in a batch",
            "short",
            "Rows per execution, on average. Far below the preferred sizes under load: the requests do not fit together, or the queue delay is too short.",
            ((f"model_version:triton_batch_rows:mean1m{own}", each),),
        ),
        *(_shares(own) if exported.counters else ()),
        Panel("Waiting requests", "short", "Requests that wait for their execution.", ((f"model_version:triton_pending_requests:sum{own}", each),)),
        *((_instances(model, own),) if exported.counters else ()),
    ]
    if model.response_cache:
        text = "The share of requests that the response cache answered."
        panels.append(Panel("Answered by the cache", "percentunit", text, ((f"model_version:triton_cache_hit_share:rate1m{own}", each),), bounds=(0, 1)))
    if promises:
        text = (
            "How many times faster than it lasts what may be missed is used up. 1 keeps the promise to the last request; 14.4 calls somebody, or less where"
            " that cannot be reached."
        )
        queries = (
            (f"model_objective:triton_slo_burn:5m{own}", "{{objective}}, 5 minutes"),
            (f"model_objective:triton_slo_burn:1h{own}", "{{objective}}, 1 hour"),
        )
        panels.append(Panel("Promises used up", "short", text, queries))
    if exported.load_times:
        panels.append(Panel("Time to load", "s", "How long the last load took.", ((f"model_version:triton_load_seconds:max{own}", each),)))
    return Row(f"Model {model.name}", tuple(panels))


def _latency(model: ModelSpec, own: str, promises: Sequence[Promise], exported: Exported) -> Iterator[Panel]:
    """The time of a request, with the times that are promised beside it."""
    queries: list[tuple[str, str]] = []
    if exported.counters:
        queries.append((f"model_version:triton_latency_seconds:mean1m{own}", "mean, version {{version}}"))
    if exported.shows_quantiles(model):
        queries.append((f"model_version_quantile:triton_latency_seconds:max{own}", "quantile {{quantile}}, version {{version}}"))
    if any(promise.limit_us is not None for promise in promises):
        queries.append((f"model_objective:triton_slo_limit_seconds{own}", "promised {{objective}}"))
    if queries:
        text = "From a request's arrival in the server to its answer: network and client come on top. Quantiles are those of the last minute."
        yield Panel("Latency", "s", text, tuple(queries))


def _shares(own: str) -> tuple[Panel]:
    text = "Where a request's time goes. Much queue: more copies, larger batches, or less load. What is missing to 100 % is the server's own work."
    queries = (
        (f"model_version:triton_queue_share:rate1m{own}", "queue, version {{version}}"),
        (f"model_version:triton_compute_share:rate1m{own}", "compute, version {{version}}"),
    )
    return (Panel("Queue and compute", "percentunit", text, queries, bounds=(0, 1)),)


def _instances(model: ModelSpec, own: str) -> Panel:
    groups = placed_groups(model)
    copies = sum(group.copies for group in groups)
    where = " on each GPU" if any(group.kind in ("auto", "gpu") and not group.gpus for group in groups) else ""
    text = f"Copies that compute at the same time, of {copies}{where}. Near that number, more load only makes the queue longer."
    return Panel("Busy copies", "short", text, ((f"model_version:triton_busy_instances:rate1m{own}", "version {{version}}"),))
