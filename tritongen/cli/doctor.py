"""`tritongen doctor`."""

from __future__ import annotations

import click


@click.command("doctor")
@click.option("--setup", is_flag=True, help="Make the private environment for the server in your cache folder: where your own has numpy 2, or Python 3.13.")
@click.option("--onnxruntime", default="onnxruntime", show_default=True, metavar="REQUIREMENT", help="What --setup installs, such as onnxruntime-gpu.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(setup: bool, onnxruntime: str, form: str) -> int:
    """Check what `tritongen serve` needs of this machine, and say how to get what is missing.

    Exit code 0 where a server can be started, 3 where it cannot.
    """
    import dataclasses
    import json

    from tritongen.server.doctor import can_serve, diagnose
    from tritongen.server.setup import setup_environment

    if setup:
        folder = setup_environment(onnxruntime=onnxruntime, say=lambda line: click.echo(line, err=True))
        click.echo(f"the server's environment is ready: {folder}", err=True)
    checks = diagnose()
    fine = can_serve(checks)
    if form == "json":
        click.echo(json.dumps({"can_serve": fine, "checks": [dataclasses.asdict(check) for check in checks]}, indent=2))
        return 0 if fine else 3
    for check in checks:
        mark, colour = ("ok", "green") if check.ok else ("missing", "red") if check.required else ("note", "yellow")
        click.echo(f"{click.style(f'{mark:<8}', fg=colour)}{check.name}: {check.found}")
        if not check.ok:
            click.echo("".join(f"        {line}\n" for line in (check.consequence, check.fix) if line), nl=False)
    click.echo("a server can be started" if fine else "no server can be started here yet")
    return 0 if fine else 3
