"""Requests over HTTP and gRPC: where the server listens, and how it treats connections."""

from __future__ import annotations

from typing import Literal

from tritongen.spec.options import Address, Milliseconds, Port
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import SomeSize
from tritongen.spec.values import Flag, PositiveInt, Size32


class Listen(Strict, json_schema_extra={"examples": [{"address": "192.0.2.10", "http": 9000}]}):
    """Where clients reach the server: on a host with containers, the address and ports that are published."""

    address: Address = setting(
        "Number of the network interface to listen on.",
        default="127.0.0.1",
        sets="the address of published ports; in `tritongen serve`, --http-address and those of the other protocols",
        why="to let other machines in; by default nobody but this machine reaches the server, which asks nobody for a password",
    )
    http: Port = setting("Port for HTTP.", default=8000, sets="the published port; in `tritongen serve`, --http-port", why="where 8000 is taken")
    grpc: Port = setting("Port for gRPC.", default=8001, sets="the published port; in `tritongen serve`, --grpc-port", why="where 8001 is taken")
    metrics: Port = setting(
        "Port for Prometheus metrics.", default=8002, sets="the published port; in `tritongen serve`, --metrics-port", why="where 8002 is taken"
    )


class Http(Strict, json_schema_extra={"examples": [{"threads": 16, "max_input_size": "256MiB"}]}):
    """Requests over HTTP."""

    threads: PositiveInt | None = setting("Threads that handle requests. Default: 8.", sets="--http-thread-count", why="for many large requests at once")
    max_input_size: SomeSize | None = setting(
        "The largest request that is JSON or compressed. Default: 64MiB.", sets="--http-max-input-size", why="for larger ones; binary tensors have no limit"
    )


class Keepalive(Strict, json_schema_extra={"examples": [{"time": "30s", "permit_without_calls": True, "min_recv_ping_interval": "10s"}]}):
    """How gRPC finds out that the other side is gone, and keeps connections open through proxies."""

    time: Milliseconds | None = setting(
        "Silence after which the server pings. Default: 2h.", sets="--grpc-keepalive-time", why="proxies drop silent connections"
    )
    timeout: Milliseconds | None = setting(
        "Time for the answer to a ping. Default: 20s.", sets="--grpc-keepalive-timeout", why="to notice sooner that a client is gone"
    )
    permit_without_calls: Flag | None = setting(
        "Whether the server pings also where no request runs. Default: false.", sets="--grpc-keepalive-permit-without-calls", why="for connections that rest"
    )
    max_pings_without_data: Size32 | None = setting(
        "Pings in a row without data between them; 0 is no limit. Default: 2.", sets="--grpc-http2-max-pings-without-data", why="with permit_without_calls"
    )
    min_recv_ping_interval: Milliseconds | None = setting(
        "The shortest time between two pings of a client that has no data to send. Default: 5m.",
        sets="--grpc-http2-min-recv-ping-interval-without-data",
        why="clients that ping more often are sent away with `too many pings`",
    )
    max_ping_strikes: Size32 | None = setting(
        "How many pings may come too early; 0 is no limit. Default: 2.", sets="--grpc-http2-max-ping-strikes", why="for clients that ping at their own pace"
    )


class Grpc(Strict, json_schema_extra={"examples": [{"infer_threads": 4, "keepalive": {"time": "30s"}}]}):
    """Requests over gRPC."""

    infer_threads: PositiveInt | None = setting("Threads that handle requests. Default: 2.", sets="--grpc-infer-thread-count", why="for many small requests")
    allocation_pool: Size32 | None = setting(
        "How many used request and response objects are kept for the next ones. Default: 8.",
        sets="--grpc-infer-allocation-pool-size",
        why="as many as requests run at the same time, where memory allows it",
    )
    max_response_pool: PositiveInt | None = setting(
        "How many responses of a stream may wait to be sent. Default: no limit.", sets="--grpc-max-response-pool-size", why="to bound memory for slow clients"
    )
    compression: Literal["none", "low", "medium", "high"] | None = setting(
        "How far responses are compressed. Default: none.", sets="--grpc-infer-response-compression-level", why="over slow networks"
    )
    max_connection_age: Milliseconds | None = setting(
        "Time after which a connection is closed. Default: never.", sets="--grpc-max-connection-age", why="to spread clients over servers that are new"
    )
    max_connection_age_grace: Milliseconds | None = setting(
        "Time that its requests then have to finish. Default: no limit.", sets="--grpc-max-connection-age-grace", why="where requests hang"
    )
    keepalive: Keepalive = setting(
        "Pings.", default_factory=Keepalive, sets="--grpc-keepalive-time and the options beside it", why="for proxies, and for clients that vanish"
    )
