"""`tritongen estimate SPEC`."""

from __future__ import annotations

from pathlib import Path

import click

from tritongen.cli.options import SPEC, SizeType


@click.command("estimate")
@click.argument("spec", type=SPEC)
@click.option("--gpu-memory", type=SizeType(least=1), help="Memory of each GPU, such as 24GiB. Default: triton.gpu_memory of the spec.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="json: one object on stdout, whatever the exit code."
)
def command(spec: Path, gpu_memory: int | None, form: str) -> int:
    """Estimate how much memory of a GPU the models of SPEC take, and which batches fit.

    Nothing is run or written, and no weights are read. Exit code 1 where the models do not fit, or what is known of them does not.
    """
    from tritongen.errors import TritongenError
    from tritongen.report.estimate import estimate_json, format_estimate
    from tritongen.report.text import format_diagnostics
    from tritongen.workflow.estimating import estimate_spec

    try:
        found = estimate_spec(spec, memory=gpu_memory)
    except TritongenError as error:
        if form == "json":
            click.echo(estimate_json(error), nl=False)
        raise
    if found.findings:
        click.echo(format_diagnostics(found.findings), err=True)
    click.echo(estimate_json(found.estimate, found.findings) if form == "json" else format_estimate(found.estimate), nl=False)
    return 0 if found.estimate.fits else 1
