"""`tritongen serve [SPEC|DIR]`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tritongen.cli.options import prove_limit


def _port(name: str, default: int) -> Callable[[Any], Any]:
    help_text = f"Port for {name}; 0 takes any free one. Default: {default}, or a free one where that is taken."
    return click.option(f"--{name}-port", type=click.IntRange(0, 65535), help=help_text)


@click.command("serve")
@click.argument("target", type=click.Path(path_type=Path), required=False)
@_port("http", 8000)
@_port("grpc", 8001)
@_port("metrics", 8002)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--release", metavar="YY.MM", help="The NVIDIA release that the repository is for; the embedded server itself is 24.10.")
@click.option("--disable-auto-complete-config", is_flag=True, help="As tritonserver has it; always so for a spec, whose configs are complete.")
@click.option("--strict", is_flag=True, help="Refuse models whose config this machine cannot honour (GPUs, TensorRT), instead of serving them on the CPU.")
@click.option(
    "--cache-config",
    metavar="local,size=BYTES",
    help="The response cache, as tritonserver has it. Default: 64 MiB where a model asks for response caching, else none.",
)
@click.option(
    "--start-timeout",
    type=click.FloatRange(min=1),
    help="Seconds until every model must be loaded. Default: 120, and 3600 where TensorRT engines are built while loading.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="json: one line on stdout when ready, nothing more."
)
@prove_limit
def command(
    target: Path | None,
    http_port: int | None,
    grpc_port: int | None,
    metrics_port: int | None,
    host: str,
    release: str | None,
    disable_auto_complete_config: bool,
    strict: bool,
    cache_config: str | None,
    start_timeout: float | None,
    form: str,
    prove_limit: int,
) -> int:
    """Serve TARGET on a real Triton on this machine, until Ctrl-C.

    TARGET is a spec (it is rendered into a temporary folder) or the folder of a model repository. The default is spec.yaml here, or else model_repository.
    """
    from tritongen.errors import EnvironmentProblem
    from tritongen.report.text import format_diagnostics
    from tritongen.server import ServerOptions
    from tritongen.server.signals import run_until_stopped, stop_on_signals
    from tritongen.workflow.serving import serving

    options = ServerOptions(
        http_port=http_port,
        grpc_port=grpc_port,
        metrics_port=metrics_port,
        host=host,
        release=release,
        disable_auto_complete=disable_auto_complete_config,
        strict=strict,
        cache_config=cache_config,
        start_timeout_s=start_timeout,
    )
    with stop_on_signals(), serving(target or _default_target(), options, prove_limit_bytes=prove_limit) as served:
        server = served.server
        if served.findings:
            click.echo(format_diagnostics(served.findings), err=True)
        for warning in server.warnings:
            click.echo(f"{click.style('warning', fg='yellow', bold=True)}: {warning}", err=True)
        urls = {"http": server.http_url, "grpc": server.grpc_url, "metrics": server.metrics_url.removesuffix("/metrics")}
        if form == "json":
            click.echo(json.dumps({**urls, "models": server.models}))
        else:
            click.echo(f"ready in {server.ready_s:.1f} s: {', '.join(f'{name} {state}' for name, state in server.models.items()) or 'no models'}")
            click.echo("".join(f"  {name:<8} {url}\n" for name, url in urls.items()) + "Ctrl-C stops it.")
        status = run_until_stopped(server)
        if status is not None:
            raise EnvironmentProblem(f"Triton ended by itself, with status {status}; the end of its log:\n{_tail(server.log())}")
    return 0


def _default_target() -> Path:
    spec, repository = Path("spec.yaml"), Path("model_repository")
    return repository if repository.is_dir() and not spec.exists() else spec


def _tail(log: str) -> str:
    return "\n".join(log.splitlines()[-15:])
