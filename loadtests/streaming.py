"""A decoupled model over gRPC: time to the first response, and to the last.

    locust -f loadtests/streaming.py --headless -u 4 -t 10s --host grpc://localhost:8001

GRPC_URL, MODEL, ROWS and SHAPES as in grpc_user.py.

In a deployment: LOCUSTFILE=streaming.py MODEL=NAME docker compose --profile load up. `tritongen render` writes this file: change a copy.
"""

from __future__ import annotations

import os

from locust import task

from tritongen.load import TritonGrpcUser


class StreamingUser(TritonGrpcUser):
    """Reads every response to a request, then sends the next one."""

    host = os.environ.get("GRPC_URL", "grpc://localhost:8001")
    model = os.environ.get("MODEL", "")
    rows = os.environ.get("ROWS", "1")
    shapes = os.environ.get("SHAPES", "")

    @task
    def ask(self) -> None:
        """One stream."""
        self.stream()
