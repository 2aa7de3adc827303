"""`tritongen infer MODEL -u URL`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tritongen.cli.options import AccessOptions, OutputPath, access_options

_DEFAULT_URL = "grpc://127.0.0.1:8001"


@click.command("infer")
@click.argument("model")
@click.option("-u", "--url", default=_DEFAULT_URL, show_default=True, help="The server: grpc://host:8001, http://host:8000, grpcs:// or https://.")
@click.option(
    "--input",
    "inputs",
    metavar="NAME=FILE.npy|JSON",
    multiple=True,
    help="Values of an input: a .npy file, or JSON such as sr=16000 or ids=[1,2,3]. Others are random, with the rows of the given ones.",
)
@click.option("--shape", "shapes", metavar="NAME=3x48x320", multiple=True, help="Sizes of an input's variable dimensions, without the batch dimension.")
@click.option("--batch", type=click.IntRange(min=1), help="Rows in the request. Default: those of the given inputs, or 1.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random values.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, help="Seconds to wait for each answer.")
@access_options
@click.option("-o", "--output", type=OutputPath(), help="Folder to write every output to, as NAME.npy.")
def command(
    model: str,
    url: str,
    inputs: Sequence[str],
    shapes: Sequence[str],
    batch: int | None,
    seed: int,
    timeout: float,
    access: AccessOptions,
    output: Path | None,
) -> int:
    """Send one request to MODEL and print what comes back."""
    from tritongen.client import Client
    from tritongen.report.text import printable
    from tritongen.workflow.asking import ask, dtype_name, statistics
    from tritongen.workflow.inputs import Origin

    given, sizes = _given(inputs), _sizes(shapes)
    with Client(url, deadline_s=timeout, **access.for_client()) as client:
        answer = ask(client, model, given=given, shapes=sizes, batch=batch, seed=seed)
    click.echo(f"{printable(model)} version {printable(answer.meta.version)}: {answer.seconds * 1000:.2f} ms")
    for kind, arrays in (("input", answer.inputs), ("output", answer.outputs)):
        for name, array in arrays.items():
            origin = answer.origins[name] if kind == "input" else Origin.GIVEN
            made = "" if origin is Origin.GIVEN else f"  {origin.value}"
            click.echo(f"  {kind:<7} {printable(name)}  {dtype_name(array)} {list(array.shape)}{made}  {statistics(array)}")
    if output is not None:
        _save(output, answer.outputs)
    return 0


def _given(pairs: Sequence[str]) -> dict[str, object]:
    import numpy as np

    given: dict[str, object] = {}
    # At the first `=`: paths and texts hold one more often than names of tensors do.
    for name, value in _split([(pair, *pair.partition("=")) for pair in pairs], "--input"):
        if not value.endswith(".npy"):
            given[name] = _plain(name, value)
            continue
        try:
            given[name] = np.load(value, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise click.UsageError(f"--input {name}: {value} cannot be read as a .npy file: {error}") from error
    return given


def _plain(name: str, value: str) -> object:
    """A value that is no .npy file: JSON, or text as it stands. Text that names a file is refused: the file would be meant, and its name sent."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        is_file = Path(value).is_file()
    except (OSError, ValueError):
        is_file = False
    if is_file:
        raise click.UsageError(f"--input {name}: {value} is a file, and only .npy files are read; {_how_to_save(value)}")
    return value


def _how_to_save(path: str) -> str:
    """What to do with a file of another kind."""
    import zipfile

    import numpy as np

    if path.endswith(".npz"):
        try:
            with np.load(path, allow_pickle=False) as archive:
                names = list(archive.files)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError):
            return "this one cannot be read as .npz either"
        if names:
            held = ", ".join(repr(name) for name in names[:10])
            return f"it holds the arrays {held}: save one with np.save({names[0] + '.npy'!r}, np.load({path!r})[{names[0]!r}])"
    return "save the array with numpy.save('NAME.npy', array); for the words themselves as text, quote them as JSON: '\"...\"'"


def _sizes(pairs: Sequence[str]) -> dict[str, tuple[int, ...]]:
    from tritongen.spec.traffic import TrafficError, parse_sizes

    sizes = {}
    # At the last `=`: sizes hold none, names of tensors may.
    for name, value in _split([(pair, *pair.rpartition("=")) for pair in pairs], "--shape"):
        try:
            sizes[name] = parse_sizes(value)
        except TrafficError as error:
            raise click.UsageError(f"--shape {name}: {value!r} is not a shape; write sizes with x between them, such as {name}=3x48x320") from error
    return sizes


def _split(pairs: Sequence[tuple[str, str, str, str]], option: str) -> list[tuple[str, str]]:
    """Names and values; `pairs` are the texts given, each with its three parts."""
    for pair, name, _, value in pairs:
        if not name or not value:
            raise click.UsageError(f"{option} {pair!r}: write NAME=VALUE")
    return [(name, value) for _, name, _, value in pairs]


def _save(folder: Path, outputs: Mapping[str, Any]) -> None:
    import re

    import numpy as np

    from tritongen.diagnostics import Diagnostic, Location
    from tritongen.errors import InputError
    from tritongen.report.text import printable

    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken: set[str] = set()
        for name, array in outputs.items():
            # Tensor names may hold `/` and more that a file name may not, and two of them may then look the same.
            plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
            file = next(text for text in (plain, *(f"{plain}_{number}" for number in range(2, len(outputs) + 2))) if text not in taken)
            taken.add(file)
            path = folder / f"{file}.npy"
            np.save(path, array.astype("S") if array.dtype == object else array, allow_pickle=False)
            cut = sum(text.endswith(b"\0") for text in array.ravel().tolist()) if array.dtype == object else 0
            click.echo(f"wrote {printable(str(path))}" + f", where {cut} texts lost the zero bytes at their end, which a .npy file does not keep" * (cut > 0))
    except OSError as error:
        raise InputError(
            [
                Diagnostic(
                    "TG065", f"an output cannot be written: {error.strerror}", Location(str(error.filename or folder)), hint="choose another folder with -o"
                )
            ]
        ) from error
