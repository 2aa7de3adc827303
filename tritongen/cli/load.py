"""`tritongen load SPEC|MODEL -u URL`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tritongen import __version__
from tritongen.cli.load_live import LiveLine
from tritongen.cli.load_machines import MachineOptions, machine_options
from tritongen.cli.load_options import given, metrics_page, microseconds, not_empty, read, shapes
from tritongen.cli.load_output import LoadOutput
from tritongen.cli.options import SPEC, AccessOptions, OutputPath, access_options

if TYPE_CHECKING:
    from tritongen.client.endpoint import Access
    from tritongen.load.engine import Machines
    from tritongen.load.findmax import Probe
    from tritongen.load.plan import LoadPlan
    from tritongen.load.result import LoadResult


@click.command("load")
@click.argument("target", metavar="SPEC|MODEL", required=False)
@click.option("--scenario", callback=not_empty, help="The load test of the spec that is run. Default: the only one.")
@click.option("--model", callback=not_empty, help="A model of the spec, in place of a scenario.")
@click.option(
    "-u", "--url", callback=not_empty, help="The server: grpc://host:8001 or http://host:8000 (grpcs:// and https:// for TLS). Default: this machine, gRPC."
)
@click.option("--rate", help="Requests a second, whether or not earlier ones were answered. Default: 50.")
@click.option("--users", type=click.IntRange(min=1), help="A closed loop instead: so many requests under way, each sent when the one before was answered.")
@click.option("--stages", help="Rates after one another: RATE:DURATION, or FROM-TO:DURATION for a ramp, such as 100:30s,100-400:1m.")
@click.option("--find-max", is_flag=True, help="Search the highest rate that keeps the SLO, from --rate on, with runs of --duration each.")
@click.option("--duration", help="Length of the measured time, for --rate and --users. Default: 30s.")
@click.option("--warmup", help="Time before it, whose requests are in no result. Default: 5s; none for a trace.")
@click.option("--arrivals", help="poisson (independent users), constant, or trace:FILE (seconds, one a line). Default: poisson.")
@click.option("--batch-mix", help="Rows of a request, such as 1:70%,8:30%. Default: 1.")
@click.option(
    "--shape-mix", metavar="NAME=3x48x320:70%,3x48x640:30%", multiple=True, help="Sizes of an input's variable dimensions, without the batch dimension."
)
@click.option(
    "--data",
    callback=not_empty,
    help="Inputs: random, an .npz file, or a folder with NAME.npy or a folder NAME of pictures, recordings, texts or arrays for each."
    " Default: the spec's samples.",
)
@click.option("--pool", type=click.IntRange(1, 100_000), help="How many different requests to each model are prepared. Default: 64.")
@machine_options
@access_options
@click.option("--slo", help="What must be kept, such as p99=20ms,error_rate=0.1%. Exit code 1 where it is not. Default: what the spec promises.")
@click.option("--deadline", help="When a request is given up, from its scheduled instant. Default: 10s.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of arrivals, random inputs and the order of files. Default: 0.")
@click.option("--metrics-url", callback=metrics_page, help="The server's metrics page (default: /metrics on port 8002 of its host).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="What is printed.")
@click.option("-o", "--output", type=OutputPath(), help="File to write the result to, as JSON (docs/load_result.schema.json).")
@click.option("--html", type=OutputPath(), help="File to write a report with charts to, which needs no network.")
@click.option("--compare", type=SPEC, metavar="FILE.json", help="An earlier result (-o), shown beside this one. The exit code does not depend on it.")
def command(
    target: str | None,
    scenario: str | None,
    model: str | None,
    url: str | None,
    rate: str | None,
    users: int | None,
    stages: str | None,
    find_max: bool,
    duration: str | None,
    warmup: str | None,
    arrivals: str | None,
    batch_mix: str | None,
    shape_mix: Sequence[str],
    data: str | None,
    pool: int | None,
    where: MachineOptions,
    access: AccessOptions,
    slo: str | None,
    deadline: str | None,
    seed: int | None,
    metrics_url: str,
    form: str,
    output: Path | None,
    html: Path | None,
    compare: Path | None,
) -> int:
    """Load a model, or run a scenario of a spec: requests arrive on a schedule, and the true tail is printed.

    Latencies count from the instant at which a request was due, so that a server that stands still is seen. Options override what the scenario says. Exit
    code 1: the SLO was missed, or the run says more about this machine than about the server.
    """
    if where.worker:
        where.work(access.for_load())
        return 0
    if target is None:
        raise click.UsageError("Missing argument 'SPEC|MODEL'.")
    if find_max and (users or stages):
        raise click.UsageError("--find-max searches an open loop's rate; --users and --stages say another thing")
    if sum(option is not None for option in (rate, users, stages)) > 1:
        raise click.UsageError("--rate, --users and --stages exclude one another: a run is an open loop of one rate, a closed loop, or stages")
    options = given(
        {
            "rate": lambda: read("parse_rate", rate),
            "users": lambda: users,
            "stages": lambda: read("parse_steps", stages),
            "duration_us": lambda: microseconds(duration, "--duration"),
            "warmup_us": lambda: microseconds(warmup, "--warmup", zero=True),
            "arrivals": lambda: read("parse_arrivals", arrivals),
            "batch_mix": lambda: read("parse_batch_mix", batch_mix),
            "shape_mix": lambda: shapes(shape_mix),
            "data": lambda: data,
            "pool": lambda: pool,
            "slo": lambda: read("parse_slo", slo),
            "deadline_us": lambda: microseconds(deadline, "--deadline"),
            "seed": lambda: seed,
        }
    )
    served = _Served(where.machines, access.for_load(), metrics_url)
    plan = _plan(target, scenario or "", model or "", url or "", options, find_max=find_max)
    outputs = LoadOutput.prepare(form, output, html, compare)
    where.announce()
    if find_max:
        *before, measured = plan.stages
        return _find_max(plan, measured.rate, measured.seconds, sum(stage.seconds for stage in before), served, outputs)
    result = served.run(plan)
    outputs.result(result)
    return 1 if result.invalid or result.missed_slo() or not result.complete else 0


@dataclass(frozen=True)
class _Served:
    """What all runs of a command have in common: who sends, how a server lets them in, where its metrics are."""

    machines: Machines
    access: Access
    metrics_url: str

    def run(self, plan: LoadPlan) -> LoadResult:
        """One run, shown while it goes on."""
        from tritongen.load.run import run_load

        with LiveLine(plan) as live:
            return run_load(plan, machines=self.machines, access=self.access, metrics_url=self.metrics_url, tool_version=__version__, progress=live.show)


def _find_max(plan: LoadPlan, first_rate: float, seconds: float, warmup_s: float, served: _Served, outputs: LoadOutput) -> int:
    from tritongen.load.findmax import check_search, find_max
    from tritongen.report.load_search import described_effort, format_probe

    def tell(probe: Probe) -> None:
        click.echo(format_probe(probe), err=outputs.form == "json")

    check_search(plan)
    click.echo(described_effort(first_rate, seconds, warmup_s), err=True)
    found = find_max(plan, first_rate=first_rate, seconds=seconds, warmup_s=warmup_s, run=served.run, tell=tell)
    outputs.found(found)
    return 0 if found.rate and found.complete and not found.nothing_due else 1


def _plan(target: str, scenario: str, model: str, url: str, given: dict[str, Any], *, find_max: bool) -> LoadPlan:
    from tritongen.load.plan import shortened
    from tritongen.workflow.loading import plan_for_model, plan_for_spec

    if find_max and "rate" not in given:
        given["users"] = given["stages"] = None
    # No model of Triton's has a slash in its name.
    if target.endswith((".yaml", ".yml")) or "/" in target:
        if scenario and model:
            raise click.UsageError("--scenario and --model exclude one another: a scenario says which models it loads")
        return shortened(plan_for_spec(Path(target), given, scenario=scenario, model=model, url=url))
    if scenario or model:
        raise click.UsageError(f"--{'scenario' if scenario else 'model'} is of a spec, and {target!r} is the name of a model: give the spec's file")
    return shortened(plan_for_model(target, given, url=url))
