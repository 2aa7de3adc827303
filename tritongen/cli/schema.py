"""`tritongen schema`."""

from __future__ import annotations

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of spec.yaml.

    Save it and name it in the first line of a spec, `# yaml-language-server: $schema=tritongen.schema.json`, and an editor completes and checks what you type.
    """
    import json

    from tritongen.spec import spec_schema

    click.echo(json.dumps(spec_schema(), indent=2, ensure_ascii=False))
