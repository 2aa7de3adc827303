"""Where a model file is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo, field_validator

from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.values import (
    PATH_SCHEMA,
    PackageName,
    PathText,
    describe,
    problem,
)


class Source(Strict, json_schema_extra={"examples": [{"package": "rapidocr_onnxruntime", "path": "models/ch_PP-OCRv4_rec_infer.onnx"}]}):
    """Where a model's ONNX file is: a path, or a file inside an installed Python package."""

    package: PackageName | None = setting(
        "Import name of an installed Python package that carries the file; it is located, never imported.",
        sets="where path starts",
        why="to serve a model that comes with a Python package",
    )
    path: PathText = setting(
        "Path of the ONNX file: relative to the spec's folder (~ and absolute paths work too), or relative to the package.",
        default=...,
        sets="the file in the version folder",
        why="it is the model",
    )

    @field_validator("path")
    @classmethod
    def _no_url(cls, path: str) -> str:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
            raise problem(f"URLs are not read: {path[:80]!r}", hint="download the file, and write its path relative to the spec's folder")
        return path

    @field_validator("path")
    @classmethod
    def _inside_package(cls, path: str, info: ValidationInfo) -> str:
        if info.data.get("package") is not None and (path.startswith(("/", "~", "\\")) or ".." in path.replace("\\", "/").split("/")):
            raise problem(f"the path {path!r} leaves the package", code="TG017", hint="write it relative to the package's own folder, with / and without ..")
        return path


def _source_forms(value: object) -> object:
    """A plain path as the mapping that it stands for."""
    if isinstance(value, str):
        return {"path": value}
    if not isinstance(value, Mapping | Source):
        raise problem(f"expected a path or a mapping with package and path, got {describe(value)}", code="TG010", hint="write source: model.onnx")
    return value


SourceField = Annotated[Source, BeforeValidator(_source_forms), Forms(lambda full: [PATH_SCHEMA, full])]
