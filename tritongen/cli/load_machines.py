"""The options of `tritongen load` that say which processes and machines send, in Locust's own words for them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tritongen import __version__
from tritongen.cli.options import AccessOptions

if TYPE_CHECKING:
    from tritongen.client.endpoint import Access
    from tritongen.load.engine import Machines

_DEFAULT_PORT = 5557
_WORKERS_OWN = frozenset({"worker", "master_host", "master_port", "processes", "expect_workers_max_wait", *AccessOptions.__dataclass_fields__})
_MASTERS_OWN = frozenset({"master_bind_host", "master_bind_port", "expect_workers"})


@dataclass(frozen=True)
class MachineOptions:
    """The options as given; names are those of the options."""

    processes: int
    master: bool
    worker: bool
    master_host: str
    master_port: int
    master_bind_host: str
    master_bind_port: int
    expect_workers: int
    expect_workers_max_wait: str
    web_host: str
    web_port: int | None

    @property
    def max_wait_s(self) -> float:
        """Seconds to wait for others. Raises UsageError."""
        from tritongen.spec.units import parse_duration

        try:
            return parse_duration(self.expect_workers_max_wait) / 1e6
        except ValueError as error:
            raise click.UsageError(f"--expect-workers-max-wait: {error}") from error

    @property
    def machines(self) -> Machines:
        """The same for a run that this process leads."""
        from tritongen.load.engine import Machines

        workers = self.expect_workers if self.master else 0
        return Machines(self.count, workers, self.master_bind_host, self.master_bind_port, self.max_wait_s, self.web_host, self.web_port or 0)

    @property
    def count(self) -> int:
        """Processes on this machine: one for each core that this process may use where that was asked for."""
        return self.processes if self.processes > 0 else len(os.sched_getaffinity(0))

    def announce(self) -> None:
        """Say where Locust's page is."""
        if self.web_port is not None:
            host = f"[{self.web_host}]" if ":" in self.web_host else self.web_host
            click.echo(f"Locust's page: http://{host}:{self.web_port}", err=True)

    def work(self, access: Access) -> None:
        """Be a worker until the master's run is over. Raises EnvironmentProblem."""
        from tritongen.load.worker import run_worker

        run_worker(
            self.master_host,
            self.master_port,
            tool_version=__version__,
            processes=self.count,
            access=access,
            max_wait_s=self.max_wait_s,
            say=lambda text: click.echo(f"worker: {text}", err=True),
        )


_OPTIONS = (
    click.option(
        "--processes",
        type=click.IntRange(min=-1),
        default=1,
        show_default=True,
        help="Processes that send, under a master of Locust's where there are several; -1 for one a core.",
    ),
    click.option("--master", is_flag=True, help="Lead workers on other machines instead of sending: each is started there with --worker."),
    click.option(
        "--expect-workers", type=click.IntRange(min=1), default=1, show_default=True, help="With --master: how many; the run begins when all are there."
    ),
    click.option(
        "--expect-workers-max-wait", metavar="DURATION", default="1m", show_default=True, help="How long a master and its workers wait for each other."
    ),
    click.option("--master-bind-host", default="*", show_default=True, help="With --master: the address to listen at."),
    click.option("--master-bind-port", type=click.IntRange(1, 65535), default=_DEFAULT_PORT, show_default=True, help="With --master: the port to listen at."),
    click.option(
        "--web-port", type=click.IntRange(1, 65535), metavar="PORT", help="Show Locust's own page with its (rounded) statistics there during the run."
    ),
    click.option("--web-host", default="127.0.0.1", show_default=True, help="With --web-port: the address of this machine that the page is at."),
    click.option("--worker", is_flag=True, help="Send what a master on another machine says, and nothing else: without SPEC|MODEL."),
    click.option("--master-host", default="127.0.0.1", show_default=True, help="With --worker: the master's address."),
    click.option("--master-port", type=click.IntRange(1, 65535), default=_DEFAULT_PORT, show_default=True, help="With --worker: the master's port."),
)


def machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command, which gets them in one argument, `where`; options that contradict each other are UsageErrors."""

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        given = {name: values.pop(name) for name in MachineOptions.__dataclass_fields__}
        _check(MachineOptions(**given), values)
        return command(where=MachineOptions(**given), **values)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _check(options: MachineOptions, others: dict[str, Any]) -> None:
    context = click.get_current_context()
    said = {name for name in (*MachineOptions.__dataclass_fields__, *others) if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    problems = []
    if options.worker:
        if foreign := sorted(said - _WORKERS_OWN):
            problems.append(f"a worker is told by its master what to do: leave out {_written(foreign)}")
    elif missed := sorted(said & {"master_host", "master_port"}):
        problems.append(f"{_written(missed)} says where a worker finds its master: add --worker")
    if options.master and "processes" in said:
        problems.append("a master sends nothing itself: leave out --processes here, and give it to the workers")
    if not options.master and not options.worker and (missed := sorted(said & _MASTERS_OWN)):
        problems.append(f"{_written(missed)} is about workers on other machines: add --master")
    if options.web_port is None and "web_host" in said:
        problems.append("--web-host says where Locust's page is: add --web-port")
    if options.processes == 0:
        problems.append("--processes 0 sends nothing: give a number from 1 on, or -1 for one a core")
    if problems:
        raise click.UsageError("; ".join(problems))


def _written(names: list[str]) -> str:
    return ", ".join("SPEC|MODEL" if name == "target" else f"--{name.replace('_', '-')}" for name in names)
