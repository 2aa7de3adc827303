"""The same request sent in two ways, for comparison: tritonclient's own `async_infer`, and tritongen's client.

    locust -f locustfile.py --headless -u 4 -t 10s --host localhost:8001 TritonclientUser
    locust -f locustfile.py --headless -u 4 -t 10s --host localhost:8001 TritongenUser

Locust runs on gevent: gRPC must be told so before any channel is made, else all users of a process wait for one another.
"""

from __future__ import annotations

import os
import time

import grpc.experimental.gevent

grpc.experimental.gevent.init_gevent()

import gevent.event  # noqa: E402
import numpy as np  # noqa: E402
import tritonclient.grpc as triton  # noqa: E402
from locust import User, constant, task  # noqa: E402

from tritongen import Client  # noqa: E402

MODEL = os.environ.get("MODEL", "text_recognizer")
SHAPE = [int(size) for size in os.environ.get("SHAPE", "1x3x48x320").split("x")]
INPUT = os.environ.get("INPUT", "x")


class TritonclientUser(User):
    """Plain tritonclient: `async_infer` answers in a thread of gRPC's, so that the result is handed over."""

    wait_time = constant(0)

    def on_start(self) -> None:
        """A client for each user."""
        self.client = triton.InferenceServerClient(self.host or "localhost:8001")
        self.tensor = triton.InferInput(INPUT, SHAPE, "FP32")
        self.tensor.set_data_from_numpy(np.zeros(SHAPE, np.float32))

    def on_stop(self) -> None:
        """An open channel would keep the process alive."""
        self.client.close()

    @task
    def infer(self) -> None:
        """One request, timed."""
        answered = gevent.event.AsyncResult()
        start = time.perf_counter()

        def done(result: object, error: Exception | None) -> None:
            answered.set((result, error))

        self.client.async_infer(MODEL, [self.tensor], done, client_timeout=10)
        _, error = answered.get()
        self.environment.events.request.fire(
            request_type="grpc", name="tritonclient", response_time=(time.perf_counter() - start) * 1000, response_length=0, exception=error
        )


class TritongenUser(User):
    """tritongen's client: checked before it is sent, errors by type."""

    wait_time = constant(0)

    def on_start(self) -> None:
        """A client for each user."""
        self.client = Client(f"grpc://{self.host or 'localhost:8001'}", deadline_s=10)
        self.value = np.zeros(SHAPE, np.float32)

    def on_stop(self) -> None:
        """Give the connection back."""
        self.client.close()

    @task
    def infer(self) -> None:
        """One request, timed."""
        start = time.perf_counter()
        error: Exception | None = None
        try:
            self.client.infer(MODEL, {INPUT: self.value})
        except Exception as raised:  # noqa: BLE001 - Locust counts them by what they are
            error = raised
        self.environment.events.request.fire(
            request_type="grpc", name="tritongen", response_time=(time.perf_counter() - start) * 1000, response_length=0, exception=error
        )
