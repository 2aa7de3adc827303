"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tritongen.client.endpoint import Access

SPEC = click.Path(path_type=Path)
"""A path that the stage itself checks: its message says more than click's."""


class OutputPath(click.Path):
    """A file or folder to write to.

    An empty one (`-o "$UNSET"`) is refused: as a path it would be the current folder. So is what looks like an option (`-o --dry-run`): it would be written to.
    `~` is the home folder as in a spec, since shells leave it in `--output=~/x`; `./~` is a folder of that name.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("the path is empty; name a file or folder, such as ./out, or '.' for the current folder", param, ctx)
        if isinstance(value, str) and value.startswith("-") and value != "-":
            self.fail(f"{value!r} looks like an option, and the path is missing before it; a file or folder of that name is ./{value}", param, ctx)
        try:
            return Path(os.fsdecode(super().convert(value, param, ctx))).expanduser()
        except RuntimeError:
            self.fail(f"the home folder in {value!r} cannot be determined; write the path without ~, or as ./{value} for a folder of that name", param, ctx)


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


_TOKEN = "TRITONGEN_TOKEN"  # noqa: S105 - the name of a variable
_MOST_TOKEN_BYTES = 1 << 16


@dataclass(frozen=True)
class AccessOptions:
    """How a server lets us in, as given; names are those of the options. A token is never an option's value: the list of processes shows those to everybody."""

    token_file: Path | None
    header: Sequence[str]
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None

    def for_client(self) -> dict[str, Any]:
        """The arguments `token`, `headers` and `tls` of a client. Raises UsageError, without showing a value, and InputError."""
        from tritongen.client import Tls

        with_tls = any((self.tls_ca, self.tls_cert, self.tls_key))
        tls = Tls(self.tls_ca, self.tls_cert, self.tls_key) if with_tls else None
        return {"token": self._token(), "headers": self._headers(), "tls": tls}

    def for_load(self) -> Access:
        """What the requests of a load test carry. Raises UsageError and InputError."""
        from tritongen.client.endpoint import make_access

        return make_access(**self.for_client())

    def _token(self) -> str | None:
        if self.token_file is None:
            return os.environ.get(_TOKEN) or None
        try:
            with self.token_file.open("rb") as file:
                content = file.read(_MOST_TOKEN_BYTES + 1)
            text = content.decode("ascii").strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text of ASCII"
            raise click.UsageError(f"--token-file {self.token_file} cannot be read: {why}") from None
        if not text or len(content) > _MOST_TOKEN_BYTES:
            raise click.UsageError(f"--token-file {self.token_file} holds no token: it is {'longer than any' if text else 'empty'}")
        return text

    def _headers(self) -> dict[str, str] | None:
        headers: dict[str, str] = {}
        for place, pair in enumerate(self.header, 1):
            name, equals, value = pair.partition("=")
            if not name or not equals:
                raise click.UsageError(f"--header: number {place} has no name or no value; write NAME=VALUE")
            if name.lower() in (known.lower() for known in headers):
                raise click.UsageError(f"--header {name} is given twice")
            headers[name] = value
        return headers or None


_ACCESS = (
    click.option("--token-file", type=SPEC, help=f"File with a bearer token for the server. Default: the token in the variable {_TOKEN}, if there is one."),
    click.option("--header", metavar="NAME=VALUE", multiple=True, help="A header, or metadata of gRPC, that every request carries."),
    click.option("--tls-ca", type=SPEC, help="PEM file of certificates to trust, in place of this machine's, for grpcs:// and https://."),
    click.option("--tls-cert", type=SPEC, help="PEM file of our own certificate, for a server that wants one (mutual TLS)."),
    click.option("--tls-key", type=SPEC, help="PEM file of its private key."),
)


def access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options by which a server lets us in to a command, which gets them in one argument, `access`."""

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        given = {name: values.pop(name) for name in AccessOptions.__dataclass_fields__}
        return command(access=AccessOptions(**given), **values)

    for option in reversed(_ACCESS):
        wrapped = option(wrapped)
    return wrapped
