from __future__ import annotations

from pathlib import Path

import locust_runs
import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from tritongen.server import ServerOptions

ANY_PORTS = {"http_port": 0, "grpc_port": 0, "metrics_port": 0}


@pytest.fixture(scope="session")
def options():
    """Options on free ports; keyword arguments change or add to them."""

    def make(**changes) -> ServerOptions:
        return ServerOptions(**({**ANY_PORTS, "disable_auto_complete": True} | changes))

    return make


@pytest.fixture(scope="session")
def ask():
    """Send one request over gRPC: arrays by input name in, arrays by output name out."""

    def send(server, model: str, feed: dict[str, np.ndarray], *, wanted: list[str] | None = None, bf16: bool = False) -> dict[str, np.ndarray]:
        with grpcclient.InferenceServerClient(server.grpc_url.removeprefix("grpc://")) as client:
            inputs = []
            for name, array in feed.items():
                dtype = "BF16" if array.dtype.name == "bfloat16" else {"object": "BYTES"}.get(array.dtype.name) or _WIRE[array.dtype.name]
                tensor = grpcclient.InferInput(name, list(array.shape), dtype)
                tensor.set_data_from_numpy(array)
                inputs.append(tensor)
            outputs = [grpcclient.InferRequestedOutput(name) for name in wanted] if wanted else None
            result = client.infer(model, inputs, outputs=outputs, client_timeout=30)
            return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}

    return send


@pytest.fixture
def locust(tmp_path):
    """Start Locust with a file, or the text of one; it is ended with the test. `enough`: the run ends when each of so many `rows` has so many requests."""
    started = []

    def start(file: Path | str, *arguments: object, enough: int = 0, rows: int = 1, **environment: str) -> locust_runs.Locust:
        if isinstance(file, str):
            (tmp_path / "locustfile.py").write_text(file)
            file = tmp_path / "locustfile.py"
        files = str(file)
        if enough:
            (tmp_path / "enough.py").write_text(locust_runs.ENOUGH.format(requests=enough, rows=rows))
            files, arguments = f"{file},{tmp_path / 'enough.py'}", (*arguments, "-t", f"{locust_runs.LONGEST_S}s")
        started.append(locust_runs.Locust(tmp_path, files, *arguments, **environment))
        return started[-1]

    yield start
    for run in started:
        run.process.kill()


_WIRE = {"float32": "FP32", "float16": "FP16", "float64": "FP64", "int64": "INT64", "int32": "INT32", "bool": "BOOL", "uint8": "UINT8"}
