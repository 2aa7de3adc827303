"""TG437: what is watched of a deployment."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry

ENTRIES = (
    CodeEntry(
        "TG437",
        "promise-that-nobody-watches",
        None,
        "Alerts can be made of the times in `slo`.",
        "Without --metrics-config=summary_latencies=true the server shows averages only, and for a model with a response cache it never shows quantiles of "
        "whole requests (core/src/metric_model_reporter.cc). Of a percentile below the lowest of summary_quantiles it cannot tell whether it is kept. What is"
        " promised is then kept or missed without an alert; that of errors is watched always.",
        "Write `server: {metrics: {summary_latencies: true}}`; add the percentile to summary_quantiles; watch a model with a response cache from its clients.",
        "slo: {p99: 20ms}",
        "server: {metrics: {summary_latencies: true}}\n# and for a model\nslo: {p99: 20ms}",
    ),
)
