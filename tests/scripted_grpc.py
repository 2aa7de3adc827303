"""A server of gRPC that says what Triton says about one model, `m`, and what a test wants about its requests."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc


def answer(request: Any, context: Any) -> Any:
    """The answer of a model that says ones."""
    rows = request.inputs[0].shape[0]
    outputs = [{"name": "y", "datatype": "FP32", "shape": [rows, 2]}]
    return pb.ModelInferResponse(model_name="m", model_version="1", outputs=outputs, raw_output_contents=[b"\0\0\x80?" * 2 * rows])


class Scripted(service_pb2_grpc.GRPCInferenceServiceServicer):
    """A server that runs.

    Attributes:
        infer: the answer to each request.
        cancelled: set when a request is over, and so before its answer is there only where it was cancelled.
    """

    def __init__(self, infer: Callable[[Any, Any], Any], queue_timeout_us: int, port: int) -> None:
        self.infer = infer
        self.cancelled = threading.Event()
        self._queue_timeout_us = queue_timeout_us
        self._pool = futures.ThreadPoolExecutor(20)
        self._server = grpc.server(self._pool)
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(self, self._server)
        self.url = f"grpc://127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{port}')}"
        self._server.start()

    def stop(self) -> None:
        """End it as a kill would, connections and all."""
        self._server.stop(0).wait()
        self._pool.shutdown()

    def ServerLive(self, request, context):  # noqa: N802 - its name in the protocol
        return pb.ServerLiveResponse(live=True)

    def ServerMetadata(self, request, context):  # noqa: N802 - its name in the protocol
        return pb.ServerMetadataResponse(name="triton")

    def ModelReady(self, request, context):  # noqa: N802 - its name in the protocol
        return pb.ModelReadyResponse(ready=True)

    def RepositoryIndex(self, request, context):  # noqa: N802 - its name in the protocol
        return pb.RepositoryIndexResponse(models=[{"name": "m", "version": "1", "state": "READY"}])

    def ModelMetadata(self, request, context):  # noqa: N802 - its name in the protocol
        tensors = {name: [{"name": name, "datatype": "FP32", "shape": [-1, 2]}] for name in "xy"}
        return pb.ModelMetadataResponse(name="m", versions=["1"], inputs=tensors["x"], outputs=tensors["y"])

    def ModelConfig(self, request, context):  # noqa: N802 - its name in the protocol
        response = pb.ModelConfigResponse()
        response.config.name, response.config.max_batch_size = "m", 4
        if self._queue_timeout_us:
            policy = response.config.dynamic_batching.default_queue_policy
            policy.default_timeout_microseconds, policy.allow_timeout_override = self._queue_timeout_us, True
        return response

    def ModelInfer(self, request, context):  # noqa: N802 - its name in the protocol
        context.add_callback(self.cancelled.set)
        return self.infer(request, context)

    def ModelStreamInfer(self, requests, context):  # noqa: N802 - its name in the protocol
        for request in requests:
            yield pb.ModelStreamInferResponse(infer_response=self.infer(request, context))


@contextlib.contextmanager
def serve(infer: Callable[[Any, Any], Any] = answer, *, queue_timeout_us: int = 0, port: int = 0):
    """A `Scripted` server; it may be stopped inside the block."""
    server = Scripted(infer, queue_timeout_us, port)
    try:
        yield server
    finally:
        server.stop()
