"""The seam between a server and the code that uses one: a running Triton, whoever started it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class ServerHandle(Protocol):
    """A running Triton."""

    @property
    def http_url(self) -> str:
        """Where HTTP requests go, such as `http://127.0.0.1:8000`."""
        ...

    @property
    def grpc_url(self) -> str:
        """Where gRPC requests go, such as `grpc://127.0.0.1:8001`."""
        ...

    @property
    def metrics_url(self) -> str:
        """Where Prometheus metrics are served, under `/metrics`: such as `http://127.0.0.1:8002`."""
        ...

    @property
    def models(self) -> Mapping[str, str]:
        """Each model's state now, as Triton's repository index has it (`READY`, `UNAVAILABLE`, `LOADING`, `UNLOADING`)."""
        ...

    def log(self) -> str:
        """All that the server has written so far."""
        ...

    def stop(self) -> None:
        """Stop the server. Stopping twice is fine."""
        ...

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until the server ends; its exit status, or None where `timeout_s` went by first."""
        ...
