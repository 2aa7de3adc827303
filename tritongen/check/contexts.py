"""Folders on disk → what rules look at."""

from __future__ import annotations

from pathlib import Path

from tritongen.diagnostics import Diagnostic
from tritongen.errors import ModelFileError
from tritongen.modelconfig.reading import ReadConfig, read_config
from tritongen.repository.scan import CONFIG_NAME, ModelFolder
from tritongen.rules.context import ModelContext, ModelFile, ServerFacts
from tritongen.signature import read_onnx


def model_context(folder: ModelFolder, server: ServerFacts) -> tuple[ModelContext, ReadConfig]:
    """One model's context, and how its config was read (with the findings of that)."""
    read = read_config(folder.config or b"", str(folder.path / CONFIG_NAME))
    config = read.config
    if not config.name:
        config.name = folder.name
    context = ModelContext(folder.name, config, folder.config is not None, server, read.locate, folder, {}, folder.config or b"")
    files = {number: _model_file(folder, f"{name}/{context.resolved.filename}") for number, name in context.versions.loaded.items()} if context.is_onnx else {}
    return ModelContext(folder.name, config, folder.config is not None, server, read.locate, folder, files, folder.config or b""), read


def _model_file(folder: ModelFolder, name: str) -> ModelFile:
    """The signature of a version's ONNX file; nothing where there is none, or it lies outside the repository."""
    facts = folder.entries.get(name)
    if facts is not None and facts.kind == "folder":
        # With external data a model may be a folder that holds model.onnx and its data.
        name = f"{name}/model.onnx"
        facts = folder.entries.get(name)
    if facts is None or facts.kind != "file":
        return ModelFile()
    try:
        return ModelFile(read_onnx(folder.path / name))
    except ModelFileError as error:
        return ModelFile(problems=_diagnostics(error))


def _diagnostics(error: ModelFileError) -> tuple[Diagnostic, ...]:
    return error.diagnostics


def lone_config_context(path: Path, text: bytes, server: ServerFacts) -> tuple[ModelContext, ReadConfig]:
    """The context of a config.pbtxt of which nothing else is known."""
    read = read_config(text, str(path))
    return ModelContext(read.config.name, read.config, True, server, read.locate, text=text), read
