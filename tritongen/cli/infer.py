"""`tritongen infer MODEL -u URL`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

_DEFAULT_URL = "grpc://127.0.0.1:8001"


@click.command("infer")
@click.argument("model")
@click.option("-u", "--url", default=_DEFAULT_URL, show_default=True, help="The server: grpc://host:8001, http://host:8000, grpcs:// or https://.")
@click.option(
    "--input",
    "inputs",
    metavar="NAME=FILE.npy",
    multiple=True,
    help="Values of an input: a .npy file, or a number or list such as sr=16000. Others are random.",
)
@click.option("--shape", "shapes", metavar="NAME=3x48x320", multiple=True, help="Sizes of an input's variable dimensions, without the batch dimension.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Rows in the request.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random values.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, help="Seconds to wait for an answer.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder to write every output to, as NAME.npy.")
def command(model: str, url: str, inputs: Sequence[str], shapes: Sequence[str], batch: int, seed: int, timeout: float, output: Path | None) -> int:
    """Send one request to MODEL and print what comes back."""
    from tritongen.client import Client
    from tritongen.workflow.asking import ask, dtype_name, statistics

    given, sizes = _given(inputs), _sizes(shapes)
    with Client(url, timeout_s=timeout) as client:
        answer = ask(client, model, given=given, shapes=sizes, batch=batch, seed=seed)
    click.echo(f"{model} version {answer.meta.version}: {answer.seconds * 1000:.2f} ms")
    for kind, arrays in (("input", answer.inputs), ("output", answer.outputs)):
        for name, array in arrays.items():
            click.echo(f"  {kind:<7} {name}  {dtype_name(array)} {list(array.shape)}  {statistics(array)}")
    if output is not None:
        _save(output, answer.outputs)
    return 0


def _given(pairs: Sequence[str]) -> dict[str, object]:
    import numpy as np

    given: dict[str, object] = {}
    for name, value in _split(pairs, "--input"):
        if not value.endswith(".npy"):
            try:
                given[name] = json.loads(value)
            except json.JSONDecodeError:
                given[name] = value
            continue
        try:
            given[name] = np.load(value, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise click.UsageError(f"--input {name}: {value} cannot be read as a .npy file: {error}") from error
    return given


def _sizes(pairs: Sequence[str]) -> dict[str, tuple[int, ...]]:
    sizes = {}
    for name, value in _split(pairs, "--shape"):
        parts = value.split("x")
        if not all(part.isdecimal() and int(part) >= 1 for part in parts):
            raise click.UsageError(f"--shape {name}: {value!r} is not a shape; write sizes with x between them, such as {name}=3x48x320")
        sizes[name] = tuple(int(part) for part in parts)
    return sizes


def _split(pairs: Sequence[str], option: str) -> list[tuple[str, str]]:
    """`NAME=VALUE` at the last `=`: tensor names may hold one, files and shapes of this command rarely do."""
    split = [pair.rpartition("=") for pair in pairs]
    for pair, (name, _, value) in zip(pairs, split, strict=True):
        if not name or not value:
            raise click.UsageError(f"{option} {pair!r}: write NAME=VALUE")
    return [(name, value) for name, _, value in split]


def _save(folder: Path, outputs: object) -> None:
    import re

    import numpy as np

    from tritongen.diagnostics import Diagnostic, Location
    from tritongen.errors import InputError

    assert isinstance(outputs, dict)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in outputs.items():
            # Tensor names may hold `/` and more that a file name may not.
            path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.npy"
            np.save(path, array.astype("S") if array.dtype == object else array, allow_pickle=False)
            click.echo(f"wrote {path}")
    except OSError as error:
        raise InputError(
            [
                Diagnostic(
                    "TG065", f"an output cannot be written: {error.strerror}", Location(str(error.filename or folder)), hint="choose another folder with -o"
                )
            ]
        ) from error
