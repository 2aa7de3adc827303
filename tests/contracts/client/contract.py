"""The models that the clients' contract is tried on, and one way to drive all four clients."""

from __future__ import annotations

import asyncio
import inspect
import time
import urllib.request
from pathlib import Path

import models
import numpy as np

import tritongen

KINDS = ("grpc", "http", "grpc-aio", "http-aio")
CPU = "instance_group [{ kind: KIND_CPU count: 1 }]\n"

SLOW = '''
import time
from pathlib import Path
import numpy as np
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Answers with its input after as many seconds as the input says; inf: once there is no file `closed` in its folder. `begun` is there while it works."""

    def initialize(self, args):
        self.folder = Path(args["model_repository"])

    def execute(self, requests):
        responses = []
        for request in requests:
            seconds = utils.get_input_tensor_by_name(request, "seconds").as_numpy()
            (self.folder / "begun").touch()
            if np.isinf(seconds.max()):
                while (self.folder / "closed").exists():
                    time.sleep(0.005)
            else:
                time.sleep(float(seconds.max()))
            (self.folder / "begun").unlink()
            responses.append(utils.InferenceResponse([utils.Tensor("slept", seconds)]))
        return responses
'''
FAILING = '''
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Fails the rows that ask for it."""

    def execute(self, requests):
        responses = []
        for request in requests:
            value = utils.get_input_tensor_by_name(request, "x").as_numpy()
            if value.min() < 0:
                responses.append(utils.InferenceResponse(error=utils.TritonError("this row is negative")))
            else:
                responses.append(utils.InferenceResponse([utils.Tensor("y", value)]))
        return responses
'''
COUNTING = '''
import numpy as np
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Decoupled: as many responses as the input says, numbered."""

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(int(utils.get_input_tensor_by_name(request, "count").as_numpy()[0])):
                sender.send(utils.InferenceResponse([utils.Tensor("number", np.array([number], np.int32))]))
            sender.send(flags=utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''
SUMMING = '''
import numpy as np
import triton_python_backend_utils as utils

class TritonPythonModel:
    """The sum of a sequence so far, and how many sequences are open."""

    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        responses = []
        for request in requests:
            start, end = (bool(utils.get_input_tensor_by_name(request, name).as_numpy().ravel()[0]) for name in ("START", "END"))
            key = int(utils.get_input_tensor_by_name(request, "CORRID").as_numpy().ravel()[0])
            value = int(utils.get_input_tensor_by_name(request, "x").as_numpy().ravel()[0])
            self.sums[key] = (0 if start else self.sums[key]) + value
            total, opened = self.sums[key], len(self.sums)
            if end:
                del self.sums[key]
            tensors = [utils.Tensor("sum", np.array([[total]], np.int32)), utils.Tensor("open", np.array([[opened]], np.int32))]
            responses.append(utils.InferenceResponse(tensors))
        return responses
'''
ECHOING = '''
import json
import numpy as np
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Tells the request's parameters and priority."""

    def execute(self, requests):
        responses = []
        for request in requests:
            text = request.parameters()
            responses.append(utils.InferenceResponse([utils.Tensor("parameters", np.array([text.encode()], object))]))
        return responses
'''
BUSY = '''
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Says UNAVAILABLE after its work is done, and counts how often it worked."""

    def initialize(self, args):
        self.path = args["model_repository"] + "/worked"

    def execute(self, requests):
        for _ in requests:
            with open(self.path, "a") as file:
                file.write("x")
        error = utils.TritonError("the database behind is down", utils.TritonError.UNAVAILABLE)
        return [utils.InferenceResponse(error=error) for _ in requests]
'''
TOTALLING = '''
import numpy as np
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Each row, and the total of all rows of a request, which is no batch."""

    def execute(self, requests):
        responses = []
        for request in requests:
            x = utils.get_input_tensor_by_name(request, "x").as_numpy()
            tensors = [utils.Tensor("y", x), utils.Tensor("total", x.sum(keepdims=True).reshape(1, 1))]
            responses.append(utils.InferenceResponse(tensors))
        return responses
'''
REPEATING = '''
import triton_python_backend_utils as utils

class TritonPythonModel:
    """Its input, byte for byte: onnxruntime holds text only."""

    def execute(self, requests):
        tensors = [utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        return [utils.InferenceResponse([utils.Tensor("y", tensor)]) for tensor in tensors]
'''


def control(name: str, kind: str, dtype: str = "") -> str:
    what = f"data_type: {dtype}" if dtype else "int32_false_true: [0, 1]"
    return f'{{ name: "{name}" control [{{ kind: {kind} {what} }}] }}'


SEQUENCE = "sequence_batching { max_sequence_idle_microseconds: 60000000 control_input [" + ", ".join([
    control("START", "CONTROL_SEQUENCE_START"), control("END", "CONTROL_SEQUENCE_END"), control("CORRID", "CONTROL_SEQUENCE_CORRID", "TYPE_UINT64"),
]) + "] }\n"  # fmt: skip


def python_model(repository: Path, name: str, code: str, inputs: str, outputs: str, *, batch: int = 4, extra: str = "") -> None:
    text = models.config(inputs, outputs, batch=batch, extra=CPU + extra).replace('platform: "onnxruntime_onnx"', 'backend: "python"')
    folder = models.put(repository, name, None, text)
    (folder / "1" / "model.py").write_text(code)


def fill(repository: Path) -> None:
    """All models of the contract."""
    models.put(repository, "linear", models.linear(), models.LINEAR)
    models.put(repository, "wide", models.linear(), models.config("x FP32 [64]", "y FP32 [16]", batch=9_000_000))
    python_model(repository, "busy", BUSY, "x FP32 [1]", "y FP32 [1]")
    python_model(repository, "totalling", TOTALLING, "x FP32 [1]", "y FP32 [1]; total FP32 [1]", batch=4)
    python_model(repository, "strings", REPEATING, "x STRING [2]", "y STRING [2]")
    models.put(repository, "bf16", models.doubled(models.BF16), models.config("x BF16 [3]", "y BF16 [3]"))
    models.put(repository, "scalar", models.scaled_by_scalar(), models.config("t INT64 [1]; x FP32 [-1]", "y FP32 [-1]; square INT64 [1]", batch=0))
    models.put(repository, "two", models.two_outputs(), models.config("x FP32 [4]", "y FP32 [2]; z FP32 [4]"))
    step = 'step [{ model_name: "link" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "z" value: "z" } }]'
    chain = models.config("x FP32 [4]", "z FP32 [4]", extra=f"ensemble_scheduling {{ {step} }}\n")
    models.put(repository, "link", models.two_outputs(), models.config("x FP32 [4]", "y FP32 [2]; z FP32 [4]"))
    models.put(repository, "chain", None, chain.replace("onnxruntime_onnx", "ensemble"))
    one = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }\n"
    python_model(repository, "slow", SLOW, "seconds FP32 [1]", "slept FP32 [1]", batch=1, extra=one)
    waits = "dynamic_batching { default_queue_policy { default_timeout_microseconds: 5000000 allow_timeout_override: true } }\n"
    python_model(repository, "waiting", SLOW, "seconds FP32 [1]", "slept FP32 [1]", batch=1, extra=waits)
    python_model(repository, "failing", FAILING, "x FP32 [2]", "y FP32 [2]", batch=2)
    python_model(repository, "counting", COUNTING, "count INT32 [1]", "number INT32 [1]", batch=0, extra="model_transaction_policy { decoupled: true }\n")
    python_model(repository, "summing", SUMMING, "x INT32 [1]", "sum INT32 [1]; open INT32 [1]", batch=1, extra=SEQUENCE)
    python_model(repository, "echoing", ECHOING, "x FP32 [1]", "parameters STRING [1]", batch=0)


class Gate:
    """Lets requests to a slow model that ask for `UNTIL_OPENED` wait until it is opened, which it is at the latest when its block is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Gate:
        (self._folder / "closed").touch()
        return self

    def __exit__(self, *_) -> None:
        self.open()
        eventually(lambda: not (self._folder / "begun").exists(), "the model has nothing to do")

    def open(self) -> None:
        (self._folder / "closed").unlink(missing_ok=True)

    def wait_begun(self) -> None:
        """Wait until the model works on a request."""
        eventually((self._folder / "begun").exists, "the model has begun")


UNTIL_OPENED = np.full((1, 1), np.inf, np.float32)


def eventually(holds, what: str, seconds: float = 60.0) -> None:
    """Wait until it holds, for as long as a machine that is busy with other things may take."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


def metric(server, family: str, model: str, **labels: str) -> float:
    """What the server's page of metrics says of a model."""
    with urllib.request.urlopen(f"{server.metrics_url}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    wanted = [f'model="{model}"', *(f'{name}="{value}"' for name, value in labels.items())]
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(family + "{") and all(word in line for word in wanted))


def serve(repository: Path, **options):
    """The embedded server on free ports, every model loaded (one of them by the ensemble that it is a link of), loads and unloads allowed."""
    loaded = tuple(folder.name for folder in sorted(repository.iterdir()) if folder.name != "link")
    settings = {"http_port": 0, "grpc_port": 0, "metrics_port": 0, "disable_auto_complete": True, "model_control": "explicit", "load_models": loaded}
    return tritongen.serve(repository, **{**settings, **options})


def make_client(kind: str, url: str, **options):
    """The client of this kind; one for asyncio behaves like a blocking one here, so that a test is written once."""
    return Blocking(url, **options) if kind.endswith("aio") else tritongen.Client(url, **options)


class Blocking:
    """An AsyncClient driven from a blocking test: every coroutine is run to its end, every asynchronous iterator is read step by step."""

    def __init__(self, url, **options) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self._loop.run_until_complete(self._make(url, options))
        except BaseException:
            self._loop.close()
            raise

    async def _make(self, url, options) -> None:
        self._target = tritongen.AsyncClient(url, **options)

    def __getattr__(self, name):
        return _blocking(self._loop, getattr(self._target, name))

    def __repr__(self) -> str:
        return repr(self._target)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._loop.run_until_complete(self._target.close())
        self._loop.close()


class _Wrapped:
    def __init__(self, loop, target) -> None:
        self._loop, self._target = loop, target

    def __getattr__(self, name):
        return _blocking(self._loop, getattr(self._target, name))

    def __enter__(self):
        self._loop.run_until_complete(self._target.__aenter__())
        return self

    def __exit__(self, *error) -> None:
        self._loop.run_until_complete(self._target.__aexit__(*error))


def _blocking(loop, value):
    if not callable(value):
        return value

    def call(*arguments, **options):
        result = value(*arguments, **options)
        if inspect.isasyncgen(result):
            return _steps(loop, result)
        if inspect.isawaitable(result):
            result = loop.run_until_complete(result)
        return _Wrapped(loop, result) if type(result).__module__ == "tritongen.client.aio" else result

    return call


def _steps(loop, generator):
    try:
        while True:
            try:
                yield loop.run_until_complete(generator.__anext__())
            except StopAsyncIteration:
                return
    finally:
        loop.run_until_complete(generator.aclose())


def rows(count: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 64)).astype(np.float32)
