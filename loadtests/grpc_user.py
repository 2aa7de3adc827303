"""One model over gRPC.

    locust -f loadtests/grpc_user.py --headless -u 8 -t 10s --host grpc://localhost:8001

Without --host the server is GRPC_URL, or grpc://localhost:8001.
MODEL names the model (the only one that is ready by default), ROWS the rows of a request, SHAPES sizes of variable dimensions, such as x=3x48x320.

In a deployment: LOCUSTFILE=grpc_user.py MODEL=NAME docker compose --profile load up. `tritongen render` writes this file: change a copy.
"""

from __future__ import annotations

import os

from locust import task

from tritongen.load import TritonGrpcUser


class GrpcUser(TritonGrpcUser):
    """Sends seeded random inputs, or those of the model's spec, one request after another."""

    host = os.environ.get("GRPC_URL", "grpc://localhost:8001")
    model = os.environ.get("MODEL", "")
    rows = os.environ.get("ROWS", "1")
    shapes = os.environ.get("SHAPES", "")

    @task
    def ask(self) -> None:
        """One request."""
        self.infer()
