"""What every client shares, without I/O: addresses, a model's metadata, and requests checked against it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from tritongen import dtypes
from tritongen.diagnostics import Diagnostic
from tritongen.dtypes import Dtype
from tritongen.errors import InferenceError, InputError
from tritongen.samples import Array, SampleError, as_array

_DEFAULT_PORTS = {"grpc": 8001, "grpcs": 8001, "http": 8000, "https": 8000}
MAX_REQUEST_BYTES = 2**31 - 2**16
"""What one gRPC message may hold: INT32_MAX bytes on both sides, less 64 KiB for the names and shapes around the tensors."""
_MOST_NAMES = 20
_HOST = re.compile(r"^[A-Za-z0-9._-]+$|^[0-9a-fA-F:.]+$")


@dataclass(frozen=True)
class Endpoint:
    """A server's address. `host` is without brackets where it is an IPv6 address."""

    protocol: str
    host: str
    port: int
    tls: bool

    @property
    def authority(self) -> str:
        """`host:port`, as tritonclient takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class TensorMeta:
    """An input or output as the server states it; `shape` has the batch dimension, as -1, where the model batches."""

    name: str
    dtype: Dtype
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ModelMeta:
    """A model as the server states it. `max_batch_size` 0 means that the model does not batch."""

    name: str
    version: str
    inputs: tuple[TensorMeta, ...]
    outputs: tuple[TensorMeta, ...]
    max_batch_size: int
    config: Mapping[str, Any]


class Transport(Protocol):
    """One protocol's way to a server. Every call ends within its `timeout_s`.

    Raises InferenceError where the server refuses, fails, does not answer or cannot be reached, and where what answers is no Triton.
    """

    def metadata(self, model: str, version: str, timeout_s: float) -> Mapping[str, Any]:
        """The model's metadata: name, versions, inputs and outputs with name, datatype and shape."""
        ...

    def config(self, model: str, version: str, timeout_s: float) -> Mapping[str, Any]:
        """The model's whole configuration, in ModelConfig's own field names."""
        ...

    def index(self, timeout_s: float) -> Sequence[Mapping[str, Any]]:
        """Every version of every model that the server knows: name, and where the server says them version, state and reason."""
        ...

    def infer(self, model: str, version: str, inputs: Mapping[str, tuple[Array, Dtype]], timeout_s: float) -> dict[str, Array]:
        """All outputs by name."""
        ...

    def ready(self, timeout_s: float) -> bool:
        """Whether the server and all its models are ready; False where it cannot be reached."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


def parse_url(url: str) -> Endpoint:
    """Read `grpc://host:8001`, `http://…`, `https://…` or `grpcs://…`; the port may be left out. Raises InputError for anything else."""
    hint = "write grpc://host:8001 or http://host:8000 (https:// and grpcs:// for TLS)"
    parts = urlsplit(url)
    if parts.scheme not in _DEFAULT_PORTS:
        raise InputError([Diagnostic("TG060", f"'{url}' does not say which protocol to use", hint=hint)])
    try:
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except ValueError as error:
        raise InputError([Diagnostic("TG060", f"'{url}' has no valid port: {error}", hint=hint)]) from error
    if not parts.hostname or not _HOST.match(parts.hostname) or parts.path.strip("/") or parts.query:
        raise InputError([Diagnostic("TG060", f"'{url}' is not the address of a server", hint=hint)])
    return Endpoint(parts.scheme.rstrip("s") if parts.scheme != "https" else "http", parts.hostname, port, tls=parts.scheme in ("https", "grpcs"))


def model_meta(metadata: Mapping[str, Any], config: Mapping[str, Any]) -> ModelMeta:
    """The two answers of a server as one value."""
    inputs, outputs = (
        tuple(TensorMeta(item["name"], dtypes.from_wire(item["datatype"]), tuple(int(dim) for dim in item.get("shape", ()))) for item in metadata.get(kind, ()))
        for kind in ("inputs", "outputs")
    )
    versions = metadata.get("versions") or [""]
    return ModelMeta(metadata["name"], versions[-1], inputs, outputs, int(config.get("max_batch_size", 0)), config)


def stranger(where: str, protocol: str, what: str, *, status: str = "") -> InferenceError:
    """The error for a place where something answers that is no Triton, or not over this protocol. `what` says what it did."""
    port, other = (_DEFAULT_PORTS["grpc"], "http://") if protocol == "gRPC" else (_DEFAULT_PORTS["http"], "grpc://")
    usual = f"Triton's usual {protocol} port is {port}; for another protocol write {other} (HTTP 8000, gRPC 8001; 8002 has metrics only)"
    return InferenceError(f"{where}: what answers there is no Triton {protocol} endpoint: {what}", status=status, hint=usual)


def unknown_model(model: str, version: str, index: Sequence[Mapping[str, Any]], cause: InferenceError) -> InferenceError:
    """Why the server did not describe a model, said with its own list of models; `cause` itself where the list explains nothing."""
    found = [item for item in index if item.get("name") == model]
    names = sorted({str(item.get("name", "")) for item in index})
    if not found:
        close = difflib.get_close_matches(model, names, n=1)
        have = f"it has {_listed(names)}" if names else "it has none at all"
        hint = f"did you mean '{close[0]}'?" if close else "name one of those" if names else "start it with a model repository"
        return InferenceError(f"the server has no model '{model}'; {have}", status=cause.status, hint=hint)
    reasons = [f"version {item.get('version') or '?'}: {item['reason']}" for item in found if item.get("reason")]
    ready = [str(item.get("version", "")) for item in found if item.get("state", "READY") == "READY"]
    if version and ready and version not in ready:
        return InferenceError(f"model '{model}' has no version {version} that is ready", status=cause.status, hint=f"ready: {', '.join(ready)}")
    if not ready:
        said = "; ".join(reasons) or "the server gives no reason"
        return InferenceError(f"model '{model}' is on the server and not loaded ({said})", status=cause.status, hint="the server's log says more")
    return cause


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


def request_arrays(meta: ModelMeta, values: Mapping[str, object]) -> dict[str, Array]:
    """The values of a request as arrays that the model takes.

    Arrays of numbers (and what converts itself to one, such as a tensor of PyTorch) stay as they are: their dtype must be the model's. Plain numbers, text and
    nested lists take the model's dtype, where they can without being changed. Raises InputError with everything that does not fit.
    """
    if not isinstance(values, Mapping):
        message = f"the inputs are given as {type(values).__name__}, without names"
        raise InputError([Diagnostic("TG061", message, hint="give values by input name, such as {'x': array}", model=meta.name)])
    known = {tensor.name: tensor for tensor in meta.inputs}
    arrays: dict[str, Array] = {}
    problems = []
    for name, value in values.items():
        if name in known:
            try:
                arrays[name] = _request_array(value, known[name])
            except (SampleError, TypeError, ValueError) as error:
                problems.append(f"input '{name}': {error}")
    names = {name: arrays.get(name) for name in values}
    _raise_problems(meta, [*_problems(meta, names), *problems])
    return arrays


def _request_array(value: object, tensor: TensorMeta) -> Array:
    if not hasattr(value, "__array__") or isinstance(value, np.generic):
        return as_array(value, tensor.dtype, tensor.shape)
    array = np.asarray(value)
    return as_array(array, tensor.dtype, None) if array.dtype.kind in "OSU" else array


def array_bytes(array: Array) -> int:
    """The array's size in a request, in bytes; a string has 4 for its length."""
    return sum(4 + len(item) for item in array.ravel().tolist()) if array.dtype == object else array.nbytes


def check_size(size: int, model: str) -> None:
    """Raise InputError (TG066) for a request whose tensors take `size` bytes and do not fit one gRPC message."""
    if size > MAX_REQUEST_BYTES:
        message = f"the request would hold {size} bytes ({size / 2**30:.1f} GiB) of tensors, and the limit is {MAX_REQUEST_BYTES} (2 GiB)"
        raise InputError([Diagnostic("TG066", message, consequence="gRPC carries no larger message", hint="send fewer rows or smaller inputs", model=model)])


def check_request(meta: ModelMeta, arrays: Mapping[str, Array]) -> None:
    """Compare arrays with what the model takes. Raises InputError with everything that does not fit."""
    _raise_problems(meta, _problems(meta, arrays))


def _raise_problems(meta: ModelMeta, problems: Sequence[str]) -> None:
    if problems:
        raise InputError([Diagnostic("TG061", problem, consequence="Triton refuses the request", model=meta.name) for problem in problems])


def _problems(meta: ModelMeta, arrays: Mapping[str, Array | None]) -> list[str]:
    """What does not fit. An input whose value is None is there, and not judged."""
    expected = {tensor.name: tensor for tensor in meta.inputs}
    optional = {item["name"] for item in meta.config.get("input", ()) if item.get("optional")}
    problems = [f"the model has no input '{name}'; its inputs are {', '.join(repr(known) for known in expected)}" for name in arrays if name not in expected]
    problems += [f"input '{name}' is missing" for name in expected if name not in arrays and name not in optional]
    for name, array in arrays.items():
        tensor = expected.get(name)
        if tensor is None or array is None:
            continue
        if len(array.shape) != len(tensor.shape) or any(want not in (-1, got) for want, got in zip(tensor.shape, array.shape, strict=True)):
            problems.append(f"input '{name}' must have the shape {list(tensor.shape)} (-1: any size), got {list(array.shape)}")
        elif meta.max_batch_size and array.shape[0] > meta.max_batch_size:
            problems.append(f"input '{name}' has {array.shape[0]} rows, and the model takes {meta.max_batch_size} at most")
        if array.dtype != tensor.dtype.numpy:
            problems.append(f"input '{name}' must be {tensor.dtype} ({tensor.dtype.numpy}), got {array.dtype}")
    return problems
