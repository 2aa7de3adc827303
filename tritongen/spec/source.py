"""Where a model's files are: one, or one for each of several versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler, ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, field_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails

from tritongen.spec.strict import Forms, Strict, setting
from tritongen.spec.values import (
    INT64_MAX,
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


def _check_number(value: str) -> str:
    """A version folder's name: its number as Triton reads it back."""
    shown = repr(value[:60])
    if not value.isascii() or not value.isdigit():
        raise problem(
            f"{shown} is not the number of a version",
            consequence="Triton ignores a version folder whose name is not a number",
            hint="write whole numbers: sources: {1: a.onnx, 2: b.onnx}",
        )
    if value.startswith("0"):
        hint = f"write {value.lstrip('0')}" if value.strip("0") else "number versions from 1 on"
        raise problem(f"the version {shown} starts with 0", consequence="Triton ignores version folders that start with 0", hint=hint)
    if len(value) > 19 or int(value) > INT64_MAX:
        raise problem(f"the version {shown} is above {INT64_MAX}", consequence="Triton ends when it looks at such a folder", hint="write a smaller number")
    return value


@dataclass(frozen=True)
class _Numbered:
    """The JSON Schema of a mapping whose names are numbers of versions; it has one at least."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "minProperties": 1, "propertyNames": {"pattern": "^[1-9][0-9]{0,18}$"}}


SourcesField = Annotated[Mapping[Annotated[str, AfterValidator(_check_number)], SourceField], _Numbered()]


@dataclass(frozen=True)
class PlacedSource:
    """One file of a model: the key of the spec that names it, and the version that it is; None where `version` decides."""

    key: tuple[str, ...]
    source: Source
    version: int | None = None


class Sourced(Strict):
    """The keys that say which file a model is made from."""

    sources: SourcesField = setting(
        "Several versions side by side, in place of source: version number → ONNX file, as in {1: a.onnx, 3: b.onnx}. All have the same inputs and outputs.",
        default_factory=dict,
        sets="the version folders",
        why="to serve an old and a new model at once; clients name the version, or get the highest one. versions: {policy: all} serves all of them",
    )
    source: SourceField | None = setting(
        "The ONNX file: a path relative to the spec's folder, or {package: ..., path: ...} for a file of an installed Python package. Needed without sources.",
        validate_default=True,
        sets="the file in the version folder; input and output are read from it",
        why="it is the model",
    )

    @property
    def placed(self) -> tuple[PlacedSource, ...]:
        """The files of the model, by ascending version."""
        if self.source is not None:
            return (PlacedSource(("source",), self.source),)
        return tuple(PlacedSource(("sources", number), source, int(number)) for number, source in sorted(self.sources.items(), key=lambda item: int(item[0])))

    @field_validator("sources", mode="before")
    @classmethod
    def _some_numbers(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            hint = "write sources: {1: a.onnx, 2: b.onnx}, or source: a.onnx for a single file"
            raise problem(f"expected a mapping of version numbers to files, got {describe(value)}", code="TG010", hint=hint)
        if not value:
            raise problem("the mapping is empty, so there is no version", hint="write sources: {1: a.onnx, 2: b.onnx}")
        return {str(key) if type(key) is int else key: source for key, source in value.items()}

    @field_validator("source", mode="wrap")
    @classmethod
    def _one_of_both(cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        sources = info.data.get("sources")
        if value is None:
            if sources is None or sources:  # None: what is there is wrong, and was reported
                return None
            raise ValidationError.from_exception_data("source", [InitErrorDetails(type="missing", input=value)])
        if sources:
            numbers = ", ".join(sources)
            raise problem(
                f"source is given, and so is sources (versions {numbers})",
                code="TG015",
                consequence="it is not clear which file a version is",
                hint="put the file into sources under a number of its own, or remove sources",
                beside=("sources",),
            )
        return handler(value)
