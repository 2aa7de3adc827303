"""What became of plans: a line for each for people, one JSON object for programs."""

from __future__ import annotations

import json
from typing import Any

import click

from tritongen.build import Building, Outcome, State
from tritongen.errors import TritongenError
from tritongen.report.outcome import diagnostics_json, outcome_json
from tritongen.report.text import printable
from tritongen.signature.plan import TENSORRT_RTX
from tritongen.spec.units import about_size

_COLOURS = {State.GOOD: None, State.WANTED: "yellow", State.BUILT: "green", State.ELSEWHERE: "magenta", State.FAILED: "red"}
_WORDS = {State.GOOD: "good", State.WANTED: "would build", State.BUILT: "built", State.ELSEWHERE: "elsewhere", State.FAILED: "failed"}


def format_outcome(outcome: Outcome) -> str:
    """A plan's fate, with the reasons; what stands against it comes as findings, by itself."""
    wanted = outcome.wanted
    word = click.style(f"{_WORDS[outcome.state]:<12}", fg=_COLOURS[outcome.state])
    made = f" ({about_size(outcome.size_bytes)} in {outcome.seconds:.1f} s)" if outcome.state is State.BUILT else ""
    lines = [f"{word}{printable(wanted.recipe.model)}: {printable(str(wanted.path))}{made}"]
    if outcome.state is State.ELSEWHERE:
        lines.append(f"            {wanted.elsewhere}")
    if outcome.state is not State.GOOD:
        lines += [f"            the plan {printable(reason)}" for reason in wanted.reasons]
    if outcome.state is State.BUILT and wanted.kind == TENSORRT_RTX:
        lines.append(
            "            it is a plan of TensorRT-RTX, which Triton cannot load: it shows that the model can be built, and lies where Triton does not look"
        )
    lines += [f"            {printable(note)}" for note in outcome.notes]
    return "\n".join(lines)


def format_nothing(building: Building) -> str:
    """For a run without any plan."""
    return f"no model of {printable(str(building.root))} has backend: tensorrt: there is no plan to build"


def format_json(result: Building | TritongenError) -> str:
    """`{"error": null, "findings": [...], "repository": ..., "notes": [...], "plans": [...]}`, with a final newline.

    Keys are never left out, also where an error ended the run.
    """
    if isinstance(result, TritongenError):
        whole = outcome_json((), result) | {"repository": None, "notes": [], "plans": []}
    else:
        whole = outcome_json(result.findings) | {
            "repository": printable(str(result.root)),
            "notes": [printable(note) for note in result.notes],
            "plans": [_plan(outcome) for outcome in result.outcomes],
        }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _plan(outcome: Outcome) -> dict[str, Any]:
    wanted = outcome.wanted
    return {
        "model": wanted.recipe.model,
        "version": wanted.recipe.version,
        "path": printable(str(wanted.path)),
        "kind": wanted.kind,
        "state": outcome.state.value,
        "reasons": [printable(reason) for reason in wanted.reasons],
        "elsewhere": wanted.elsewhere,
        "seconds": round(outcome.seconds, 3),
        "bytes": outcome.size_bytes,
        "notes": list(outcome.notes),
        "problems": diagnostics_json(outcome.problems),
    }
