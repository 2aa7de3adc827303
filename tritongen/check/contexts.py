"""Folders on disk → what rules look at."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tritongen.check.plans import with_plans
from tritongen.errors import ModelFileError
from tritongen.modelconfig.reading import ReadConfig, read_config, unread_config
from tritongen.repository.scan import CONFIG_NAME, ModelFolder
from tritongen.rules.context import TEXT_BYTES, ModelContext, ModelFile, ServerFacts
from tritongen.rules.vllm import ENGINE_ARGUMENTS
from tritongen.signature import read_onnx
from tritongen.signature.inference import refine_outputs
from tritongen.signature.modelfile import opened


@dataclass(frozen=True)
class LoadedModel:
    """A model, looked at once: what rules see of it, and how its config was read.

    Attributes:
        context: what rules look at.
        read: how config.pbtxt was read, with the findings of that.
        config_path: where its config.pbtxt is, or would be.
    """

    context: ModelContext
    read: ReadConfig
    config_path: Path

    @property
    def parses(self) -> bool:
        """Whether its config could be read; rules about a config say nothing about one that Triton cannot read either."""
        return self.context.parses


def load_model(folder: ModelFolder, server: ServerFacts) -> LoadedModel:
    """A model's folder, for rules. ONNX files of the versions that Triton would load are opened; their weights are not read."""
    context, read = model_context(folder, server)
    return LoadedModel(context, read, folder.path / CONFIG_NAME)


def load_lone_config(path: Path, text: bytes, server: ServerFacts) -> LoadedModel:
    """A config.pbtxt of which nothing else is known."""
    return _lone(path, read_config(text, str(path)), server, text)


def large_lone_config(path: Path, size: int, server: ServerFacts) -> LoadedModel:
    """A config.pbtxt with more bytes than are read."""
    return _lone(path, unread_config(size, str(path)), server, b"")


def _lone(path: Path, read: ReadConfig, server: ServerFacts, text: bytes) -> LoadedModel:
    return LoadedModel(ModelContext(read.config.name, read.config, True, server, read.locate, text=text, parses=read.ok), read, path)


def reload_config(model: LoadedModel, text: bytes) -> LoadedModel:
    """The same model with another text of its config, as `--fix` would leave it. Nothing is written."""
    folder = model.context.folder
    if folder is None:
        return load_lone_config(model.config_path, text, model.context.server)
    return load_model(dataclasses.replace(folder, config=text), model.context.server)


def model_context(folder: ModelFolder, server: ServerFacts) -> tuple[ModelContext, ReadConfig]:
    """One model's context, and how its config was read (with the findings of that)."""
    text = folder.config or b""
    read = read_config(text, str(folder.path / CONFIG_NAME))
    config = read.config
    if not config.name:
        # A protobuf string is UTF-8, which a folder's name need not be.
        config.name = os.fsencode(folder.name).decode(errors="replace")
    parses = read.ok and not folder.config_problem
    context = ModelContext(folder.name, config, folder.config is not None, server, read.locate, folder, text=text, parses=parses)
    context = dataclasses.replace(context, absent=_absent(folder, config))
    if context.is_plan:
        return with_plans(context), read
    look = _LOOKS.get(context.resolved.backend)
    if look is None:
        return context, read
    filename = ENGINE_ARGUMENTS if context.resolved.backend == "vllm" else context.resolved.filename
    files = {number: look(folder, f"{name}/{filename}") for number, name in context.versions.loaded.items()}
    return dataclasses.replace(context, models=files), read


def _absent(folder: ModelFolder, config: Any) -> frozenset[str]:
    """Label files outside the model's folder that are not there. Triton joins the name to the folder, even one that starts with a slash."""
    paths = {os.path.normpath(output.label_filename.lstrip("/")) for output in config.output if "\0" not in output.label_filename}
    return frozenset(path for path in paths if path.startswith("../") and not os.path.lexists(folder.path / path))


def _model_file(folder: ModelFolder, name: str) -> ModelFile:
    """The signature of a version's ONNX file; nothing where there is none, or it lies outside the repository."""
    facts = folder.entries.get(name)
    if facts is not None and facts.kind == "folder":
        # With external data a model may be a folder that holds model.onnx and its data.
        name = f"{name}/model.onnx"
        facts = folder.entries.get(name)
    if facts is None or not facts.can_be_read:
        return ModelFile()
    path = folder.path / name
    try:
        signature = read_onnx(path, confined=False)
    except ModelFileError as error:
        return ModelFile(problems=error.diagnostics)
    return ModelFile(signature, refine=partial(refine_outputs, path, signature))


def _text_file(folder: ModelFolder, name: str) -> ModelFile:
    """What is in a version's model.py or model.json; nothing where there is none that can be read, or it is too large."""
    facts = folder.entries.get(name)
    if facts is None or not facts.can_be_read or facts.size > TEXT_BYTES:
        return ModelFile()
    if facts.size == 0:
        return ModelFile(text=b"")
    try:
        with opened(folder.path / name) as (descriptor, size):
            return ModelFile(text=os.pread(descriptor, TEXT_BYTES, 0) if size <= TEXT_BYTES else None)
    except ModelFileError as error:
        return ModelFile(problems=error.diagnostics)


_LOOKS = {"onnxruntime": _model_file, "python": _text_file, "vllm": _text_file}
"""How a backend's model file is looked at."""
