"""A load test's result for people."""

from __future__ import annotations

import json
import math
from typing import Any

from tritongen.load.compare import FEWEST_BEYOND, Comparison, Figure, is_thin
from tritongen.load.findmax import Found, Probe
from tritongen.load.histogram import Histogram
from tritongen.load.model_result import ModelResult, measure, percentiles
from tritongen.load.recorder import summary
from tritongen.load.result import SCHEMA_VERSION, LoadResult
from tritongen.load.serverside import PARTS, ServerSide
from tritongen.report.text import printable

_SHOWN_ERRORS = 5


def format_load(result: LoadResult) -> str:
    """The result in some twenty lines: what was sent, the tail, the stages, errors, the server's side, and the verdict."""
    plan, counts = result.plan, result.counts
    lines = [f"{printable(plan.names)} at {plan.url}: {described_loop(result)}", ""]
    latencies = result.latencies()
    count = latencies.count
    others = unanswered(result)
    due = sum(counts.values()) + result.recorder.missed_in()
    lines.append(f"  answered   {count} of {due} requests in {round(result.measured_s, 1):g} s{f' ({others})' if others else ''}")
    if count:
        lines.append(f"  latency    {_tail(latencies)}")
    lines += _sending(result)
    stages = [(index, stage) for index, stage in enumerate(plan.stages) if stage.measured]
    if len(stages) > 1:
        lines += ["", f"  {'stage':<18}{'sent':>8}{'p50':>10}{'p99':>10}{'p99.9':>10}{'max':>10}"]
        for index, stage in stages:
            lines.append(f"  {_table_row(stage.name, result.recorder.sent[index], result.latencies(index))}")
    if len(plan.models) > 1:
        lines += ["", f"  {'model':<18}{'sent':>8}{'p50':>10}{'p99':>10}{'p99.9':>10}{'max':>10}   errors"]
        for part in result.models:
            lines.append(f"  {_table_row(printable(part.load.model), sum(part.counts.values()), part.latencies())}   {part.error_rate:.3%}")
    lines += _errors(result)
    for part in result.models:
        lines += _server(part, printable(part.load.model) if len(plan.models) > 1 else "server")
    if any(_mark(each, "p99.99") for each in (latencies, *(result.latencies(index) for index, _ in stages), *(part.latencies() for part in result.models))):
        lines += ["", f"  * fewer than {FEWEST_BEYOND} samples lie beyond it, so that it differs from run to run by itself"]
    lines += ["", *(f"  {printable(sentence)}" for sentence in result.limits())]
    lines += [f"  NOTE: {printable(note)}" for note in result.notes]
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


def _tail(latencies: Histogram) -> str:
    """Percentiles with their unit; those that stand on few samples are marked."""
    return "   ".join(f"{name} {value:.2f}{_mark(latencies, name)}" for name, value in percentiles(latencies)) + "   ms"


def _mark(latencies: Histogram, name: str) -> str:
    return "*" if latencies.count and name != "max" and is_thin(latencies.count, name) else ""


def _sending(result: LoadResult) -> list[str]:
    """How far the sending side kept to its schedule; of a closed loop, which has none, how late it woke up."""
    late, word = (result.recorder.lag, "lag") if result.plan.users else (result.recorder.late, "late")
    if not late.count:
        return []
    figures = "   ".join(f"{name} {measure(late, name):.2f}" for name in ("p50", "p99", "max"))
    missed = "" if result.plan.users else f"   {result.recorder.missed_in()} never sent"
    return [f"  {word:<11}{figures}   ms{missed}"]


def _table_row(name: str, sent: int, latencies: Histogram) -> str:
    figures = dict(percentiles(latencies))
    cells = [f"{figures[each]:.2f}{_mark(latencies, each)}" for each in ("p50", "p99", "p99.9", "max")]
    return f"{name:<18}{sent:>8}" + "".join(f"{cell:>10}" for cell in cells)


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
        return f"closed loop of {result.plan.users} users (it waits for answers: a server that stands still hardly shows)"
    return f"open loop, {result.rate:.1f} requests/s sent of {result.target_rate:.1f} that were due, {result.plan.arrivals} arrivals"


def unanswered(result: LoadResult) -> str:
    """What was not answered well, by outcome, and what was never sent; empty where there is none."""
    missed = result.recorder.missed_in()
    parts = [f"{count} {outcome}" for outcome, count in sorted(result.counts.items()) if outcome != "ok"] + ([f"{missed} never sent"] if missed else [])
    return ", ".join(parts)


def format_comparison(comparison: Comparison) -> str:
    """Both runs beside each other, what differs in their settings, and what stands against comparing them."""
    begun = f", begun {printable(comparison.started)}" if comparison.started else ""
    lines = [f"compared with {printable(comparison.path)}{begun}", "", f"  {'':<16}{'earlier':>14}{'now':>14}{'change':>12}"]
    for figure in comparison.figures:
        values = "".join(f"{formatted_figure(figure, value):>14}" for value in (figure.earlier, figure.now))
        lines.append(f"  {figure.name:<16}{values}{formatted_change(figure):>12}{f'   {figure.note}' if figure.note else ''}")
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
    lines = ["", f"  {title:<10} average batch {server.average_batch:.2f}  (executions by size {sizes})", f"             {split}   ms on average"]
    lines.append(f"             {counted(part, server)}")
    if server.cache_hits or server.cache_misses:
        lines.append(f"             response cache: {server.cache_hits} hits, {server.cache_misses} misses")
    for name, value in server.gauges.items():
        lines.append(f"             largest {name}: {value:g}")
    return lines


def counted(part: ModelResult, server: ServerSide) -> str:
    """What the server counted and when, beside what was answered here."""
    window = server.window
    end = "" if window.whole else ", when it answered for the last time"
    return (
        f"counted {server.requests} requests, and {server.failures} that failed, from {window.begin_s:.1f} to {window.end_s:.1f} s{end};"
        f" {part.latencies().count} were answered here"
    )


def format_probe(probe: Probe) -> str:
    """One line for one run of a search."""
    latencies = probe.result.latencies()
    figures = "   ".join(f"{name} {measure(latencies, name):.2f}" for name in ("p50", "p99", "p99.9"))
    return f"{probe.rate:>10.1f}/s   {figures} ms   {'; '.join(map(printable, probe.reasons)) or 'kept'}"


def format_found(found: Found) -> str:
    """The end of a search."""
    return f"{described_search(found)}\n\n{format_load(found.best)}" if found.best is not None else described_search(found)


def described_search(found: Found) -> str:
    """What a search found, in a sentence."""
    runs = f"{len(found.probes)} run{'s' if len(found.probes) > 1 else ''}"
    broken = f"{found.lowest_broken:.1f} did not" if found.lowest_broken < math.inf else "no higher one was tried"
    if not found.complete:
        kept = f"{found.rate:.1f} requests/s kept the SLO, {broken}" if found.rate else "no rate had kept the SLO"
        return f"The search was broken off after {runs}: until then {kept}. The highest rate is not known."
    if not found.rate:
        return f"No rate keeps the SLO, down to {min(probe.rate for probe in found.probes):g} requests/s."
    end = "; higher rates could not be sent from here: add --processes" if found.limited_by_generator else ""
    return f"{found.rate:.1f} requests/s is the highest rate that keeps the SLO ({'within 5 %' if found.close else broken}, {runs}){end}."


def found_json(found: Found) -> str:
    """A search as published JSON (`load_result.schema.json` in docs): every run in short, and the best one in full."""
    first = found.probes[0].result
    return json.dumps(
        {
            "schema": SCHEMA_VERSION,
            "started": first.started,
            "versions": dict(first.versions),
            "settings": first.settings,
            "rate": found.rate,
            "complete": found.complete,
            "limited_by_generator": found.limited_by_generator,
            "probes": [_probe_data(probe) for probe in found.probes],
            "result": found.best.data() if found.best is not None else None,
        },
        indent=2,
    )


def _probe_data(probe: Probe) -> dict[str, Any]:
    result = probe.result
    return {
        "rate": probe.rate,
        "kept": not probe.reasons,
        "reasons": list(probe.reasons),
        "valid": not result.invalid,
        "complete": result.complete,
        "measured_s": result.measured_s,
        "target_rate": result.target_rate,
        "sent_rate": result.rate,
        "requests": dict(result.counts),
        "missed": result.recorder.missed_in(),
        "error_rate": result.error_rate,
        "latency_ms": summary(result.latencies()),
    }
