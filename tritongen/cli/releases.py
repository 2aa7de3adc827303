"""`tritongen releases`."""

from __future__ import annotations

import click


@click.command("releases")
@click.argument("names", nargs=-1, metavar="[YY.MM]...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(names: tuple[str, ...], form: str) -> int:
    """List NVIDIA's Triton containers: what each carries, and what is known to be broken or otherwise in it.

    With names, only these. What no source says is shown as unknown, and never guessed.
    """
    from tritongen.diagnostics import Diagnostic
    from tritongen.errors import InputError
    from tritongen.releases import RELEASES, find_release
    from tritongen.report.releases import format_releases, releases_json

    hint = f"the releases from {RELEASES[0].name} to {RELEASES[-1].name} are known; they are written YY.MM"
    if unknown := [name for name in names if find_release(name) is None]:
        raise InputError([Diagnostic("TG115", f"release {name[:60]!r} is not known to this version of tritongen", hint=hint) for name in unknown])
    chosen = [release for release in RELEASES if not names or release.name in names]
    click.echo(format_releases(chosen) if form == "text" else releases_json(chosen), nl=False)
    return 0
