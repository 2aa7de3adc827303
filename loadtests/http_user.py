"""One model over HTTP.

    locust -f loadtests/http_user.py --headless -u 8 -t 10s --host http://localhost:8000

Without --host the server is HTTP_URL, or http://localhost:8000.
MODEL names the model (the only one that is ready by default), ROWS the rows of a request, SHAPES sizes of variable dimensions, such as x=3x48x320.

In a deployment: LOCUSTFILE=http_user.py MODEL=NAME docker compose --profile load up. `tritongen render` writes this file: change a copy.
"""

from __future__ import annotations

import os

from locust import task

from tritongen.load import TritonHttpUser


class HttpUser(TritonHttpUser):
    """Sends seeded random inputs, or those of the model's spec, one request after another."""

    host = os.environ.get("HTTP_URL", "http://localhost:8000")
    model = os.environ.get("MODEL", "")
    rows = os.environ.get("ROWS", "1")
    shapes = os.environ.get("SHAPES", "")

    @task
    def ask(self) -> None:
        """One request."""
        self.infer()
