"""Findings for people: where, what, the line with a caret, what Triton would do, how to mend it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import click

from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.errors import ServerStartError, TritongenError

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.ADVICE: "cyan"}
_LONGEST_LINE = 160


def format_diagnostics(diagnostics: Iterable[Diagnostic]) -> str:
    """One block for each finding, in their order, with ANSI colours (`click.echo` drops them where the output is no terminal)."""
    return "\n".join(format_diagnostic(diagnostic) for diagnostic in diagnostics)


def format_by_model(diagnostics: Iterable[Diagnostic]) -> str:
    """The same under a heading for each model; findings without a model come as they are.

    Of findings in a row about one file that have the same consequence, the first says it for all. A name that several repositories have is one model in each.
    """
    listed = list(diagnostics)
    places = {diagnostic: _repository(diagnostic) for diagnostic in listed}
    repositories = Counter(model for model, place in {(one.model, place) for one, place in places.items() if place})
    blocks: list[str] = []
    heading, said = "", ("", "")
    for diagnostic in listed:
        where = f" in {printable(places[diagnostic])}" if repositories[diagnostic.model] > 1 and places[diagnostic] else ""
        wanted = f"model {printable(diagnostic.model)}{where}" if diagnostic.model else ""
        if wanted and wanted != heading:
            blocks.append(click.style(wanted, bold=True, underline=True) + "\n")
        follows = (diagnostic.location.path if diagnostic.location else "", diagnostic.consequence)
        repeated = bool(follows[0]) and follows == said and wanted == heading
        heading, said = wanted, follows
        blocks.append(format_diagnostic(dataclasses.replace(diagnostic, model="", consequence="" if repeated else diagnostic.consequence)))
    return "\n".join(blocks)


def _repository(diagnostic: Diagnostic) -> str:
    """The folder that holds the model's folder, as far as the place of a finding tells it."""
    path = PurePath(diagnostic.location.path) if diagnostic.location and diagnostic.model else PurePath()
    return next((str(folder.parent) for folder in (path, *path.parents) if folder.name == diagnostic.model), "")


def format_diagnostic(diagnostic: Diagnostic) -> str:
    """One finding as a block of lines, the last one ending in a newline."""
    head = click.style(diagnostic.severity.value, fg=_COLOURS[diagnostic.severity], bold=True)
    place = click.style(f"{printable(str(diagnostic.location))}: ", bold=True) if diagnostic.location else ""
    model = f" (model {printable(diagnostic.model)})" if diagnostic.model and not diagnostic.message.startswith(f"model '{diagnostic.model}'") else ""
    lines = [f"{place}{head} {diagnostic.code}{model}: {printable(diagnostic.message)}", *_snippet(diagnostic.location)]
    if diagnostic.consequence:
        lines.append(f"    what follows: {printable(diagnostic.consequence)}")
    if diagnostic.hint:
        # A hint may hold several lines of a config.
        first, *more = diagnostic.hint.splitlines()
        lines += [f"    what to do: {printable(first)}", *(f"      {printable(line)}" for line in more)]
    return "\n".join(lines) + "\n"


def printable(text: str) -> str:
    """Text that a terminal shows and does not obey: control characters, and bytes of file names that are no UTF-8, as escapes."""
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    """An escape of two digits for a byte that `os.fsdecode` kept as a surrogate, and for control characters what Python writes."""
    return f"\\x{ord(char) - 0xDC00:02x}" if 0xDC80 <= ord(char) <= 0xDCFF else char.encode("unicode_escape").decode()


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
    """An error that is no finding: its message (which holds Triton's reasons for each model), the end of the log where there are none, what to do."""
    first, *more = str(error).splitlines() or [""]
    lines = [f"{click.style('error', fg='red', bold=True)}: {printable(first)}", *map(printable, more)]
    if isinstance(error, ServerStartError) and error.log_tail and not error.reasons:
        lines += ["  the end of Triton's log:", *(f"    {printable(line)}" for line in error.log_tail.splitlines()[-15:])]
    if error.hint:
        lines.append(f"    what to do: {printable(error.hint)}")
    return "\n".join(lines)
