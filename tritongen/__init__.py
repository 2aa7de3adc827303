"""tritongen: one spec in; a served, verified, load-tested model on NVIDIA Triton out.

The names below are the promise; they are imported when first used, so that `import tritongen` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tritongen.client import Client
    from tritongen.errors import InferenceError, InputError, ServerStartError, TritongenError
    from tritongen.server import EmbeddedServer, ServerOptions
    from tritongen.signature import Signature, TensorSpec, read_onnx
    from tritongen.spec import LoadedSpec, load_spec
    from tritongen.workflow import render, serve

_HOMES = {
    "Client": "client",
    "EmbeddedServer": "server",
    "InferenceError": "errors",
    "InputError": "errors",
    "LoadedSpec": "spec",
    "ServerOptions": "server",
    "ServerStartError": "errors",
    "Signature": "signature",
    "TensorSpec": "signature",
    "TritongenError": "errors",
    "load_spec": "spec",
    "read_onnx": "signature",
    "render": "workflow",
    "serve": "workflow",
}

__all__ = [  # noqa: RUF022 - what people start with comes first
    "render",
    "serve",
    "Client",
    "load_spec",
    "read_onnx",
    "EmbeddedServer",
    "InferenceError",
    "InputError",
    "LoadedSpec",
    "ServerOptions",
    "ServerStartError",
    "Signature",
    "TensorSpec",
    "TritongenError",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tritongen' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tritongen.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
