"""What Prometheus and Grafana are told of a deployment: which pages to read, what to compute, when to warn, and the dashboard.

Only what the server exports is computed: that follows from its release, its options and its devices. The names of the computed series stand in the template
of the recording rules. Pure; the compose file decides where the files are mounted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tritongen.render.dashboard import DATASOURCE_UID, dashboard
from tritongen.render.findings import Findings
from tritongen.render.promises import MISSED_WINDOWS, WINDOWS, Exported, Promise, objectives, promises, why_not_watched
from tritongen.spec import ModelSpec, Spec
from tritongen.spec.strict import listed
from tritongen.spec.units import duration_text
from tritongen.templating import environment

HOST = "tritonserver"
"""The server's name in the network of the containers; what its series have as `instance`."""


_LEAST_START_US = 120_000_000
"""Time that any first start may take."""


def monitoring_files(spec: Spec, exported: Exported, *, ready: Collection[str] | None = None, start_us: int = 0) -> Mapping[str, str]:
    """The files for Prometheus and Grafana, by path below the folder that holds both.

    `prometheus/` belongs at /etc/prometheus, `grafana/provisioning/` at /etc/grafana/provisioning and `grafana/dashboards/` at /var/lib/grafana/dashboards.

    Args:
        spec: the models and what they promise.
        exported: what the server exports.
        ready: the models that the server must have, from its start on; by default all of them.
        start_us: how long a first start may take, in microseconds: until then a server that never had metrics is no alert.
    """
    kept = [promise for model in spec.models for promise in promises(model) if not why_not_watched(promise, model, exported)]
    context = {
        "host": HOST,
        "ready": [model.name for model in spec.models if ready is None or model.name in ready],
        "exported": exported,
        "has_quantiles": any(exported.shows_quantiles(model) for model in spec.models),
        "cached": any(model.response_cache for model in spec.models),
        "promises": kept,
        "objectives": objectives(kept),
        "windows": WINDOWS,
        "missed_windows": MISSED_WINDOWS,
        "starting": duration_text(max(start_us, _LEAST_START_US)),
        "uid": DATASOURCE_UID,
    }
    templates = {
        "prometheus/prometheus.yml": "prometheus.yml.j2",
        "prometheus/rules/recording.yml": "recording.yml.j2",
        "prometheus/rules/alerts.yml": "alerts.yml.j2",
        "grafana/provisioning/datasources/prometheus.yml": "datasource.yml.j2",
        "grafana/provisioning/dashboards/tritongen.yml": "dashboards.yml.j2",
    }
    files = {path: environment().get_template(f"monitoring/{template}").render(context) for path, template in templates.items()}
    return {**files, "grafana/dashboards/tritongen.json": dashboard(spec.models, kept, exported, has_wanted=bool(context["ready"]))}


def judge_promises(models: Sequence[ModelSpec], exported: Exported, findings: Findings) -> None:
    """Say which promises no alert can be made of (TG437).

    Args:
        models: those of the spec, in its order.
        exported: what the server exports.
        findings: a collector for keys of the whole spec.
    """
    for index, model in enumerate(models):
        lost: dict[str, list[Promise]] = {}
        for promise in promises(model):
            if reason := why_not_watched(promise, model, exported):
                lost.setdefault(reason, []).append(promise)
        for reason, kept in lost.items():
            names = [promise.objective for promise in kept]
            findings.advice(
                "TG437",
                ("models", index, "slo", names[0]),
                f"no alert is made of {listed(names)} of {model.name}: {reason}",
                consequence="Triton shows averages alone, which hide the slow requests; whether the promise is kept is seen by clients only"
                if not exported.shows_quantiles(model)
                else "whether the promise is kept is seen by clients only",
                hint=_what_to_do(kept, model, exported),
            )


def _what_to_do(lost: Sequence[Promise], model: ModelSpec, exported: Exported) -> str:
    """How promises can be watched all the same."""
    if not exported.quantiles:
        return "write server: {metrics: {summary_latencies: true}}"
    if not exported.shows_quantiles(model):
        return "watch them from the clients, or leave response_cache out"
    return f"add {', '.join(f'{float(1 - promise.budget):g}' for promise in lost)} to server.metrics.summary_quantiles"
