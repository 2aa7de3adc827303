"""A load test's result as one HTML file, which needs no network and no script."""

from __future__ import annotations

import json
from typing import Any

from tritongen.load.compare import Comparison
from tritongen.load.compare import Figure as Compared
from tritongen.load.findmax import Found
from tritongen.load.model_result import percentiles
from tritongen.load.result import LoadResult
from tritongen.load.serverside import ServerSide
from tritongen.load.verdict import FEWEST_BEYOND
from tritongen.report.load import described_loop, formatted_change, formatted_figure, gauge, promised, unanswered, verdict
from tritongen.report.load_charts import figures
from tritongen.report.load_rows import MEASURES, Row, model_rows, stage_rows, whole_row
from tritongen.report.load_search import described_search
from tritongen.report.text import printable
from tritongen.templating import environment


def load_page(result: LoadResult, comparison: Comparison | None = None, found: Found | None = None) -> str:
    """The page.

    Args:
        result: the run that it is about.
        comparison: an earlier run beside it: a table of what changed, and that run's percentiles in the chart of them.
        found: the search that it was a part of: a table and a chart of the rates that were tried.
    """
    messages = result.recorder.messages.most_common()
    return (
        environment()
        .get_template("load_report.html.j2")
        .render(
            title=f"Load test of {printable(result.plan.names)}",
            started=printable(result.started),
            url=printable(result.plan.url),
            loop_words=described_loop(result),
            others=unanswered(result),
            verdict=verdict(result),
            mood=_mood(result),
            fewest=FEWEST_BEYOND,
            reasons=_reasons(result),
            limits=[printable(sentence) for sentence in result.limits()],
            notes=[printable(note) for note in result.remarks],
            names=MEASURES,
            rows=[_cells(row) for row in (whole_row(result), *stage_rows(result), *model_rows(result))],
            search=_search(found),
            figures=figures(result, comparison, found),
            several=len(result.plan.models) > 1,
            promises=promised(result),
            errors=[(printable(model), outcome, printable(message), count) for (model, outcome, message), count in messages],
            servers=[(printable(part.load.model), _server(part.server)) for part in result.models if part.server is not None],
            senders=[(printable(sender.name), f"{sender.cpu_s:.2f}", f"{sender.wall_s:.2f}", f"{sender.share:.0%}") for sender in result.senders],
            delays=[
                (words, [(name, f"{value:.3f}") for name, value in percentiles(of)])
                for words, of in (("Sent late", result.recorder.late), ("Answers that had come and were unread", result.recorder.unread))
                if of.count
            ],
            comparison=_compared(comparison),
            settings=[(name, _value(value)) for name, value in result.settings.items()],
            versions=[(name, printable(version)) for name, version in result.versions.items()],
        )
    )


def _mood(result: LoadResult) -> str:
    """The class of the verdict."""
    if result.invalid or result.missed_slo() or not result.complete:
        return "bad"
    return "good" if result.plan.promises else "plain"


def _reasons(result: LoadResult) -> list[str]:
    """What the verdict stands on; promises that were missed say so where the verdict is another, for which they are no reason."""
    missed = "" if verdict(result) == "SLO MISSED" else "SLO missed: "
    return [printable(reason) for reason in (*result.invalid, *(f"{missed}{promise}" for promise in result.missed_slo()))]


def _cells(row: Row) -> tuple[str, list[str], list[tuple[str, bool]]]:
    """A line of the table of latencies: its name, its counts and rates, and (text, whether few samples lie beyond that percentile) for each measure."""
    counts = [f"{row.sent}", f"{row.rate:.1f}", f"{row.latencies.count}", row.errors]
    return row.name, counts, [(row.latency(name, 3), row.is_thin(name)) for name in MEASURES]


def _search(found: Found | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"words": described_search(found), "rows": [(f"{probe.rate:.1f}", "; ".join(map(printable, probe.reasons)) or "kept") for probe in found.probes]}


def _server(server: ServerSide) -> list[tuple[str, str]]:
    counted = {
        "requests": server.requests,
        "failures": server.failures,
        "rows": server.inferences,
        "executions": server.executions,
        "response cache hits": server.cache_hits,
        "response cache misses": server.cache_misses,
    }
    return [
        *((name, f"{count:,}") for name, count in counted.items()),
        ("from", f"{server.window.begin_s:.1f} to {server.window.end_s:.1f} s of the run{'' if server.window.whole else ', its last answer'}"),
        *((f"largest {printable(name)}", gauge(name, value)) for name, value in server.gauges.items()),
    ]


def _compared(comparison: Comparison | None) -> dict[str, Any] | None:
    """What the template shows of a comparison, as text."""
    if comparison is None:
        return None

    def row(figure: Compared) -> tuple[str, str, str, str, str]:
        return printable(figure.title), formatted_figure(figure, figure.earlier), formatted_figure(figure, figure.now), formatted_change(figure), figure.note

    return {
        "path": printable(comparison.path),
        "started": printable(comparison.started),
        "rows": [row(figure) for figure in comparison.figures],
        "differences": [(printable(difference.name), printable(difference.earlier), printable(difference.now)) for difference in comparison.differences],
        "notes": [printable(note) for note in comparison.notes],
    }


def _value(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
