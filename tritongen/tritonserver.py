"""tritonserver's command line: the one place that knows the names of its options, what a spec's `server` makes of them, and which release has which.

Source: server/src/command_line_parser.cc; the releases that lack an option are in `known_issues`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tritongen.known_issues import Issue, find_issue
from tritongen.releases import Release
from tritongen.spec.server import GpuMemory, HostPolicy, RateLimit, Server

DEFAULT_CACHE_BYTES = 64 << 20
"""Size of the response cache where a model asks for one and nobody says how large."""

DISABLE_AUTO_COMPLETE = "--disable-auto-complete-config"
"""A rendered config is complete: with auto-complete off it loads several times as fast, and nothing is guessed."""

_BACKEND_CONFIG = "--backend-config"
_NOTHING: Mapping[str, Mapping[str, str]] = MappingProxyType({})

Key = tuple[str, ...]
Texts = Callable[[Any], Iterable[str]]


@dataclass(frozen=True)
class Option:
    """One option that a key of `server` sets.

    Attributes:
        name: as it is written, such as `--log-verbose`.
        key: the path of the key below `server`.
        texts: what stands behind `=`, once for each time that the option is written.
        missing: the name of the known issue that some releases do not have it.
    """

    name: str
    key: Key
    texts: Texts
    missing: str = ""

    def arguments(self, server: Server) -> tuple[str, ...]:
        """The option as often as it is to be written; nothing where the key is left out."""
        value: Any = server
        for part in self.key:
            value = getattr(value, part)
        return () if value is None else tuple(f"{self.name}={text}" for text in self.texts(value))

    def lacking(self, release: Release) -> Issue | None:
        """What is known about a release that does not have the option; None where it has."""
        issue = find_issue(self.missing) if self.missing else None
        return issue if issue is not None and issue.holds_in(release) else None


def _plain(value: object) -> Iterator[str]:
    yield str(value)


def _flag(value: bool) -> Iterator[str]:
    yield "true" if value else "false"


def _seconds(value_us: int) -> Iterator[str]:
    yield str(value_us // 1_000_000)


def _milliseconds(value_us: int) -> Iterator[str]:
    yield str(value_us // 1_000)


def _each(values: Iterable[str]) -> Iterator[str]:
    yield from values


def _resources(limit: RateLimit) -> Iterator[str]:
    for resource in limit.resources:
        yield f"{resource.name}:{resource.count}" + ("" if resource.gpu is None else f":{resource.gpu}")


def _policies(policies: dict[str, HostPolicy]) -> Iterator[str]:
    for name, policy in policies.items():
        settings = (("numa-node", policy.numa_node), ("cpu-cores", policy.cpu_cores))
        yield from (f"{name},{setting}={value}" for setting, value in settings if value is not None)


def _backend_settings(backends: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for backend, settings in backends.items():
        yield from (f"{backend},{key}={value}" for key, value in settings.items())


def _pools(gpus: Iterable[GpuMemory]) -> Iterator[str]:
    return (f"{memory.gpu}:{memory.pool}" for memory in gpus if memory.pool is not None)


def _load_limits(gpus: Iterable[GpuMemory]) -> Iterator[str]:
    return (f"{memory.gpu}:{memory.load_limit}" for memory in gpus if memory.load_limit is not None)


def _metrics_flag(name: str) -> Texts:
    return lambda value: (f"{name}={text}" for text in _flag(value))


OPTIONS: tuple[Option, ...] = (
    Option("--model-control-mode", ("model_control",), _plain),
    Option("--repository-poll-secs", ("poll_interval",), _seconds),
    Option("--load-model", ("load_models",), _each),
    Option("--cache-config", ("cache",), lambda cache: [f"local,size={cache.size}"]),
    Option("--rate-limit", ("rate_limit",), lambda _: ["execution_count"]),
    Option("--rate-limit-resource", ("rate_limit",), _resources),
    Option("--allow-metrics", ("metrics", "enabled"), _flag),
    Option("--allow-gpu-metrics", ("metrics", "gpu"), _flag),
    Option("--allow-cpu-metrics", ("metrics", "cpu"), _flag),
    Option("--metrics-interval-ms", ("metrics", "interval"), _milliseconds),
    Option("--metrics-config", ("metrics", "counter_latencies"), _metrics_flag("counter_latencies")),
    Option("--metrics-config", ("metrics", "histogram_latencies"), _metrics_flag("histogram_latencies"), missing="no-latency-histograms"),
    Option("--metrics-config", ("metrics", "summary_latencies"), _metrics_flag("summary_latencies")),
    Option("--metrics-config", ("metrics", "summary_quantiles"), lambda some: [f"summary_quantiles={','.join(one.text for one in some)}"] if some else []),
    Option("--log-verbose", ("log", "verbose"), _plain),
    Option("--log-info", ("log", "info"), _flag),
    Option("--log-warning", ("log", "warning"), _flag),
    Option("--log-error", ("log", "error"), _flag),
    Option("--log-format", ("log", "format"), _plain),
    Option("--http-thread-count", ("http", "threads"), _plain),
    Option("--http-max-input-size", ("http", "max_input_size"), _plain, missing="no-http-input-limit-option"),
    Option("--grpc-infer-thread-count", ("grpc", "infer_threads"), _plain, missing="no-grpc-threads"),
    Option("--grpc-infer-allocation-pool-size", ("grpc", "allocation_pool"), _plain),
    Option("--grpc-max-response-pool-size", ("grpc", "max_response_pool"), _plain, missing="no-grpc-pool-limit"),
    Option("--grpc-infer-response-compression-level", ("grpc", "compression"), _plain),
    Option("--grpc-max-connection-age", ("grpc", "max_connection_age"), _milliseconds),
    Option("--grpc-max-connection-age-grace", ("grpc", "max_connection_age_grace"), _milliseconds),
    Option("--grpc-keepalive-time", ("grpc", "keepalive", "time"), _milliseconds),
    Option("--grpc-keepalive-timeout", ("grpc", "keepalive", "timeout"), _milliseconds),
    Option("--grpc-keepalive-permit-without-calls", ("grpc", "keepalive", "permit_without_calls"), lambda value: [str(int(value))]),
    Option("--grpc-http2-max-pings-without-data", ("grpc", "keepalive", "max_pings_without_data"), _plain),
    Option("--grpc-http2-min-recv-ping-interval-without-data", ("grpc", "keepalive", "min_recv_ping_interval"), _milliseconds),
    Option("--grpc-http2-max-ping-strikes", ("grpc", "keepalive", "max_ping_strikes"), _plain),
    Option("--pinned-memory-pool-byte-size", ("memory", "pinned"), _plain),
    Option("--cuda-memory-pool-byte-size", ("memory", "gpus"), _pools),
    Option("--model-load-gpu-limit", ("memory", "gpus"), _load_limits),
    Option("--host-policy", ("host_policies",), _policies),
    Option(_BACKEND_CONFIG, ("backend_config",), _backend_settings),
    Option("--model-load-thread-count", ("loading", "threads"), _plain),
    Option("--model-load-retry-count", ("loading", "retries"), _plain),
    Option("--exit-on-error", ("exit_on_error",), _flag),
    Option("--strict-readiness", ("strict_readiness",), _flag),
    Option("--exit-timeout-secs", ("exit_timeout",), _seconds),
    Option("--allow-client-shm", ("client_shared_memory",), _flag, missing="no-client-shared-memory-option"),
)
"""In the order in which they are written."""


def server_arguments(server: Server, *, wants_cache: bool = False, needed: Mapping[str, Mapping[str, str]] = _NOTHING) -> tuple[str, ...]:
    """The options of a server that a spec describes, without repository, ports and addresses, which the place decides where it runs.

    Args:
        server: what the spec says.
        wants_cache: whether a model asks for response caching, so that there must be a cache also where none is described.
        needed: settings of backends that models ask for; where `server` has the same setting, that one is written.
    """
    unsaid = {
        backend: {name: value for name, value in settings.items() if name not in server.backend_config.get(backend, {})} for backend, settings in needed.items()
    }
    arguments = (
        *(argument for option in OPTIONS for argument in option.arguments(server)),
        *(f"{_BACKEND_CONFIG}={text}" for text in _backend_settings(unsaid)),
    )
    return (*arguments, f"--cache-config=local,size={DEFAULT_CACHE_BYTES}") if wants_cache and server.cache is None else arguments


def lacking(server: Server, release: Release) -> Iterator[tuple[Option, Issue]]:
    """The options that are asked for and that a release does not have, and what is known about that."""
    for option in OPTIONS:
        if option.arguments(server) and (issue := option.lacking(release)) is not None:
            yield option, issue
