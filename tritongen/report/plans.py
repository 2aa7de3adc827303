"""A plan for people: a line for each model, with what differs."""

from __future__ import annotations

import click

from tritongen.report.text import printable
from tritongen.repository import Action, Change, Plan

_DONE = {Action.CREATE: "created", Action.REPLACE: "replaced", Action.KEEP: "unchanged", Action.CONFLICT: "conflict", Action.ORPHAN: "orphan"}
_COLOURS = {Action.CREATE: "green", Action.REPLACE: "yellow", Action.KEEP: None, Action.CONFLICT: "red", Action.ORPHAN: "magenta"}
_ORPHAN = "is not in the spec any more; it was left where it is, and Triton still loads it"


def format_plan(plan: Plan, *, done: bool = False) -> str:
    """The plan as lines of text, in the past tense when `done`."""
    lines = [printable(str(plan.root))]
    for change in plan.changes:
        verb = _DONE[change.action] if done else change.action.value
        lines.append(f"  {click.style(f'{verb:<9}', fg=_COLOURS[change.action])} {printable(change.name)}{_details(change)}")
    return "\n".join(lines)


def _details(change: Change) -> str:
    notes = list(change.reasons)
    if change.action is Action.ORPHAN and not notes:
        notes.append(_ORPHAN)
    if change.carried and change.action is Action.REPLACE:
        notes.append(f"kept: {', '.join(str(path) for path in change.carried)}")
    return "".join(f"\n            {printable(note)}" for note in notes)
