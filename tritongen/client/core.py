"""What every client shares, without I/O: addresses, a model's metadata, and requests checked against it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from tritongen import dtypes
from tritongen.diagnostics import Diagnostic
from tritongen.dtypes import Dtype
from tritongen.errors import InputError
from tritongen.samples import Array

_DEFAULT_PORTS = {"grpc": 8001, "grpcs": 8001, "http": 8000, "https": 8000}
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
    """One protocol's way to a server. Raises InferenceError where the server refuses, fails or cannot be reached."""

    def metadata(self, model: str, version: str) -> Mapping[str, Any]:
        """The model's metadata: name, versions, inputs and outputs with name, datatype and shape."""
        ...

    def config(self, model: str, version: str) -> Mapping[str, Any]:
        """The model's whole configuration, in ModelConfig's own field names."""
        ...

    def infer(self, model: str, version: str, inputs: Mapping[str, tuple[Array, Dtype]], timeout_s: float) -> dict[str, Array]:
        """All outputs by name."""
        ...

    def ready(self) -> bool:
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


def check_request(meta: ModelMeta, arrays: Mapping[str, Array]) -> None:
    """Compare arrays with what the model takes. Raises InputError with everything that does not fit."""
    expected = {tensor.name: tensor for tensor in meta.inputs}
    optional = {item["name"] for item in meta.config.get("input", ()) if item.get("optional")}
    problems = [f"the model has no input '{name}'; its inputs are {', '.join(repr(known) for known in expected)}" for name in arrays if name not in expected]
    problems += [f"input '{name}' is missing" for name in expected if name not in arrays and name not in optional]
    for name, array in arrays.items():
        tensor = expected.get(name)
        if tensor is None:
            continue
        if len(array.shape) != len(tensor.shape) or any(want not in (-1, got) for want, got in zip(tensor.shape, array.shape, strict=True)):
            problems.append(f"input '{name}' must have the shape {list(tensor.shape)} (-1: any size), got {list(array.shape)}")
        elif meta.max_batch_size and array.shape[0] > meta.max_batch_size:
            problems.append(f"input '{name}' has {array.shape[0]} rows, and the model takes {meta.max_batch_size} at most")
        if array.dtype != tensor.dtype.numpy:
            problems.append(f"input '{name}' must be {tensor.dtype} ({tensor.dtype.numpy}), got {array.dtype}")
    if problems:
        raise InputError([Diagnostic("TG061", problem, consequence="Triton refuses the request", model=meta.name) for problem in problems])
