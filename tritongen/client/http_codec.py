"""Triton's HTTP messages with binary tensors: calls into requests, responses into answers, statuses into `CallFailed`. Pure."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tritongen.client import calls, tensors
from tritongen.client.calls import Call, CallFailed, Reply, Status

HEADER_LENGTH = "Inference-Header-Content-Length"
_STATUS: Mapping[int, Status] = {
    400: Status.INVALID,
    401: Status.DENIED,
    403: Status.DENIED,
    404: Status.NOT_FOUND,
    501: Status.UNSUPPORTED,
    503: Status.UNAVAILABLE,
    502: Status.CONNECTION,
    504: Status.CONNECTION,
}
_SHOWN = 200


@dataclass(frozen=True)
class Message:
    """An HTTP request. `body` is one piece."""

    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def request(call: Call) -> Message:
    """The request for a call."""
    match call:
        case calls.Infer():
            return _infer(call)
        case calls.ServerLive() | calls.Reach():
            return Message("GET", "/v2/health/live")
        case calls.ServerReady():
            return Message("GET", "/v2/health/ready")
        case calls.ModelReady():
            return Message("GET", f"{_model(call.model, call.version)}/ready")
        case calls.ServerMetadata():
            return Message("GET", "/v2")
        case calls.ModelMetadata():
            return Message("GET", _model(call.model, call.version))
        case calls.ModelConfiguration():
            return Message("GET", f"{_model(call.model, call.version)}/config")
        case calls.ModelStatistics():
            return Message("GET", f"{_model(call.model, call.version)}/stats" if call.model else "/v2/models/stats")
        case calls.RepositoryIndex():
            return _json("/v2/repository/index", {"ready": call.ready})
        case calls.LoadModel():
            parameters: dict[str, Any] = {"config": call.config} if call.config else {}
            parameters |= {f"file:{path}": base64.b64encode(content).decode() for path, content in call.files.items()}
            return _json(f"/v2/repository/models/{quote(call.model, safe='')}/load", {"parameters": parameters})
        case calls.UnloadModel():
            return _json(f"/v2/repository/models/{quote(call.model, safe='')}/unload", {"parameters": {"unload_dependents": call.dependents}})


def _model(model: str, version: str) -> str:
    return f"/v2/models/{quote(model, safe='')}" + (f"/versions/{quote(version, safe='')}" if version else "")


def _json(path: str, content: Any) -> Message:
    # Without the content type Triton 2.51 takes a large body for a form and crashes.
    return Message("POST", path, json.dumps(content).encode(), {"Content-Type": "application/json"})


def _infer(call: calls.Infer) -> Message:
    blobs = [tensors.encode(array) for _, array in call.inputs]
    header: dict[str, Any] = {
        "inputs": [
            {"name": tensor.name, "shape": array.shape, "datatype": tensor.dtype.wire, "parameters": {"binary_data_size": len(blob)}}
            for (tensor, array), blob in zip(call.inputs, blobs, strict=True)
        ],
        "parameters": {"binary_data_output": True, **call.parameters},
    }
    if call.outputs is not None:
        # Outputs that are named take no notice of what the request says for all of them.
        header["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in call.outputs]
    if call.request_id:
        header["id"] = call.request_id
    text = json.dumps(header).encode()
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(text)), **call.headers}
    return Message("POST", f"{_model(call.model, call.version)}/infer", b"".join([text, *blobs]), headers)


def answer(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """The answer to a call that is no inference. Raises CallFailed where there is none."""
    if isinstance(call, calls.Reach):
        return True
    if isinstance(call, calls.ServerLive | calls.ServerReady | calls.ModelReady) and status in (200, 400, 404):
        return status == 200
    check(status, body)
    if isinstance(call, calls.LoadModel | calls.UnloadModel):
        return None
    found = _parsed(body)
    if isinstance(call, calls.RepositoryIndex):
        if not isinstance(found, list):
            raise CallFailed(Status.STRANGER, str(status), "its index of models is no list")
        return [_object(item, "name") for item in found]
    if isinstance(call, calls.ModelStatistics):
        return _object(found, "model_stats")["model_stats"]
    return _object(found, *(("name", "inputs", "outputs") if isinstance(call, calls.ModelMetadata) else ("name",)))


def infer_reply(status: int, headers: Mapping[str, str], body: bytes, *, serialise_s: float, wait_s: float) -> Reply:
    """The answer to an inference request. `headers` are looked up in lower case. Raises CallFailed where there is none."""
    start = time.perf_counter()
    check(status, body)
    length = headers.get(HEADER_LENGTH.lower(), "")
    size = int(length) if length.isdigit() else len(body)
    header = _object(_parsed(body[:size]), "outputs")
    outputs, place, view = {}, size, memoryview(body)
    try:
        for output in header["outputs"]:
            count = output.get("parameters", {}).get("binary_data_size", 0)
            outputs[output["name"]] = tensors.decode(view[place : place + count], output["datatype"], output["shape"])
            place += count
    except (ValueError, KeyError, TypeError) as error:
        raise CallFailed(Status.FAILED, str(status), f"an output of the answer cannot be read: {error}") from error
    decode_s = time.perf_counter() - start
    parameters = header.get("parameters", {})
    return Reply(
        outputs, header.get("model_name", ""), str(header.get("model_version", "")), header.get("id", ""), parameters, header, serialise_s, wait_s, decode_s
    )


def check(status: int, body: bytes) -> None:
    """Raise CallFailed for an error status. Triton says what is wrong as `{"error": ...}`; another body is that of something in between."""
    if status == 200:
        return
    known = _STATUS.get(status, Status.FAILED)
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and isinstance(said.get("error"), str):
        raise CallFailed(known, str(status), said["error"])
    shown = body[:_SHOWN].decode("utf-8", "replace").strip()
    raise CallFailed(known, str(status), f"status {status}: {shown!r}" if shown else f"status {status}, without a word", own=False)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CallFailed(Status.STRANGER, "200", "its answer is no JSON", own=False) from error


def _object(found: object, *keys: str) -> Mapping[str, Any]:
    """An answer that has these keys, as Triton's have."""
    if not isinstance(found, Mapping) or any(key not in found for key in keys):
        raise CallFailed(Status.STRANGER, "200", f"its answer has no {' and '.join(keys)}", own=False)
    return found
