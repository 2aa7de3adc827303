"""How a build is followed: a bar on a terminal, lines elsewhere, nothing where a program reads the output."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from tritongen.build import Outcome, Silent, Wanted
from tritongen.build import Progress as BuildProgress
from tritongen.diagnostics import Diagnostic
from tritongen.report.building import format_outcome
from tritongen.report.text import format_diagnostics


class JsonAudience:
    """Says nothing: the whole comes at the end."""

    def rendered(self, findings: Sequence[Diagnostic]) -> None:
        """The spec was rendered."""

    def begin(self, wanted: Wanted) -> BuildProgress:
        """A build begins."""
        return Silent()

    def end(self, outcome: Outcome) -> None:
        """A plan's fate is known."""


class TextAudience:
    """A line for each plan on stdout; on stderr a bar for the build that runs, or, where that is no terminal, a line when it begins."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def rendered(self, findings: Sequence[Diagnostic]) -> None:
        """The spec was rendered."""
        if findings:
            click.echo(format_diagnostics(findings), err=True)

    def begin(self, wanted: Wanted) -> BuildProgress:
        """A build begins."""
        if not sys.stderr.isatty():
            click.echo(f"building {wanted.path} ...", err=True)
            return Silent()
        self._bar = Bar(f"{wanted.recipe.model}/{wanted.recipe.version}/{wanted.plan.name}")
        return self._bar

    def end(self, outcome: Outcome) -> None:
        """A plan's fate is known."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        click.echo(format_outcome(outcome))


class Bar:
    """A bar that shows the outermost phases of a build, and the name of the innermost one. Its methods are called from other threads."""

    def __init__(self, title: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._title = title
        self._tasks: dict[str, TaskID] = {}
        self._progress.start()

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
        if task := self._tasks.pop(phase, None):
            self._progress.remove_task(task)

    def close(self) -> None:
        """Take the bar off the screen."""
        self._progress.stop()
