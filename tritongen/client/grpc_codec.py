"""Triton's gRPC messages: calls into requests, responses into answers, statuses into `CallFailed`. Pure."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import grpc
import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from tritongen.client import calls, tensors
from tritongen.client.calls import CallFailed, Status
from tritongen.client.result import Result, Timings
from tritongen.samples import Array
from tritongen.signature.wire import varint

_SERVICE = "/inference.GRPCInferenceService/"
INFER = f"{_SERVICE}ModelInfer"
"""The path of the one RPC that a request is."""

STATUS: Mapping[grpc.StatusCode, Status] = {
    grpc.StatusCode.INVALID_ARGUMENT: Status.INVALID,
    grpc.StatusCode.NOT_FOUND: Status.NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE: Status.UNAVAILABLE,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Status.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED: Status.UNSUPPORTED,
    grpc.StatusCode.UNAUTHENTICATED: Status.DENIED,
    grpc.StatusCode.PERMISSION_DENIED: Status.DENIED,
    grpc.StatusCode.DEADLINE_EXCEEDED: Status.DEADLINE,
}
_OWN = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.DEADLINE_EXCEEDED})
"""Statuses that gRPC itself never makes up about a server, and its own word for a deadline."""


class Rpc(NamedTuple):
    """One unary RPC: the stub's method, how a call becomes its request, and how its response becomes the answer, with the seconds for making the request and
    for waiting.
    """

    method: str
    request: Callable[[Any], Any]
    answer: Callable[..., Any]


def plain(message: Any) -> dict[str, Any]:
    """A protobuf message as Triton's HTTP endpoint says it in JSON: field names as they are declared, numbers of 64 bits as numbers, fields that have their
    default there, those of messages and of a oneof only where they are set.
    """
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map:
            entry = field.message_type.fields_by_name["value"]
            found[field.name] = {str(key): _plain(entry, value[key]) for key in value}
        elif field.is_repeated:
            found[field.name] = [_plain(field, item) for item in value]
        elif not field.has_presence or message.HasField(field.name):
            found[field.name] = _plain(field, value)
    return found


def _plain(field: Any, value: Any) -> Any:
    """One value of a field."""
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64encode(value).decode()
    # The shortest number that is the same in 32 bits, as JSON has it.
    return float(str(np.float32(value))) if field.type == FieldDescriptor.TYPE_FLOAT else value


def _told(message: Any) -> dict[str, Any]:
    """What a message says beside defaults: an entry of the repository's index leaves out what the server does not know."""
    return {key: value for key, value in plain(message).items() if value}


def _load(call: calls.LoadModel) -> Any:
    request = pb.RepositoryModelLoadRequest(model_name=call.model)
    if call.config:
        request.parameters["config"].string_param = call.config
    for path, content in call.files.items():
        request.parameters[f"file:{path}"].bytes_param = content
    return request


def _unload(call: calls.UnloadModel) -> Any:
    request = pb.RepositoryModelUnloadRequest(model_name=call.model)
    request.parameters["unload_dependents"].bool_param = call.dependents
    return request


class Stub(service_pb2_grpc.GRPCInferenceServiceStub):  # type: ignore[misc]  # tritonclient states no types
    """Triton's stub on a channel of either kind, whose requests for inference are bytes, as `infer_request` makes them."""

    def __init__(self, channel: Any) -> None:
        super().__init__(channel)
        self.ModelInfer = channel.unary_unary(INFER, response_deserializer=pb.ModelInferResponse.FromString)
        self.ModelStreamInfer = channel.stream_stream(f"{_SERVICE}ModelStreamInfer", response_deserializer=pb.ModelStreamInferResponse.FromString)


def infer_request(call: calls.Infer) -> bytes:
    """The bytes of a `ModelInferRequest`.

    Messages of protobuf that stand one behind the other are one message: what describes the tensors is made once, and no tensor is copied into a message first.
    """
    contents: list[bytes] = []
    for array in call.arrays:
        content = tensors.encode_strings(array) if array.dtype.hasobject else array.tobytes()
        contents += (_raw_content(len(content)), content)
    asked = _asked_for(call) if call.request_id or call.outputs or call.parameters else b""
    return b"".join([_described(call.model, call.version, call.layout), asked, *contents])


@lru_cache(maxsize=1024)
def _described(model: str, version: str, layout: tuple[tuple[str, str, tuple[int, ...]], ...]) -> bytes:
    """The part of a request that says to which model it goes and what its tensors are: name, datatype and shape."""
    request = pb.ModelInferRequest(model_name=model, model_version=version)
    for name, datatype, shape in layout:
        request.inputs.add(name=name, datatype=datatype, shape=shape)
    return request.SerializeToString()  # type: ignore[no-any-return]


@lru_cache(maxsize=1024)
def _raw_content(size: int) -> bytes:
    """What stands before so many bytes of `raw_input_contents`: the field's tag (`number << 3 | 2`, since it has a length) and the length."""
    return varint(pb.ModelInferRequest.RAW_INPUT_CONTENTS_FIELD_NUMBER << 3 | 2) + varint(size)


def _asked_for(call: calls.Infer) -> bytes:
    """The part of a request with what its caller asks for beside the tensors."""
    request = pb.ModelInferRequest(id=call.request_id)
    for name in call.outputs or ():
        request.outputs.add(name=name)
    for key, value in call.parameters.items():
        _set(request.parameters[key], value)
    return request.SerializeToString()  # type: ignore[no-any-return]


def _set(parameter: Any, value: str | int | float | bool) -> None:
    if isinstance(value, bool):
        parameter.bool_param = value
    elif isinstance(value, int):
        parameter.int64_param = value  # the only integer that Triton takes for a timeout and for a sequence's id
    elif isinstance(value, float):
        parameter.double_param = value
    else:
        parameter.string_param = value


def infer_reply(response: Any, serialise_s: float, wait_s: float) -> Result:
    """The answer in a `ModelInferResponse`. Raises CallFailed where it is not one."""
    start = time.perf_counter()
    # Slices: protobuf's containers know no iterator of their own, and Python's ends each time with an IndexError, which costs as much as reading an output.
    described, raw = response.outputs[:], response.raw_output_contents[:]
    if len(raw) != len(described):
        raise CallFailed(Status.FAILED, "", f"the answer describes {len(described)} outputs and holds {len(raw)}")
    outputs: dict[str, Array] = {}
    try:
        for output, data in zip(described, raw, strict=True):
            outputs[output.name] = tensors.decode(data, output.datatype, tuple(output.shape[:]))
    except ValueError as error:
        raise CallFailed(Status.FAILED, "", f"an output of the answer cannot be read: {error}") from error
    said = response.parameters
    parameters = {key: getattr(value, value.WhichOneof("parameter_choice") or "string_param") for key, value in said.items()} if said else {}
    timings = Timings(0.0, serialise_s, wait_s, time.perf_counter() - start)
    return Result(
        outputs,
        model=response.model_name,
        version=response.model_version,
        request_id=response.id,
        parameters=parameters,
        timings=timings,
        raw=response,
    )


RPCS: Mapping[type, Rpc] = {
    calls.Infer: Rpc("ModelInfer", infer_request, infer_reply),
    calls.ServerLive: Rpc("ServerLive", lambda call: pb.ServerLiveRequest(), lambda response, *_: response.live),
    calls.ServerReady: Rpc("ServerReady", lambda call: pb.ServerReadyRequest(), lambda response, *_: response.ready),
    calls.ModelReady: Rpc("ModelReady", lambda call: pb.ModelReadyRequest(name=call.model, version=call.version), lambda response, *_: response.ready),
    calls.ServerMetadata: Rpc("ServerMetadata", lambda call: pb.ServerMetadataRequest(), lambda response, *_: plain(response)),
    calls.ModelMetadata: Rpc(
        "ModelMetadata", lambda call: pb.ModelMetadataRequest(name=call.model, version=call.version), lambda response, *_: plain(response)
    ),
    calls.ModelConfiguration: Rpc(
        "ModelConfig", lambda call: pb.ModelConfigRequest(name=call.model, version=call.version), lambda response, *_: plain(response.config)
    ),
    calls.ModelStatistics: Rpc(
        "ModelStatistics",
        lambda call: pb.ModelStatisticsRequest(name=call.model, version=call.version),
        lambda response, *_: [plain(item) for item in response.model_stats],
    ),
    calls.RepositoryIndex: Rpc(
        "RepositoryIndex", lambda call: pb.RepositoryIndexRequest(ready=call.ready), lambda response, *_: [_told(item) for item in response.models]
    ),
    calls.LoadModel: Rpc("RepositoryModelLoad", _load, lambda response, *_: None),
    calls.UnloadModel: Rpc("RepositoryModelUnload", _unload, lambda response, *_: None),
}


def is_no_grpc(error: grpc.RpcError) -> bool:
    """Whether a call failed for want of a connection that speaks gRPC, where connections are taken."""
    return error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def failure(error: grpc.RpcError, *, connected: bool, at: float) -> CallFailed:
    """What became of a call that ended `at` that moment, from its status and from whether its connection is still there."""
    code = error.code()
    said = error.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE and not connected:
        return CallFailed(Status.CONNECTION, code.name, said, own=False, at=at)
    return CallFailed(STATUS.get(code, Status.FAILED), code.name, said, own=code in _OWN, at=at)


def channel_options() -> list[tuple[str, int]]:
    """Options of every channel.

    Messages up to gRPC's real limit in both directions. A keep-alive that finds dead connections (with it Linux gives up on unacknowledged data after the
    timeout) and pings no more often than Triton's own `--grpc-http2-min-recv-ping-interval-without-data` of 300 s allows, so that it earns no GOAWAY. Own
    subchannels, so that closing one client leaves another's connection alone. A server that takes a connection and says nothing has five seconds, where gRPC
    would give it twenty: then another connection is tried.
    """
    return [
        ("grpc.max_send_message_length", 2**31 - 1),
        ("grpc.max_receive_message_length", 2**31 - 1),
        ("grpc.keepalive_time_ms", 310_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.min_reconnect_backoff_ms", 5_000),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 500),
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
    ]
