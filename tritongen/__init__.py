"""tritongen: one spec in; a served, verified, load-tested model on NVIDIA Triton out.

The names below are the promise; they are imported when first used, so that `import tritongen` costs nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tritongen.client import Client, Result, Tls
    from tritongen.client.aio import AsyncClient
    from tritongen.errors import InferenceError, InputError, InvalidInput, ServerStartError, TritongenError
    from tritongen.server import EmbeddedServer, ServerOptions
    from tritongen.signature import Signature, TensorSpec, read_onnx
    from tritongen.spec import LoadedSpec, load_spec
    from tritongen.workflow import render, serve

_HOMES = {
    "AsyncClient": "client",
    "Client": "client",
    "EmbeddedServer": "server",
    "InferenceError": "errors",
    "InputError": "errors",
    "InvalidInput": "errors",
    "LoadedSpec": "spec",
    "Result": "client",
    "ServerOptions": "server",
    "ServerStartError": "errors",
    "Signature": "signature",
    "TensorSpec": "signature",
    "Tls": "client",
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
    "AsyncClient",
    "load_spec",
    "read_onnx",
    "EmbeddedServer",
    "InferenceError",
    "InputError",
    "InvalidInput",
    "LoadedSpec",
    "Result",
    "ServerOptions",
    "ServerStartError",
    "Signature",
    "TensorSpec",
    "Tls",
    "TritongenError",
]


class _Package(ModuleType):
    """This package. Python puts a sub-package into its parent under its name once it is imported, and would put `tritongen.render`, the package, over the
    function that is promised: the second `tritongen.render("spec.yaml")` of a program would call a module.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tritongen' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tritongen.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
