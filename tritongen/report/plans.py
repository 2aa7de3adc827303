"""A plan for people: a table with a line for each model, with what differs; and the differences of its texts."""

from __future__ import annotations

import click

from tritongen.report.text import printable
from tritongen.repository import Action, Change, FileDiff, FilePlan, Plan, SharedChange, bytes_to_copy, file_diffs, plan_diffs, size_text

_DONE = {Action.CREATE: "created", Action.REPLACE: "replaced", Action.KEEP: "unchanged", Action.CONFLICT: "conflict", Action.ORPHAN: "orphan"}
_COLOURS = {Action.CREATE: "green", Action.REPLACE: "yellow", Action.KEEP: None, Action.CONFLICT: "red", Action.ORPHAN: "magenta"}
_ORPHAN = "is not in the spec any more; it was left where it is, and Triton still loads it (--prune removes it)"
_PRUNED = "is not in the spec any more"
_REFUSED = "stays as it is, since something is wrong with it"
_ABANDONED = "was not finished when its process was killed, a day ago or more"
_LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_MOST_LINES = 200
"""Lines of one file's diff that are shown; the head of a long list of labels says enough."""


def format_plan(plan: Plan, *, done: bool = False) -> str:
    """The plan as lines of text: a table of what would happen and what that costs, or, when `done`, a list of what has.

    Raises RepositoryError where a file that would be copied is gone.
    """
    names = [change.name for change in plan.changes] + sorted(plan.spared)
    is_of_files = isinstance(plan, FilePlan)
    heading = "file" if is_of_files else "model"
    width = max((len(printable(name)) for name in (heading, *names)), default=0)
    lines = [printable(str(plan.root))]
    if not done:
        lines.append(click.style(f"  {'action':<9} {heading:<{width}}{'' if is_of_files else '  files     to copy'}", dim=True))
    for change in plan.changes:
        costs = "" if done else _costs(plan, change)
        lines.append(_line(_verb(plan, change, done=done), change.name, _COLOURS[change.action], width if costs else 0) + costs + _details(plan, change))
    lines += [f"{_line('refused', name, 'red')}\n            {_REFUSED}" for name in sorted(plan.spared)]
    lines += [_shared_line(plan, change, done=done) for change in plan.shared if change.action is not Action.KEEP]
    lines += [f"{_line('removed' if done else 'remove', str(path), _COLOURS[Action.ORPHAN])}\n            {_ABANDONED}" for path in plan.abandoned]
    return "\n".join(lines)


def _shared_line(plan: Plan, change: SharedChange, *, done: bool) -> str:
    """What happens to a file that belongs to no single model."""
    removed = change.content is None
    verb = ("removed" if removed else _DONE[change.action]) if done else ("remove" if removed else change.action.value)
    note = f"\n            {printable(change.reason)}" if change.reason else ""
    return _line(verb, str(plan.artifacts_root / change.path), _COLOURS[change.action]) + note


def _costs(plan: Plan, change: Change) -> str:
    """How many files a model has, and how many bytes would be copied for it."""
    if change.entry is None:
        return ""
    copied = size_text(bytes_to_copy(plan, change)) if change in plan.written else "-"
    return f"  {len(change.entry.files):>5}  {copied:>10}"


def format_diffs(plan: Plan) -> str:
    """Unified diffs of all texts that the plan changes, each with the model's name in its path; empty where there are none. Raises RepositoryError."""
    diffs = file_diffs(plan) if isinstance(plan, FilePlan) else plan_diffs(plan)
    return "\n".join(line for diff in diffs for line in _diff_lines(diff))


def _line(verb: str, name: str, colour: str | None, width: int = 0) -> str:
    return f"  {click.style(f'{verb:<9}', fg=colour)} {printable(name):<{width}}"


def _verb(plan: Plan, change: Change, *, done: bool) -> str:
    if change.action is Action.ORPHAN and plan.prune:
        return "removed" if done else "remove"
    return _DONE[change.action] if done else change.action.value


def _details(plan: Plan, change: Change) -> str:
    notes = list(change.reasons)
    if change.action is Action.ORPHAN and not isinstance(plan, FilePlan):
        notes.insert(0, _PRUNED if plan.prune else _ORPHAN)
    if change.carried and change.action is Action.REPLACE:
        notes.append(f"kept: {', '.join(str(path) for path in change.carried)}")
    return "".join(f"\n            {printable(note)}" for note in notes)


def _diff_lines(diff: FileDiff) -> list[str]:
    if diff.summary:
        return [f"{printable(str(diff.path))}: {diff.summary}"]
    shown = [click.style(printable(line), fg=_LINE_COLOURS.get(line[:1])) for line in diff.lines[:_MOST_LINES]]
    left = len(diff.lines) - len(shown)
    return [*shown, f"… {left:,} more lines"] if left > 0 else shown
