"""Both protocols at once: three users over gRPC that send single rows for each one over HTTP that sends batches, with pauses as people make them.

    GRPC_URL=grpc://localhost:8001 HTTP_URL=http://localhost:8000 locust -f loadtests/mixed.py --headless -u 8 -t 10s

Leave --host out: it would give both classes the same address. MODEL and SHAPES as in grpc_user.py; BATCH is the rows of a batch.

In a deployment: LOCUSTFILE=mixed.py MODEL=NAME docker compose --profile load up. `tritongen render` writes this file: change a copy.
"""

from __future__ import annotations

import os

from locust import between, task

from tritongen.load import TritonGrpcUser, TritonHttpUser


class Person(TritonGrpcUser):
    """Single rows, with a pause after each answer."""

    host = os.environ.get("GRPC_URL", "grpc://localhost:8001")
    model = os.environ.get("MODEL", "")
    shapes = os.environ.get("SHAPES", "")
    wait_time = between(0.01, 0.05)
    weight = 3

    @task
    def ask(self) -> None:
        """One row."""
        self.infer()


class Job(TritonHttpUser):
    """Batches, one after another."""

    host = os.environ.get("HTTP_URL", "http://localhost:8000")
    model = os.environ.get("MODEL", "")
    rows = os.environ.get("BATCH", "4")
    shapes = os.environ.get("SHAPES", "")

    @task
    def ask(self) -> None:
        """One batch."""
        self.infer(name="batch")
