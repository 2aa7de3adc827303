"""`tritongen render SPEC`."""

from __future__ import annotations

from pathlib import Path

import click

from tritongen.cli.options import SPEC, OutputPath, prove_limit


@click.command("render")
@click.argument("spec", type=SPEC)
@click.option("-o", "--output", type=OutputPath(), help="Folder of the model repository. Default: the one that the spec names.")
@click.option("--cpu", is_flag=True, help="Write a repository for servers without a GPU, by default beside the other: <repository>.cpu.")
@click.option("--deploy", type=click.Choice(["compose"]), help="Write docker-compose.yml and what it needs too.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if anything would change.")
@click.option("--force", is_flag=True, help="Overwrite generated files that were edited by hand.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@prove_limit
def command(spec: Path, output: Path | None, cpu: bool, deploy: str | None, dry_run: bool, check: bool, force: bool, strict: bool, prove_limit: int) -> int:
    """Write the Triton model repository that SPEC describes, and with --deploy what serves it.

    A model's folder is replaced as a whole, in one step; nothing is written when anything is wrong.
    """
    from tritongen.diagnostics import Severity
    from tritongen.errors import InputError
    from tritongen.report.plans import format_plan
    from tritongen.report.text import format_diagnostics
    from tritongen.repository import Action
    from tritongen.workflow.rendering import plan_render
    from tritongen.workflow.writing import apply_rendering

    with plan_render(spec, output=output, force=force, prove_limit_bytes=prove_limit, cpu=cpu, deploy=deploy is not None) as rendering:
        if strict and any(finding.severity is Severity.WARNING for finding in rendering.findings):
            raise InputError(rendering.findings)
        if rendering.findings:
            click.echo(format_diagnostics(rendering.findings), err=True)
        if dry_run or check:
            for plan in rendering.plans:
                click.echo(format_plan(plan))
            would_change = any(plan.with_action(Action.CREATE, Action.REPLACE, Action.CONFLICT) for plan in rendering.plans)
            conflicts = any(plan.with_action(Action.CONFLICT) for plan in rendering.plans)
            return 1 if (check and would_change) or (dry_run and conflicts) else 0
        notes = apply_rendering(rendering)
    for plan in rendering.plans:
        click.echo(format_plan(plan, done=True))
    for note in notes:
        click.echo(note, err=True)
    return 0
