"""`tritongen build SPEC`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tritongen.cli.options import SPEC, prove_limit

if TYPE_CHECKING:
    from tritongen.workflow.building import Audience


class CapabilityType(click.ParamType[str]):
    """A compute capability, such as `8.6`."""

    name = "capability"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The capability as the spec has it."""
        from pydantic import TypeAdapter, ValidationError

        from tritongen.spec.plans import ComputeCapability

        try:
            return str(TypeAdapter(ComputeCapability).validate_python(value))
        except ValidationError:
            self.fail(f"{value!r} is no compute capability; write it as 8.6 or 12.0", param, ctx)


@click.command("build")
@click.argument("target", metavar="SPEC", type=SPEC)
@click.option("--model", "models", multiple=True, metavar="NAME", help="Build the plans of this model only; may be given several times.")
@click.option("--force", is_flag=True, help="Build plans that are good, too.")
@click.option("--dry-run", is_flag=True, help="Say what would be built and why, and write nothing.")
@click.option(
    "--with",
    "kind",
    type=click.Choice(["tensorrt", "tensorrt-rtx"]),
    default="tensorrt",
    show_default=True,
    help="tensorrt-rtx needs no GPU: it shows that a model can be built. Triton does not load its plans.",
)
@click.option(
    "--compute-capability",
    "capabilities",
    type=CapabilityType(),
    multiple=True,
    metavar="M.N",
    help="With tensorrt-rtx: a kind of GPU to build for; may be given several times. Default: those of the spec, else all.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: one object on stdout, at the end, whatever the exit code.",
)
@prove_limit
def command(target: Path, models: tuple[str, ...], force: bool, dry_run: bool, kind: str, capabilities: tuple[str, ...], form: str, prove_limit: int) -> int:
    """Build the TensorRT plans of SPEC that are missing or stale, in this process.

    SPEC is a spec file, which is rendered first, or the folder of a rendered repository. A plan that was built from the same file, in the same way, by the
    TensorRT of the release is left as it is. Exit code 0 where every plan that can be built here is good, 1 in a dry run that would build one, 2 where one
    cannot be built, 3 where TensorRT or a GPU is not here, or where no plan is for this GPU.
    """
    from tritongen.build import State
    from tritongen.cli.build_progress import JsonAudience, TextAudience
    from tritongen.errors import EnvironmentProblem, InputError, TritongenError
    from tritongen.report.building import format_json, format_nothing
    from tritongen.workflow.building import Request, build_plans

    audience: Audience = JsonAudience() if form == "json" else TextAudience()
    try:
        building = build_plans(target, Request(kind, models, capabilities, force, dry_run, prove_limit), audience)
    except TritongenError as error:
        if form == "json":
            click.echo(format_json(error), nl=False)
        raise
    if form == "json":
        click.echo(format_json(building), nl=False)
    elif not building.outcomes:
        click.echo(format_nothing(building))
    if building.problems:
        raise InputError(building.problems)
    if any(outcome.state is State.WANTED for outcome in building.outcomes):
        return 1
    if building.unserved:
        hint = "add its compute capability to tensorrt.build.compute_capabilities, or its number to instances.gpus in the spec, and render again"
        raise EnvironmentProblem("; ".join(building.unserved), hint=hint)
    return 0
