"""How the embedded server is to be started: `ServerOptions`, checked once, frozen afterwards."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, get_args

from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.releases import RELEASES, find_release
from tritongen.server.policies import Host, unfit
from tritongen.spec.server import SMALLEST_CACHE_BYTES, ModelControl, Server
from tritongen.spec.values import RELEASE_PATTERN
from tritongen.tritonserver import DEFAULT_CACHE_BYTES, OPTIONS, Key

EMBEDDED_RELEASE = "24.10"
"""The release whose core the embedded server is; what it stands for where nobody names one."""

_HIGHEST_PORT = 65535
_SHM_PREFIX = "shm-region-prefix-name"
_CACHE_CONFIG = re.compile(r"local,size=(?P<size>[0-9]{1,40})")
_LARGEST_CACHE_BYTES = 1 << 40

_OURS = (
    "--model-repository",
    "--model-store",
    "--backend-directory",
    "--cache-directory",
    "--cache-config",
    "--http-port",
    "--http-address",
    "--grpc-port",
    "--grpc-address",
    "--metrics-port",
    "--metrics-address",
    "--allow-http",
    "--allow-metrics",
    "--model-control-mode",
    "--load-model",
    "--exit-on-error",
    "--disable-auto-complete-config",
    "--strict-model-config",
    "--repository-poll-secs",
    "--log-file",
    "--log-info",
    "--log-error",
)
"""tritonserver's options that follow from `ServerOptions`, or that reading Triton's reasons from its log depends on."""


@dataclass(frozen=True)
class ServerOptions:
    """Settings of one embedded server.

    A port of None means Triton's default (8000, 8001, 8002), or a free one where the default is taken; 0 means any free one; a number means this one or an
    error.

    Attributes:
        host: address to listen on.
        disable_auto_complete: tritonserver's `--disable-auto-complete-config`. Complete configs load some eight times as fast with it.
        model_control: tritonserver's `--model-control-mode`.
        load_models: models to load at the start; only with `model_control="explicit"`.
        cache_config: tritonserver's `--cache-config`, such as `local,size=67108864` (bytes); the wheel has the local cache only. None: 64 MiB where a model of
            the repository asks for response caching, else no cache.
        poll_interval_s: seconds between two looks at the repository; only with `model_control="poll"`.
        strict: refuse models whose config this machine cannot honour, and what `release` would refuse, instead of serving an adapted copy with a warning.
            Models that are loaded later, by name, are judged when they are.
        release: the NGC release that the repository is meant for, such as `25.08` (24.10 where it is None, which the embedded server itself is). What its
            onnxruntime is too old for is refused (`strict`) or served with a warning.
        exit_on_error: give up when one model fails to load. If False, the server starts with the models that did load.
        extra_args: further tritonserver options, such as `--log-verbose=1`; an option that is set by a field here is refused.
        start_timeout_s: seconds until every model must be loaded. None: two minutes, and an hour where a model builds TensorRT engines while it loads, which
            takes minutes for each the first time; a server that is stuck is seen later then.
    """

    http_port: int | None = None
    grpc_port: int | None = None
    metrics_port: int | None = None
    host: str = "127.0.0.1"
    disable_auto_complete: bool = False
    model_control: ModelControl = "none"
    load_models: tuple[str, ...] = ()
    cache_config: str | None = None
    poll_interval_s: int = 15
    strict: bool = False
    release: str | None = None
    exit_on_error: bool = True
    extra_args: tuple[str, ...] = ()
    start_timeout_s: float | None = None

    def __post_init__(self) -> None:
        problems = [*_port_problems(self), *_control_problems(self), *_cache_problems(self), *_extra_problems(self)]
        if self.release is not None and not re.fullmatch(RELEASE_PATTERN, self.release):
            problems.append(_problem(f"the release is {self.release[:60]!r}", "write year and month with two digits each, such as 25.08"))
        if self.start_timeout_s is not None and self.start_timeout_s <= 0:
            problems.append(_problem(f"the start timeout is {self.start_timeout_s} s", "give a number of seconds above 0"))
        if problems:
            raise InputError(problems)

    def warnings(self) -> tuple[str, ...]:
        """What is accepted and has no effect: a release that is well formed and not known."""
        if self.release is None or find_release(self.release) is not None:
            return ()
        known = f"the releases from {RELEASES[0].name} to {RELEASES[-1].name} are known"
        return (f"release {self.release} is not known to this version of tritongen, and nothing is judged by it; {known}",)


@dataclass(frozen=True)
class LeftOut:
    """A key of a spec's `server` that the embedded server does not follow, and why."""

    key: Key
    reason: str


def with_server(options: ServerOptions, server: Server, host: Host) -> tuple[ServerOptions, tuple[LeftOut, ...]]:
    """The settings, with what a spec's `server` says wherever they are as they are by default; and what of it the embedded server cannot follow on `host`."""
    listen, seconds = server.listen, 1_000_000
    stated: dict[str, Any] = {
        "http_port": _given(listen, "http"),
        "grpc_port": _given(listen, "grpc"),
        # tritongen reads metrics also where the spec wants none: at any free port, since theirs may be another's.
        "metrics_port": 0 if server.metrics.enabled is False else _given(listen, "metrics"),
        "host": listen.address,
        "model_control": server.model_control,
        "load_models": server.load_models,
        "cache_config": None if server.cache is None else f"local,size={server.cache.size}",
        "poll_interval_s": None if server.poll_interval is None else server.poll_interval // seconds,
        "exit_on_error": server.exit_on_error,
    }
    defaults = {field.name: field.default for field in dataclasses.fields(ServerOptions)}
    changes = {name: value for name, value in stated.items() if value is not None and getattr(options, name) == defaults[name]}
    lacking = unfit(server, host)
    followed = server.model_copy(update={"host_policies": {name: policy for name, policy in server.host_policies.items() if name not in lacking}})
    arguments, left_out = _further(followed)
    for name, reason in lacking.items():
        left_out.append(LeftOut(("host_policies", name), reason))
    if _SHM_PREFIX in server.backend_config.get("python", {}):
        left_out.append(LeftOut(("backend_config", "python", _SHM_PREFIX), "tritongen names shared memory itself, to find what a killed server leaves of it"))
    return dataclasses.replace(options, **changes, extra_args=(*arguments, *options.extra_args)), tuple(left_out)


def _given(listen: Any, name: str) -> int | None:
    """A port that the spec states; where it states none, another may be taken in its place."""
    return getattr(listen, name) if name in listen.model_fields_set else None


def _further(server: Server) -> tuple[list[str], list[LeftOut]]:
    """The options that are passed on as they are, and those that are not."""
    release = find_release(EMBEDDED_RELEASE)
    arguments: list[str] = []
    left_out: list[LeftOut] = []
    for option in OPTIONS:
        if not (written := option.arguments(server)):
            continue
        issue = option.lacking(release) if release else None
        if issue is not None:
            left_out.append(LeftOut(option.key, f"it is release {EMBEDDED_RELEASE}, and {issue.text}"))
        elif option.name in ("--allow-metrics", "--log-info", "--log-error"):
            if "true" not in written[0]:
                left_out.append(LeftOut(option.key, "tritongen reads the log and the metrics to know how the server is"))
        elif option.name not in _OURS:
            arguments += written
    return arguments, left_out


def _problem(message: str, hint: str) -> Diagnostic:
    return Diagnostic("TG901", message, hint=hint)


def _port_problems(options: ServerOptions) -> list[Diagnostic]:
    """Ports out of range, and one port given twice."""
    named = {"http": options.http_port, "grpc": options.grpc_port, "metrics": options.metrics_port}
    problems = [
        _problem(f"the {name} port is {port}", f"ports are 1 to {_HIGHEST_PORT}; 0 stands for any free one")
        for name, port in named.items()
        if port is not None and not 0 <= port <= _HIGHEST_PORT
    ]
    owner: dict[int, str] = {}
    for name, port in named.items():
        if port and port in owner:
            problems.append(
                _problem(f"port {port} is given for both {owner[port]} and {name}", "each protocol needs a port of its own; 0 stands for any free one")
            )
        elif port:
            owner[port] = name
    return problems


def _control_problems(options: ServerOptions) -> list[Diagnostic]:
    """A control mode that does not exist, and settings that belong to another mode."""
    problems = []
    modes = get_args(ModelControl)
    if options.model_control not in modes:
        problems.append(_problem(f"the model control mode is {options.model_control!r}", f"choose one of {', '.join(modes)}"))
    if options.load_models and options.model_control != "explicit":
        problems.append(
            _problem(
                f"models to load are named ({', '.join(options.load_models)}), but the model control mode is {options.model_control!r}",
                "tritonserver takes names only in mode 'explicit'; the other modes load every model",
            )
        )
    if options.poll_interval_s < 1:
        problems.append(_problem(f"the poll interval is {options.poll_interval_s} s", "give a whole number of seconds, 1 or more"))
    return problems


def _cache_problems(options: ServerOptions) -> list[Diagnostic]:
    """A cache that the embedded server has not, or cannot make."""
    if options.cache_config is None:
        return []
    match = _CACHE_CONFIG.fullmatch(options.cache_config)
    example = f"write local,size={DEFAULT_CACHE_BYTES}, the size in bytes"
    if match is None:
        return [_problem(f"the cache config is {options.cache_config[:60]!r}, and the embedded server has the local cache only", example)]
    if not SMALLEST_CACHE_BYTES <= int(match["size"]) <= _LARGEST_CACHE_BYTES:
        return [_problem(f"the cache size is {match['size'][:30]} bytes", f"give {SMALLEST_CACHE_BYTES} to {_LARGEST_CACHE_BYTES}: {example}")]
    return []


def _extra_problems(options: ServerOptions) -> list[Diagnostic]:
    """Extra arguments that contradict what tritongen sets."""
    problems = []
    for argument in options.extra_args:
        name = argument.partition("=")[0]
        if not argument.startswith("--"):
            problems.append(_problem(f"the extra argument {argument!r} is no tritonserver option", "write options as --name=value"))
        elif name in _OURS:
            problems.append(_problem(f"the extra argument {argument!r} is set by tritongen", f"use the setting of tritongen that stands for {name}"))
    return problems
