"""Clients of Triton, blocking and for asyncio, over gRPC and HTTP, with numpy arrays in and out.

A call goes down as a value (`calls`), through a flow without waiting (`flow`, `core`, `failures`), a codec without I/O (`grpc_codec`, `http_codec`) and a
transport of a few lines; only `sync`, `aio` and the transports know which kind of client it is.
"""

from tritongen.client.endpoint import Tls
from tritongen.client.metadata import ModelMeta, TensorMeta
from tritongen.client.result import Result, Timings
from tritongen.client.sync import Client

__all__ = ["AsyncClient", "Client", "ModelMeta", "Result", "TensorMeta", "Timings", "Tls"]


def __getattr__(name: str) -> object:
    """Asyncio's client is imported where it is first used."""
    if name == "AsyncClient":
        from tritongen.client.aio import AsyncClient

        return AsyncClient
    raise AttributeError(name)
