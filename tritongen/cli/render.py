"""`tritongen render SPEC`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tritongen.cli.options import SPEC, OutputPath, prove_limit

if TYPE_CHECKING:
    from tritongen.repository import Plan
    from tritongen.workflow.rendering import Rendering

_WORTH_A_BAR = 256 << 20
"""Bytes to copy from which on a progress bar is shown: a disk takes a second or more for them."""


@click.command("render")
@click.argument("spec", type=SPEC)
@click.option("-o", "--output", type=OutputPath(), help="Folder of the model repository. Default: the one that the spec names.")
@click.option("--cpu", is_flag=True, help="Write a repository for servers without a GPU, by default beside the other: <repository>.cpu.")
@click.option("--deploy", type=click.Choice(["compose"]), help="Write docker-compose.yml and what it needs too.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, with the differences of texts, and write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if anything would change.")
@click.option("--force", is_flag=True, help="Overwrite generated files that were edited by hand.")
@click.option("--prune", is_flag=True, help="Remove models and files of a deployment that tritongen made and SPEC asks for no more; nothing else.")
@click.option("--keep-going", is_flag=True, help="Write the models with which nothing is wrong, and leave the others as they are; the exit code stays 2.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@prove_limit
def command(
    spec: Path,
    output: Path | None,
    cpu: bool,
    deploy: str | None,
    dry_run: bool,
    check: bool,
    force: bool,
    prune: bool,
    keep_going: bool,
    strict: bool,
    prove_limit: int,
) -> int:
    """Write the Triton model repository that SPEC describes, and with --deploy what serves it.

    A model's folder is replaced as a whole, in one step, so that a server may be polling it; nothing is written when anything is wrong. A render that is
    killed leaves each model old or new, and the next one clears up.
    """
    from tritongen.diagnostics import Severity
    from tritongen.errors import InputError
    from tritongen.report.text import format_diagnostics
    from tritongen.workflow.rendering import plan_render

    writes = not (dry_run or check)
    with plan_render(
        spec,
        output=output,
        force=force,
        prune=prune,
        keep_going=keep_going,
        settle=writes,
        prove_limit_bytes=prove_limit,
        cpu=cpu,
        deploy=deploy is not None,
    ) as rendering:
        if strict and any(finding.severity is Severity.WARNING for finding in rendering.findings):
            raise InputError(rendering.findings)
        if rendering.findings:
            click.echo(format_diagnostics(rendering.findings), err=True)
        return _write(rendering, keep_going=keep_going) if writes else _show(rendering, dry_run=dry_run, check=check)


def _show(rendering: Rendering, *, dry_run: bool, check: bool) -> int:
    """`--dry-run` and `--check`: the plan, and the exit code that says what it comes to."""
    from tritongen.report.plans import format_diffs, format_plan
    from tritongen.report.text import format_diagnostics
    from tritongen.repository import conflicts, lost_plans
    from tritongen.workflow.writing import deployment_conflicts, unreadable_repository

    for plan in rendering.plans:
        click.echo(format_plan(plan))
    if dry_run and (diffs := "\n".join(filter(None, map(format_diffs, rendering.plans)))):
        click.echo(f"\n{diffs}")
    if found := [*conflicts(rendering.plan), *deployment_conflicts(rendering), *lost_plans(rendering.plan), *unreadable_repository(rendering)]:
        click.echo(format_diagnostics(found), err=True)
    if rendering.refused:
        return 2
    return 1 if any(plan.has_conflicts or (plan.would_change and check) for plan in rendering.plans) else 0


def _write(rendering: Rendering, *, keep_going: bool) -> int:
    """Apply the plan; 2 where something was left undone."""
    from tritongen.report.plans import format_plan
    from tritongen.report.text import format_diagnostics, printable
    from tritongen.repository import lost_plans
    from tritongen.workflow.writing import apply_rendering, unreadable_repository

    with _progress(rendering.plan) as advance:
        written = apply_rendering(rendering, skip_conflicts=keep_going, progress=advance)
    for plan in filter(None, (written.repository.plan, written.deployment)):
        click.echo(format_plan(plan, done=True))
    for note in written.notes:
        click.echo(printable(note), err=True)
    if found := [*written.left, *lost_plans(written.repository.plan), *unreadable_repository(rendering)]:
        click.echo(format_diagnostics(found), err=True)
    return 2 if written.left or rendering.refused else 0


@contextlib.contextmanager
def _progress(plan: Plan) -> Iterator[Callable[[int], None] | None]:
    """A bar on the terminal while large files are copied; None where there is no terminal, or not much to copy."""
    from tritongen.repository import bytes_to_copy

    total = bytes_to_copy(plan)
    if total < _WORTH_A_BAR or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("copying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("copying", total=total)
        yield lambda count: bar.advance(task, count)
