"""What people write behind the options of `tritongen load`, as values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError


def given(readers: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each reader makes of its option, without the options that were not given. Raises InputError with what is wrong with all of them."""
    values: dict[str, Any] = {}
    problems: list[Diagnostic] = []
    for name, reader in readers.items():
        try:
            values[name] = reader()
        except InputError as error:
            problems.extend(error.diagnostics)
    if problems:
        raise InputError(problems)
    return {name: value for name, value in values.items() if value is not None}


def read(parser: str, text: str | None) -> Any:
    """What a parser of `spec.traffic` makes of an option; None for one that was not given. Raises InputError (TG420)."""
    if text is None:
        return None
    from tritongen.load.plan import read
    from tritongen.spec import traffic

    return read(getattr(traffic, parser), text)


def microseconds(text: str | None, option: str, *, zero: bool = False) -> int | None:
    """A length of time; None for one that was not given. Raises InputError (TG420) for what is none or too long, and for 0 unless it is a `zero` too."""
    from tritongen.load.plan import problem
    from tritongen.spec.traffic import too_long
    from tritongen.spec.units import parse_duration

    if text is None:
        return None
    try:
        length = 0 if text == "0" else parse_duration(text)
    except ValueError as error:
        raise problem(f"{option}: {error}", "write a length of time such as 30s") from error
    if not length and not zero:
        raise problem(f"{option}: it must be above 0", "write a length of time such as 30s")
    if wrong := too_long(length / 1e6, "it"):
        raise problem(f"{option}: {wrong}", "write a shorter one")
    return length


def not_empty(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """What was given; None where nothing was. Raises UsageError for an empty text, as a variable of the shell leaves it that is not set."""
    if text == "":
        raise click.UsageError(f"{option.opts[-1]} is empty: give a value, or leave it out")
    return text


def metrics_page(context: click.Context, option: click.Parameter, given: str | None) -> str:
    """The address of a metrics page, which Triton has at `/metrics` where it names no page; empty where none was given. Raises UsageError for what is none."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    url = not_empty(context, option, given) or ""
    try:
        parts = parse_url(url) if url else None
    except LocationParseError:
        raise click.UsageError(f"--metrics-url {url[:100]!r} is no address: write one such as http://host:8002/metrics") from None
    if parts is not None and not (parts.scheme in ("http", "https") and parts.host):
        raise click.UsageError(f"--metrics-url {url[:100]!r} does not say over what and where: write one such as http://host:8002/metrics")
    return str(parts._replace(path="/metrics")) if parts is not None and parts.path in (None, "/") else url


def shapes(entries: Sequence[str]) -> dict[str, Any] | None:
    """The mix of each input's sizes, by its name; None without any. Raises InputError (TG420)."""
    from tritongen.load.plan import problem

    texts: dict[str, str] = {}
    for entry in entries:
        name, _, text = (part.strip() for part in entry.partition("="))
        if not name or not text:
            raise problem(f"--shape-mix {entry!r} is not of an input", "write NAME=3x48x320, or NAME=3x48x320:70%,3x48x640:30%")
        if name in texts:
            raise problem(f"--shape-mix names the input {name!r} twice", f"write its sizes in one, {name}=3x48x320:70%,3x48x640:30%")
        texts[name] = text
    return given({name: functools.partial(read, "parse_shape_mix", text) for name, text in texts.items()}) or None
