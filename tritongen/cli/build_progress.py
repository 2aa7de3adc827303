"""How a build is followed: a bar on a terminal, lines elsewhere, nothing where a program reads the output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from tritongen.build import Outcome, Silent, Wanted
from tritongen.build import Progress as BuildProgress
from tritongen.diagnostics import Diagnostic
from tritongen.report.building import format_outcome
from tritongen.report.text import format_diagnostics, printable


class JsonAudience:
    """Says nothing: the whole comes at the end."""

    def rendered(self, findings: Sequence[Diagnostic], notes: Sequence[str]) -> None:
        """The spec was rendered."""

    def building(self, wanted: Wanted) -> AbstractContextManager[BuildProgress]:
        """Around a build."""
        return nullcontext(Silent())

    def end(self, outcome: Outcome) -> None:
        """A plan's fate is known."""


class TextAudience:
    """A line for each plan on stdout; on stderr a bar for the build that runs, or, where that is no terminal, a line when it begins."""

    def rendered(self, findings: Sequence[Diagnostic], notes: Sequence[str]) -> None:
        """The spec was rendered."""
        if findings:
            click.echo(format_diagnostics(findings), err=True)
        for note in notes:
            click.echo(printable(note), err=True)

    def building(self, wanted: Wanted) -> AbstractContextManager[BuildProgress]:
        """Around a build."""
        if sys.stderr.isatty():
            return bar(f"{wanted.recipe.model}/{wanted.recipe.version}/{wanted.plan.name}")
        click.echo(f"building {wanted.path} ...", err=True)
        return nullcontext(Silent())

    def end(self, outcome: Outcome) -> None:
        """A plan's fate is known."""
        click.echo(format_outcome(outcome))


@contextmanager
def bar(title: str) -> Iterator[BuildProgress]:
    """A bar on the terminal, which is gone afterwards."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress, title)


class Bar:
    """The outermost phases of a build, as tasks of a bar. Its methods are called from other threads."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._tasks: dict[str, TaskID] = {}

    def start(self, phase: str, parent: str, steps: int) -> None:
        """`Progress.start`."""
        if not parent:
            self._tasks[phase] = self._progress.add_task(f"{self._title}: {phase}", total=steps)

    def step(self, phase: str, done: int) -> None:
        """`Progress.step`."""
        if phase in self._tasks:
            self._progress.update(self._tasks[phase], completed=done)

    def finish(self, phase: str) -> None:
        """`Progress.finish`."""
        if phase in self._tasks:
            self._progress.remove_task(self._tasks.pop(phase))
