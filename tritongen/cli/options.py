"""Options that several commands share, and the types of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

SPEC = click.Path(path_type=Path)
"""A path that the stage itself checks: its message says more than click's."""


class OutputPath(click.Path):
    """A file or folder to write to. An empty one (`-o "$UNSET"`) is refused: as a path it would be the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("the path is empty; name a file or folder, such as ./out, or '.' for the current folder", param, ctx)
        return super().convert(value, param, ctx)


class SizeType(click.ParamType[int]):
    """A size with a unit, such as `512MiB`; 0 needs none."""

    name = "size"

    def __init__(self, *, least: int = 0) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The size in bytes."""
        from tritongen.spec.units import parse_size

        if isinstance(value, int):
            return value
        try:
            size = 0 if value == "0" else parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if size < self._least:
            self.fail(f"{value} is too small: at least {self._least} byte{'s' * (self._least != 1)}", param, ctx)
        return size


prove_limit = click.option(
    "--prove-limit",
    type=SizeType(),
    default="2GiB",
    show_default=True,
    help="Run models up to this size in ONNX Runtime, to prove the warmup samples; 0 proves nothing.",
)
