"""`tritongen init MODEL.onnx...`."""

from __future__ import annotations

from pathlib import Path

import click

from tritongen.cli.options import OutputPath, prove_limit


@click.command("init")
@click.argument("models", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-o", "--output", type=OutputPath(), default="spec.yaml", show_default=True, help="The spec to write.")
@click.option("--force", is_flag=True, help="Overwrite a spec that is there.")
@prove_limit
def command(models: tuple[Path, ...], output: Path, force: bool, prove_limit: int) -> int:
    """Write a commented starter spec for the ONNX files MODELS.

    Sizes of variable dimensions are tried in ONNX Runtime until a sample runs; a model for which none was found gets a TODO with the reason and no warmup.
    """
    from tritongen.diagnostics import Diagnostic, Location
    from tritongen.errors import InputError
    from tritongen.workflow.starting import starter_text

    if output.exists() and not force:
        raise InputError(
            [Diagnostic("TG045", "the spec is there already", Location(str(output)), hint="write another one with -o, or overwrite it with --force")]
        )
    text, starters = starter_text(models, output.parent, limit_bytes=prove_limit)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            [Diagnostic("TG046", f"the spec cannot be written: {error.strerror}", Location(str(output)), hint="check the path and its permissions")]
        ) from error
    click.echo(f"wrote {output}: {', '.join(starter.name for starter in starters)}")
    for starter in starters:
        if starter.untried:
            click.echo(f"  {'TODO ' if starter.todo else ''}{starter.name}: nothing could be tried: {starter.untried}")
        elif starter.todo:
            click.echo(f"  TODO {starter.name}: no warmup sample was found that runs: {starter.todo}")
    click.echo(f"next: tritongen serve {output}")
    return 0
