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
from tritongen.client.calls import Call, CallFailed, Status
from tritongen.client.result import Result, Timings
from tritongen.diagnostics import shown
from tritongen.samples import Array

HEADER_LENGTH = "Inference-Header-Content-Length"
_STATUS: Mapping[int, Status] = {
    400: Status.INVALID,
    401: Status.DENIED,
    403: Status.DENIED,
    404: Status.NOT_FOUND,
    407: Status.DENIED,
    429: Status.UNAVAILABLE,
    501: Status.UNSUPPORTED,
    503: Status.UNAVAILABLE,
    502: Status.CONNECTION,
    504: Status.CONNECTION,
}
_SHOWN = 200
_MOST_DIGITS = 19


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
        case calls.ServerLive() | calls.OtherProtocol():
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
    blobs = [tensors.encode_strings(array) if array.dtype.hasobject else array.tobytes() for array in call.arrays]
    header: dict[str, Any] = {
        "inputs": [
            {"name": name, "shape": shape, "datatype": datatype, "parameters": {"binary_data_size": len(blob)}}
            for (name, datatype, shape), blob in zip(call.layout, blobs, strict=True)
        ],
        "parameters": {"binary_data_output": True, **call.parameters},
    }
    if call.outputs is not None:
        # Outputs that are named take no notice of what the request says for all of them.
        header["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in call.outputs]
    if call.request_id:
        header["id"] = call.request_id
    text = json.dumps(header).encode()
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(text))}
    return Message("POST", f"{_model(call.model, call.version)}/infer", b"".join([text, *blobs]), headers)


def answer(call: Call, status: int, body: bytes) -> Any:
    """The answer to a call that is no inference. Raises CallFailed where there is none."""
    if isinstance(call, calls.OtherProtocol):
        return True
    if isinstance(call, calls.ServerLive | calls.ServerReady | calls.ModelReady):
        return _health(status, body)
    check(status, body)
    if isinstance(call, calls.LoadModel | calls.UnloadModel):
        return None
    found = _parsed(body)
    if isinstance(call, calls.RepositoryIndex):
        if not isinstance(found, list):
            raise CallFailed(Status.STRANGER, str(status), "its index of models is no list")
        return [_object(item, "name") for item in found]
    if isinstance(call, calls.ModelStatistics):
        statistics = _object(found, "model_stats")["model_stats"]
        if not isinstance(statistics, list):
            raise CallFailed(Status.STRANGER, str(status), "its statistics are no list")
        return statistics
    if isinstance(call, calls.ModelConfiguration):
        return _numbers(_object(found, "name"))
    return _object(found, *(("name", "inputs", "outputs") if isinstance(call, calls.ModelMetadata) else ("name",)))


def _health(status: int, body: bytes) -> bool:
    """Triton's yes is a 200 without a body; its no is a 400 or 404, with an error or without a body. A page is that of another server."""
    if status == 200 and body:
        raise CallFailed(Status.STRANGER, "200", "its answer to a question about health has a body", own=False)
    if status == 200:
        return True
    if status in (400, 404) and (not body or _error(body) is not None):
        return False
    check(status, body)
    return False


def _numbers(found: Any) -> Any:
    """A config whose sizes are numbers: Triton 2.51 leaves those of `initial_state` as text, which is how protobuf writes 64 bits in JSON."""
    if isinstance(found, list):
        return [_numbers(item) for item in found]
    if not isinstance(found, dict):
        return found
    return {key: [int(size) for size in value] if key == "dims" and _is_text_of_numbers(value) else _numbers(value) for key, value in found.items()}


def _is_text_of_numbers(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item.lstrip("-").isdecimal() for item in value)


def infer_reply(status: int, headers: Mapping[str, str], body: bytes, serialise_s: float, wait_s: float) -> Result:
    """The answer to an inference request. `headers` are looked up in lower case. Raises CallFailed where there is none."""
    start = time.perf_counter()
    check(status, body)
    size = _header_size(headers.get(HEADER_LENGTH.lower()), len(body))
    header = _object(_parsed(body[:size]), "outputs")
    try:
        outputs = _outputs(header["outputs"], memoryview(body)[size:])
        model, version, request_id = (_text(header, key) for key in ("model_name", "model_version", "id"))
        parameters = header.get("parameters") or {}
        if not isinstance(parameters, Mapping):
            raise ValueError(f"its parameters are {shown(parameters)}")
    except ValueError as error:
        raise CallFailed(Status.FAILED, str(status), f"the answer cannot be read: {error}") from error
    timings = Timings(0.0, serialise_s, wait_s, time.perf_counter() - start)
    return Result(outputs, model=model, version=version, request_id=request_id, parameters=parameters, timings=timings, raw=header)


def _header_size(length: str | None, total: int) -> int:
    """How many bytes of an answer are JSON: all where the header does not say it."""
    if length is None:
        return total
    if not (length.isascii() and length.isdigit() and len(length) < _MOST_DIGITS and int(length) <= total):
        raise CallFailed(Status.FAILED, "200", f"the answer's {HEADER_LENGTH} is {shown(length)}, and the answer has {total} bytes")
    return int(length)


def _outputs(described: object, data: memoryview) -> dict[str, Array]:
    """The arrays of an answer. Raises ValueError."""
    if not isinstance(described, list):
        raise ValueError(f"its outputs are {shown(described)}, not a list")
    outputs: dict[str, Array] = {}
    place = 0
    for output in described:
        if not isinstance(output, Mapping):
            raise ValueError(f"an output is {shown(output)}")
        name, shape, parameters = _text(output, "name"), output.get("shape"), output.get("parameters")
        count = parameters.get("binary_data_size", 0) if isinstance(parameters, Mapping) else 0
        if not isinstance(shape, list) or type(count) is not int or not 0 <= count <= len(data) - place:
            raise ValueError(f"the output {shown(name)} has the shape {shown(shape)} and {shown(count)} bytes of the {len(data) - place} that are left")
        if count == 0 and "data" in output:
            outputs[name] = tensors.from_json(output["data"], _text(output, "datatype"), tensors.sizes_of(shape))
        else:
            outputs[name] = tensors.decode(data[place : place + count], _text(output, "datatype"), tensors.sizes_of(shape))
        place += count
    if place != len(data):
        raise ValueError(f"it has {len(data) - place} bytes that belong to no output")
    return outputs


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"its {key} is {shown(value)}, not text")
    return value


def check(status: int, body: bytes) -> None:
    """Raise CallFailed for an error status. Triton says what is wrong as `{"error": ...}`; another body is that of something in between."""
    if status == 200:
        return
    known = _STATUS.get(status, Status.FAILED)
    said = _error(body)
    if said is not None:
        raise CallFailed(known, str(status), said)
    text = body[:_SHOWN].decode("utf-8", "replace").strip()
    raise CallFailed(known, str(status), f"status {status}: {text!r}" if text else f"status {status}, without a word", own=False)


def _error(body: bytes) -> str | None:
    """Triton's own words in the body of an error; None for the body of another server."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return said["error"] if isinstance(said, dict) and isinstance(said.get("error"), str) else None


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
