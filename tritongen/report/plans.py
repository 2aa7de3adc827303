"""A plan for people: a table with a line for each model, with what differs; and the differences of its texts."""

from __future__ import annotations

import click

from tritongen.report.text import printable
from tritongen.repository import Action, Change, FileDiff, Plan, text_diffs

_DONE = {Action.CREATE: "created", Action.REPLACE: "replaced", Action.KEEP: "unchanged", Action.CONFLICT: "conflict", Action.ORPHAN: "orphan"}
_COLOURS = {Action.CREATE: "green", Action.REPLACE: "yellow", Action.KEEP: None, Action.CONFLICT: "red", Action.ORPHAN: "magenta"}
_ORPHAN = "is not in the spec any more; it was left where it is, and Triton still loads it (--prune removes it)"
_PRUNED = "is not in the spec any more"
_REFUSED = "stays as it is, since something is wrong with it"
_LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_MOST_LINES = 200
"""Lines of one file's diff that are shown; the head of a long list of labels says enough."""


def format_plan(plan: Plan, *, done: bool = False) -> str:
    """The plan as lines of text, in the past tense when `done`."""
    lines = [printable(str(plan.root))]
    lines += [_line(_verb(plan, change, done=done), change.name, _COLOURS[change.action]) + _details(plan, change) for change in plan.changes]
    lines += [_line("refused", name, "red") + f"\n            {_REFUSED}" for name in sorted(plan.spared)]
    return "\n".join(lines)


def format_diffs(plan: Plan) -> str:
    """Unified diffs of all texts that the plan changes, each with the model's name in its path; empty where there are none. Raises RepositoryError."""
    return "\n".join(line for change in plan.changes for diff in text_diffs(plan.root, change) for line in _diff_lines(diff))


def _line(verb: str, name: str, colour: str | None) -> str:
    return f"  {click.style(f'{verb:<9}', fg=colour)} {printable(name)}"


def _verb(plan: Plan, change: Change, *, done: bool) -> str:
    if change.action is Action.ORPHAN and plan.prune:
        return "removed" if done else "remove"
    return _DONE[change.action] if done else change.action.value


def _details(plan: Plan, change: Change) -> str:
    notes = list(change.reasons)
    if change.action is Action.ORPHAN:
        notes.append(_PRUNED if plan.prune else _ORPHAN)
    if change.carried and change.action is Action.REPLACE:
        notes.append(f"kept: {', '.join(str(path) for path in change.carried)}")
    return "".join(f"\n            {printable(note)}" for note in notes)


def _diff_lines(diff: FileDiff) -> list[str]:
    if diff.summary:
        return [f"{printable(str(diff.path))}: {diff.summary}"]
    shown = [click.style(printable(line), fg=_LINE_COLOURS.get(line[:1])) for line in diff.lines[:_MOST_LINES]]
    left = len(diff.lines) - len(shown)
    return [*shown, f"… {left:,} more lines"] if left > 0 else shown
