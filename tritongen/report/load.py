"""A load test's result for people."""

from __future__ import annotations

from collections.abc import Sequence

from tritongen.load.compare import Comparison, Figure
from tritongen.load.model_result import ModelResult, measure
from tritongen.load.result import LoadResult
from tritongen.load.serverside import PARTS, ServerSide
from tritongen.load.verdict import FEWEST_BEYOND
from tritongen.report.charts import number
from tritongen.report.load_rows import MEASURES, Row, model_rows, stage_rows, whole_row
from tritongen.report.text import printable

FOOTNOTE = f"* fewer than {FEWEST_BEYOND} samples lie beyond it, so that it differs from run to run by itself"
_SHOWN_ERRORS = 5


def format_load(result: LoadResult) -> str:
    """The result in some twenty lines: what was sent, the tail, the stages, errors, the server's side, and the verdict."""
    plan, whole = result.plan, whole_row(result)
    lines = [f"{printable(plan.names)} at {plan.url}: {described_loop(result)}", ""]
    count, others, due = whole.latencies.count, unanswered(result), whole.due
    lines.append(f"  answered   {count} of {due} requests in {round(result.measured_s, 1):g} s{f' ({others})' if others else ''}")
    if count:
        lines.append(f"  latency    {_tail(whole)}")
    lines += _sending(result)
    stages, models = stage_rows(result), model_rows(result)
    lines += [*_table("stage", stages), *_table("model", models)]
    lines += _errors(result)
    for part in result.models:
        lines += _server(part, printable(part.load.model) if len(plan.models) > 1 else "server")
    if any(row.is_thin("p99.99") for row in (whole, *stages, *models)):
        lines += ["", f"  {FOOTNOTE}"]
    lines += ["", *(f"  {printable(sentence)}" for sentence in result.limits())]
    lines += [f"  NOTE: {printable(note)}" for note in result.remarks]
    lines += [f"  NOT VALID: {printable(reason)}" for reason in result.invalid]
    lines += [f"  SLO MISSED: {printable(reason)}" for reason in result.missed_slo()]
    if not result.complete and not result.trouble:
        lines.append("  BROKEN OFF before its end")
    elif verdict(result) == "SLO kept":
        lines.append("  SLO kept")
    lines += [f"  {promise}" for promise in promised(result)]
    return "\n".join(lines)


def promised(result: LoadResult) -> list[str]:
    """What was promised, and where; a line for each model, with its name where there are several."""
    lines = []
    for load in result.plan.models:
        parts = [f"{name} {limit:g} ms" for name, limit in load.slo.percentiles.items()]
        parts += [] if load.slo.error_rate is None else [f"errors {load.slo.error_rate:.3%}"]
        whose = f" of {printable(load.model)}" if len(result.plan.models) > 1 else ""
        lines += [f"the SLO{whose}: {', '.join(parts)}, from {printable(load.slo_from)}"] if parts and load.slo_from else []
    return lines


def _tail(whole: Row) -> str:
    """Percentiles with their unit; those that stand on few samples are marked."""
    return "   ".join(f"{name} {marked(whole, name)}" for name in MEASURES) + "   ms"


def marked(row: Row, name: str) -> str:
    """A measure in milliseconds, with a mark where it stands on few samples."""
    return row.latency(name, 2) + "*" * row.is_thin(name)


def _sending(result: LoadResult) -> list[str]:
    """How far the sending side kept to its schedule (of a closed loop, which has none, how late it woke up), and for how long it left answers unread."""
    recorder, closed = result.recorder, result.plan.users
    missed = "" if closed else f"   {recorder.missed_in()} never sent"
    lines = [("lag", recorder.lag, "") if closed else ("late", recorder.late, missed), ("unread", recorder.unread, "")]
    return [
        f"  {word:<11}{'   '.join(f'{name} {measure(of, name):.2f}' for name in ('p50', 'p99', 'max'))}   ms{beside}" for word, of, beside in lines if of.count
    ]


def _table(what: str, rows: Sequence[Row]) -> list[str]:
    """A line for each row below the names of its columns, and an empty one above; nothing without rows."""
    names = ("p50", "p99", "p99.9", "max")
    lines = [[what, "sent", "sent/s", *names, "errors"]]
    lines += [[row.name, str(row.sent), f"{row.rate:.1f}", *(marked(row, name) for name in names), row.errors] for row in rows]
    return ["", *(f"  {name:<18}{sent:>8}" + "".join(f"{cell:>10}" for cell in cells) for name, sent, *cells in lines)] if rows else []


def verdict(result: LoadResult) -> str:
    """The judgement of a run in two words or so; what stands first in this order: not valid, broken off, the SLO."""
    if result.invalid:
        return "NOT VALID"
    if not result.complete:
        return "BROKEN OFF"
    if not result.plan.promises:
        return "no SLO was given"
    return "SLO MISSED" if result.missed_slo() else "SLO kept"


def described_loop(result: LoadResult) -> str:
    """How requests were sent, with the rates, or with the warning that a closed loop needs."""
    if result.plan.users:
        users = f"{result.plan.users} user{'s' if result.plan.users > 1 else ''}"
        return f"closed loop of {users} (it waits for answers: a server that stands still hardly shows)"
    measured = [stage.name for stage in result.plan.stages if stage.measured]
    # Irregular arrivals are drawn: how many were due is not quite what was asked for. Several stages have their rates in a table.
    asked = f" ({measured[0]} asked)" if len(measured) == 1 and result.plan.arrivals != "trace" else ""
    return f"open loop, {result.rate:.1f} requests/s sent of {result.target_rate:.1f} that were due{asked}, {result.plan.arrivals} arrivals"


def unanswered(result: LoadResult) -> str:
    """What was not answered well, by outcome, and what was never sent; empty where there is none."""
    missed = result.recorder.missed_in()
    parts = [f"{count} {outcome}" for outcome, count in sorted(result.counts.items()) if outcome != "ok"] + ([f"{missed} never sent"] if missed else [])
    return ", ".join(parts)


def format_comparison(comparison: Comparison) -> str:
    """Both runs beside each other, what differs in their settings, and what stands against comparing them."""
    begun = f", begun {printable(comparison.started)}" if comparison.started else ""
    width = max(14, *(len(printable(figure.title)) for figure in comparison.figures)) + 2
    lines = [f"compared with {printable(comparison.path)}{begun}", "", f"  {'':<{width}}{'earlier':>14}{'now':>14}{'change':>12}"]
    for figure in comparison.figures:
        values = "".join(f"{formatted_figure(figure, value):>14}" for value in (figure.earlier, figure.now))
        lines.append(f"  {printable(figure.title):<{width}}{values}{formatted_change(figure):>12}{f'   {figure.note}' if figure.note else ''}")
    if comparison.differences:
        lines += ["", "  settings and versions that differ"]
        lines += [f"    {printable(entry.name)}: {printable(entry.earlier)}, now {printable(entry.now)}" for entry in comparison.differences]
    lines += [f"  NOTE: {printable(note)}" for note in comparison.notes]
    return "\n".join(lines)


def formatted_figure(figure: Figure, value: float | None) -> str:
    """One of its values with the unit."""
    return "-" if value is None else f"{value:.{3 if figure.unit in ('%', 'ms') else 2}f} {figure.unit}"


def formatted_change(figure: Figure) -> str:
    """Its difference in percent, with the sign."""
    return "-" if figure.change is None else f"{round(figure.change, 3) + 0.0:+.1%}"


def _errors(result: LoadResult) -> list[str]:
    if not result.recorder.messages:
        return []
    lines = ["", "  errors"]
    for (model, outcome, message), count in result.recorder.messages.most_common(_SHOWN_ERRORS):
        whose = f"{printable(model)}: " if len(result.plan.models) > 1 else ""
        lines.append(f"    {count:>7} x {whose}{outcome}: {printable(message)}")
    rest = len(result.recorder.messages) - _SHOWN_ERRORS
    return [*lines, f"    and {rest} other kinds"] if rest > 0 else lines


def _server(part: ModelResult, title: str) -> list[str]:
    server = part.server
    if server is None or not server.executions:
        return []
    sizes = ", ".join(f"{size}: {count}" for size, count in server.batches.items())
    split = "   ".join(f"{name.removeprefix('compute_')} {server.mean_ms[name]:.2f}" for name in PARTS)
    batch = f"average batch {server.average_batch:.2f} rows, of {server.requests_together:.2f} requests  (executions by size {sizes})"
    lines = ["", f"  {title:<10} {batch}", f"             {split}   ms on average"]
    lines.append(f"             {counted(part, server)}")
    if server.cache_hits or server.cache_misses:
        lines.append(f"             response cache: {server.cache_hits} hits, {server.cache_misses} misses")
    for name, value in server.gauges.items():
        lines.append(f"             largest {printable(name)}: {gauge(name, value)}")
    return lines


def gauge(name: str, value: float) -> str:
    """A gauge of the metrics page as people read it: a GPU's use is given as a part, and its memory in bytes."""
    if name.startswith("GPU ") and name.endswith(" use"):
        return f"{value:.0%}"
    return f"{value / 2**30:.2f} GiB" if name.startswith("GPU ") and name.endswith(" memory") else number(value)


def counted(part: ModelResult, server: ServerSide) -> str:
    """What the server counted and when, beside what was answered here."""
    window = server.window
    end = "" if window.whole else ", when it answered for the last time"
    return (
        f"counted {server.requests} requests, and {server.failures} that failed, from {window.begin_s:.1f} to {window.end_s:.1f} s of the run{end};"
        f" {part.latencies().count} were answered here"
    )
