"""Shared libraries that the server loads, as a spec names them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from tritongen.spec.values import check_path, problem

_ABSOLUTE = r"/(?!/*$)(?!(?:.*/)?\.\.(?:/|$))"


def _check_library(value: str) -> str:
    """What the dynamic loader takes as it is."""
    path = PurePosixPath(check_path(value or " "))
    is_name = len(path.parts) == 1 and not path.is_absolute() and value not in (".", "..")
    if not is_name and (not path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or value.endswith("/")):
        raise problem(
            f"{value[:80]!r} is neither an absolute path nor a plain file name",
            hint="write where the library is inside the container, such as /opt/ops/libmy_ops.so",
            consequence="the server would look for it from the folder that it was started in",
        )
    return value


def _check_plugin(value: str) -> str:
    if ";" in value:
        raise problem(f"the path {value[:60]!r} holds a ';', which stands between paths", hint="rename the library", consequence="TensorRT reads two paths")
    return value


LibraryPath = Annotated[
    str,
    AfterValidator(_check_library),
    WithJsonSchema({"type": "string", "pattern": rf"^(?=.*\S)(?!\.{{1,2}}$)(?:[^/\x00-\x1f\x7f]+|{_ABSOLUTE}[^\x00-\x1f\x7f]*[^/\x00-\x1f\x7f])$"}),
]
"""A library as `dlopen` takes it inside the container: an absolute path, or a name to look for where the loader looks."""

PluginPath = Annotated[
    LibraryPath,
    AfterValidator(_check_plugin),
    WithJsonSchema({"type": "string", "pattern": rf"^(?=.*\S)(?!\.{{1,2}}$)(?:[^;/\x00-\x1f\x7f]+|{_ABSOLUTE}[^;\x00-\x1f\x7f]*[^;/\x00-\x1f\x7f])$"}),
]
"""A library in a list that ONNX Runtime splits at each ';'."""
