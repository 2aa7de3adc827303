"""Options that several commands share, and the types of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

SPEC = click.Path(path_type=Path)
"""A path that the stage itself checks: its message says more than click's."""


class OutputPath(click.Path):
    """A file or folder to write to.

    An empty one (`-o "$UNSET"`) is refused: as a path it would be the current folder. So is what looks like an option (`-o --dry-run`): it would be written to.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("the path is empty; name a file or folder, such as ./out, or '.' for the current folder", param, ctx)
        if isinstance(value, str) and value.startswith("-") and value != "-":
            self.fail(f"{value!r} looks like an option, and the path is missing before it; a file or folder of that name is ./{value}", param, ctx)
        return super().convert(value, param, ctx)


class SizeType(click.ParamType[int]):
    """A size with a unit, such as `512MiB`; 0 needs none."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The size in bytes."""
        from tritongen.spec.units import parse_size

        if isinstance(value, int):
            return value
        if value == "0":
            return 0
        try:
            return parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


prove_limit = click.option(
    "--prove-limit",
    type=SizeType(),
    default="2GiB",
    show_default=True,
    help="Run models up to this size in ONNX Runtime, to prove the warmup samples; 0 proves nothing.",
)
