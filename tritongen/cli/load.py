"""`tritongen load MODEL -u URL`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tritongen import __version__
from tritongen.cli.load_machines import MachineOptions, machine_options
from tritongen.cli.load_output import LoadOutput
from tritongen.cli.options import SPEC, OutputPath

if TYPE_CHECKING:
    from tritongen.load.arrivals import Stage
    from tritongen.load.engine import Machines
    from tritongen.load.plan import LoadPlan
    from tritongen.load.result import LoadResult
    from tritongen.load.run import Progress

_DEFAULT_URL = "grpc://127.0.0.1:8001"
_DEFAULT_RATE = 50.0
_CLEAR = "\r\x1b[K"


@click.command("load")
@click.argument("model", required=False)
@click.option("-u", "--url", default=_DEFAULT_URL, show_default=True, help="The server: grpc://host:8001 or http://host:8000 (grpcs:// and https:// for TLS).")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help=f"Requests a second, whether or not earlier ones were answered. Default: {_DEFAULT_RATE:g}."
)
@click.option("--users", type=click.IntRange(min=1), help="A closed loop instead: so many requests under way, each sent when the one before was answered.")
@click.option("--stages", help="Rates after one another: RATE:DURATION, or FROM-TO:DURATION for a ramp, such as 100:30s,100-400:1m.")
@click.option("--find-max", is_flag=True, help="Search the highest rate that keeps the SLO, from --rate on, with runs of --duration each.")
@click.option("--duration", default="30s", show_default=True, help="Length of the measured time, for --rate and --users.")
@click.option("--warmup", default="5s", show_default=True, help="Time before it, whose requests are in no result.")
@click.option("--arrivals", default="poisson", show_default=True, help="poisson (independent users), constant, or trace:FILE (seconds, one a line).")
@click.option("--batch-mix", default="1", show_default=True, help="Rows of a request, such as 1:70%,8:30%.")
@click.option(
    "--shape-mix", metavar="NAME=3x48x320:70%,3x48x640:30%", multiple=True, help="Sizes of an input's variable dimensions, without the batch dimension."
)
@click.option("--data", default="random", show_default=True, help="Inputs: random, a .npz file, or a folder of NAME.npy files.")
@machine_options
@click.option("--slo", help="What must be kept, such as p99=20ms,error_rate=0.1%. Exit code 1 where it is not.")
@click.option("--deadline", default="10s", show_default=True, help="When a request is given up, from its scheduled instant.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of arrivals and random inputs.")
@click.option("--metrics-url", default="", help="The server's metrics page. Default: port 8002 of its host.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="What is printed.")
@click.option("-o", "--output", type=OutputPath(), help="File to write the result to, as JSON (docs/load_result.schema.json).")
@click.option("--html", type=OutputPath(), help="File to write a report with charts to, which needs no network.")
@click.option("--compare", type=SPEC, metavar="FILE.json", help="An earlier result (-o), shown beside this one. The exit code does not depend on it.")
def command(
    model: str | None,
    url: str,
    rate: float | None,
    users: int | None,
    stages: str | None,
    find_max: bool,
    duration: str,
    warmup: str,
    arrivals: str,
    batch_mix: str,
    shape_mix: Sequence[str],
    data: str,
    where: MachineOptions,
    slo: str | None,
    deadline: str,
    seed: int,
    metrics_url: str,
    form: str,
    output: Path | None,
    html: Path | None,
    compare: Path | None,
) -> int:
    """Load MODEL with requests that arrive on a schedule, and print its true tail.

    Latencies count from the instant at which a request was due, so that a server that stands still is seen. Exit code 1: the SLO was missed, or the run says
    more about this machine than about the server.
    """
    if where.worker:
        where.work()
        return 0
    if model is None:
        raise click.UsageError("Missing argument 'MODEL'.")
    from tritongen.load.plan import LoadPlan, Slo, parse_slo
    from tritongen.load.run import run_load

    if find_max and (users or stages):
        raise click.UsageError("--find-max searches an open loop's rate; --users and --stages say another thing")
    if sum(option is not None for option in (rate, users, stages)) > 1:
        raise click.UsageError("--rate, --users and --stages exclude one another: a run is an open loop of one rate, a closed loop, or stages")
    seconds, warmup_s, deadline_s = _seconds(duration, "--duration"), _seconds(warmup, "--warmup", zero=True), _seconds(deadline, "--deadline")
    kind, trace = _arrivals(arrivals)
    plan = LoadPlan(
        model,
        url,
        stages=() if users else _stages(stages, rate, seconds, warmup_s),
        users=users or 0,
        seconds=seconds if users else 0.0,
        warmup_s=warmup_s if users else 0.0,
        arrivals=kind,  # type: ignore[arg-type]
        trace=trace,
        batch_mix=_batches(batch_mix),
        shape_mix=_shapes(shape_mix),
        data=data,
        deadline_s=deadline_s,
        seed=seed,
        slo=parse_slo(slo) if slo else Slo(),
    )
    outputs = LoadOutput.prepare(form, output, html, compare)
    if find_max:
        return _find_max(plan, rate or _DEFAULT_RATE, seconds, warmup_s, where.machines, metrics_url, outputs)
    result = run_load(plan, machines=where.machines, metrics_url=metrics_url, tool_version=__version__, progress=_progress(plan))
    outputs.result(result)
    return 1 if result.invalid or result.missed_slo() or not result.complete else 0


def _find_max(plan: LoadPlan, first_rate: float, seconds: float, warmup_s: float, machines: Machines, metrics_url: str, outputs: LoadOutput) -> int:
    from tritongen.load.findmax import find_max
    from tritongen.load.run import run_load
    from tritongen.report.load import format_probe

    def run(probe: LoadPlan) -> LoadResult:
        result = run_load(probe, machines=machines, metrics_url=metrics_url, tool_version=__version__, progress=_progress(probe))
        click.echo(format_probe(result), err=outputs.form == "json")
        return result

    found = find_max(plan, first_rate=first_rate, seconds=seconds, warmup_s=warmup_s, run=run)
    outputs.found(found)
    return 0 if found.rate else 1


def _seconds(text: str, option: str, *, zero: bool = False) -> float:
    from tritongen.spec.units import parse_duration

    try:
        seconds = 0.0 if zero and text == "0" else parse_duration(text) / 1e6
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error
    if seconds <= 0 and not zero:
        raise click.UsageError(f"{option}: it must be above 0")
    return seconds


def _arrivals(text: str) -> tuple[str, str]:
    kind, _, path = text.partition(":")
    if kind == "trace" and path:
        try:
            Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"--arrivals: {path} cannot be read: {error}") from error
        return kind, path
    if kind not in ("poisson", "constant") or path:
        raise click.UsageError(f"--arrivals {text!r}: write poisson, constant or trace:FILE")
    return kind, ""


def _stages(stages: str | None, rate: float | None, seconds: float, warmup_s: float) -> tuple[Stage, ...]:
    from tritongen.load.plan import parse_stages

    return parse_stages(stages or f"{rate or _DEFAULT_RATE!r}:{seconds!r}s", warmup_s)


def _batches(text: str) -> tuple[tuple[int, float], ...]:
    from tritongen.load.plan import parse_mix

    mix = parse_mix(text)
    if not all(rows.isdecimal() and int(rows) >= 1 for rows, _ in mix):
        raise click.UsageError(f"--batch-mix {text!r}: a batch is a whole number of rows, such as 1:70%,8:30%")
    return tuple((int(rows), part) for rows, part in mix)


def _shapes(entries: Sequence[str]) -> tuple[tuple[dict[str, tuple[int, ...]], float], ...]:
    """Every combination of the inputs' shapes, with the product of their parts."""
    from tritongen.load.plan import parse_mix

    mixes: list[tuple[dict[str, tuple[int, ...]], float]] = [({}, 1.0)]
    for entry in entries:
        name, _, text = entry.partition("=")
        parsed = parse_mix(text)
        if not name or not all(all(size.isdecimal() and int(size) >= 1 for size in shape.split("x")) for shape, _ in parsed):
            raise click.UsageError(f"--shape-mix {entry!r}: write NAME=3x48x320, or NAME=3x48x320:70%,3x48x640:30%")
        mixes = [({**known, name: tuple(map(int, shape.split("x")))}, part * more) for known, part in mixes for shape, more in parsed]
    return tuple(mixes) if entries else ()


def _progress(plan: LoadPlan) -> Callable[[Progress], None]:
    """What happens to workers, at once; and a line that is written over several times a second, on a terminal only."""
    import sys

    terminal = sys.stderr.isatty()

    def show(progress: Progress) -> None:
        from tritongen.load.result import measure

        for text in progress.news:
            click.echo(f"{_CLEAR if terminal else ''}{text}", err=True)
        latest = progress.latest.total()
        errors = sum(progress.recorder.messages.values())
        if terminal and (latest.count or progress.elapsed_s < 0):
            elapsed = max(progress.elapsed_s, 0.0)
            text = f"\r{elapsed:6.1f} of {plan.length_s:g} s   p99 {measure(latest, 'p99'):8.2f} ms   under way {progress.under_way:4}   errors {errors}   "
            click.echo(text, nl=False, err=True)

    return show
