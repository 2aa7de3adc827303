"""A search for the highest rate, for people and as JSON: each run in a line, what was found in a sentence."""

from __future__ import annotations

import json
import math
from typing import Any

from tritongen.load.findmax import FEWEST_RUNS, MOST_RATES, Found, Probe
from tritongen.load.recorder import summary
from tritongen.load.result import SCHEMA_VERSION
from tritongen.report.load import FOOTNOTE, format_load, marked
from tritongen.report.load_rows import whole_row
from tritongen.report.text import printable


def described_effort(first_rate: float, seconds: float, warmup_s: float) -> str:
    """How long a search takes, in a sentence, before it begins."""
    run_s = seconds + warmup_s
    longest = f"after {MOST_RATES} rates ({_about(MOST_RATES * run_s)}) it ends"
    more = (
        "another run for each time that the rate has to be doubled or halved first, that this machine was too slow, or that few requests spoke against a rate"
    )
    begin = f"Searching from {first_rate:g} requests/s on, in runs of {run_s:g} s: {_about(FEWEST_RUNS * run_s)} for {FEWEST_RUNS} runs"
    return f"{begin}, and {more}; {longest}. Each run takes some seconds more to start."


def _about(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_probe(probe: Probe) -> str:
    """One line for one run of a search."""
    row = whole_row(probe.result)
    figures = "   ".join(f"{name} {marked(row, name)}" for name in ("p50", "p99", "p99.9"))
    return f"{probe.rate:>10.1f}/s   {figures} ms   {'; '.join(map(printable, probe.reasons)) or 'kept'}"


def format_found(found: Found) -> str:
    """The end of a search."""
    if found.best is not None:
        return f"{described_search(found)}\n\n{format_load(found.best)}"
    marks = any(whole_row(probe.result).is_thin("p99.9") for probe in found.probes)
    return described_search(found) + f"\n\n{FOOTNOTE}" * marks


def described_search(found: Found) -> str:
    """What a search found, in a sentence."""
    runs = f"{len(found.probes)} run{'s' if len(found.probes) > 1 else ''}"
    tried = "could not be judged, since this machine was too busy" if found.limited_by_generator else "did not"
    broken = f"{found.lowest_broken:.1f} {tried}" if found.lowest_broken < math.inf else "no higher one was tried"
    kept = f"{found.rate:.1f} requests/s kept the SLO, {broken}" if found.rate else "no rate had kept the SLO"
    if found.ended:
        return f"The search ended after {runs}, since the next could not begin ({printable(found.ended)}): until then {kept}. The highest rate is not known."
    if not found.complete:
        return f"The search was broken off after {runs}: until then {kept}. The highest rate is not known."
    if found.nothing_due:
        silent = f"at {found.probes[-1].rate:.3g} requests/s nothing was due in {found.probes[-1].result.measured_s:g} s"
        return f"The search ended after {runs}, since {silent}: until then {kept}. The highest rate is not known; give a longer --duration."
    if not found.rate and found.limited_by_generator:
        down_to = min(probe.rate for probe in found.probes)
        return f"No rate could be judged, down to {down_to:g} requests/s: this machine was too busy at each. Add --processes, or send from another one."
    if not found.rate:
        return f"No rate keeps the SLO, down to {min(probe.rate for probe in found.probes):g} requests/s."
    if found.limited_by_generator:
        return f"{found.rate:.1f} requests/s kept the SLO ({runs}), and {broken}: add --processes, or send from another one. The highest rate is not known."
    return f"{found.rate:.1f} requests/s is the highest rate that keeps the SLO ({'within 5 %' if found.close else broken}, {runs})."


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
            "ended": found.ended,
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
