"""Findings for people: where, what, the line with a caret, what Triton would do, how to mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import click

from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.errors import ServerStartError, TritongenError

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.ADVICE: "cyan"}
_LONGEST_LINE = 160


def format_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    """One block for each finding, in their order, with ANSI colours (`click.echo` drops them where the output is no terminal)."""
    return "\n".join(format_diagnostic(diagnostic) for diagnostic in diagnostics)


def format_diagnostic(diagnostic: Diagnostic) -> str:
    """One finding as a block of lines, the last one ending in a newline."""
    head = click.style(diagnostic.severity.value, fg=_COLOURS[diagnostic.severity], bold=True)
    place = click.style(f"{diagnostic.location}: ", bold=True) if diagnostic.location else ""
    model = f" (model {diagnostic.model})" if diagnostic.model and f"'{diagnostic.model}'" not in diagnostic.message else ""
    lines = [f"{place}{head} {diagnostic.code}{model}: {diagnostic.message}", *_snippet(diagnostic.location)]
    if diagnostic.consequence:
        lines.append(f"    what follows: {diagnostic.consequence}")
    if diagnostic.hint:
        lines.append(f"    what to do: {diagnostic.hint}")
    return "\n".join(lines) + "\n"


def _snippet(location: Location | None) -> list[str]:
    if location is None or location.text is None or location.line is None:
        return []
    column = location.column or 1
    # A long line is cut around the place, so that the caret stays on the screen.
    start = max(0, column - 1 - _LONGEST_LINE // 2) if len(location.text) > _LONGEST_LINE else 0
    shown = "".join(char if char.isprintable() else " " for char in location.text[start : start + _LONGEST_LINE])
    number = str(location.line)
    return [f"    {number} | {shown}", f"    {' ' * len(number)} | {' ' * (column - 1 - start)}{click.style('^', fg='green', bold=True)}"]


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Such as `2 errors, 1 warning`; empty where there is nothing."""
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    names = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "advice"}
    return ", ".join(
        f"{counts[severity]} {name}{'s' if counts[severity] > 1 and name != 'advice' else ''}" for severity, name in names.items() if counts[severity]
    )


def format_error(error: TritongenError) -> str:
    """An error that is no finding: its message, what Triton said, what to do."""
    lines = [f"{click.style('error', fg='red', bold=True)}: {error}"]
    if isinstance(error, ServerStartError):
        lines += [f"  {click.style(model, bold=True)}: {reason}" for model, reason in error.reasons.items()]
        if error.log_tail and not error.reasons:
            lines += ["  the end of Triton's log:", *(f"    {line}" for line in error.log_tail.splitlines()[-15:])]
    if error.hint:
        lines.append(f"    what to do: {error.hint}")
    return "\n".join(lines)
