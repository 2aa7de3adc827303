"""Questions about a model's folder that several rules ask: what lies where, what looks like what, and whether a thing that is not listed is really absent."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from tritongen.diagnostics import Location
from tritongen.repository.scan import CONFIG_NAME, ModelFolder
from tritongen.rules.context import ModelContext
from tritongen.rules.resolve import KNOWN_BACKENDS

MODEL_SUFFIXES = {".onnx": "onnxruntime", ".plan": "tensorrt", ".engine": "tensorrt", ".trt": "tensorrt", ".pt": "pytorch", ".pth": "pytorch"}
"""File name endings of model files, and the backend that takes them. `.py` and `.xml` are left out: a model's folder may hold such files for other reasons."""

_MODEL_NAMES = frozenset(backend.filename for backend in KNOWN_BACKENDS)
_LIKE_A_VERSION = re.compile(r"(v|ver|version|r|rev|release)?[-_. ]?\d+([-_. ]\d+)*", re.IGNORECASE)
_LIKE_A_CONFIG = re.compile(r"config\.(pbtxt|pbtext|pbtx|ptxt|pb\.txt|prototxt|txt|pb)(\.\w+)?", re.IGNORECASE)


def backend_of_file(name: str) -> str:
    """The backend that takes files with this name's ending; empty where none is known."""
    return MODEL_SUFFIXES.get(posixpath.splitext(name)[1].lower(), "")


def is_model_file(name: str) -> bool:
    """Whether a file's name is one that a backend looks for, or has the ending of a model file."""
    return name in _MODEL_NAMES or bool(backend_of_file(name))


def model_files(folder: ModelFolder, subfolder: str = "") -> list[str]:
    """Names of the model files directly in a model's folder, or in one of its sub-folders."""
    names = folder.files_in(subfolder) if subfolder else sorted(name for name in folder.entries if "/" not in name)
    prefix = f"{subfolder}/" if subfolder else ""
    return [name for name in names if is_model_file(name) and folder.entries[prefix + name].kind == "file"]


def named_like_a_version(name: str) -> bool:
    """Whether a sub-folder's name was meant as a version's: v1, 01, release-2."""
    return bool(_LIKE_A_VERSION.fullmatch(name))


def looks_like_a_version(folder: ModelFolder, name: str) -> bool:
    """Whether somebody meant a sub-folder to be a version: by its name, or by the model file in it."""
    return named_like_a_version(name) or (not name.startswith(".") and bool(model_files(folder, name)))


def misplaced_configs(folder: ModelFolder) -> list[str]:
    """Paths of files that were meant as config.pbtxt, but have another name or lie in a version's folder."""
    files = [name for name, facts in folder.entries.items() if facts.kind == "file"]
    beside = [name for name in files if "/" not in name and name != CONFIG_NAME and _LIKE_A_CONFIG.fullmatch(name)]
    inside = [name for name in files if name.count("/") == 1 and name.endswith(f"/{CONFIG_NAME}") and looks_like_a_version(folder, name.partition("/")[0])]
    return sorted(beside) + sorted(inside)


def fully_seen(folder: ModelFolder) -> bool:
    """Whether what is not listed is absent: no link leads out on the upper two levels, every folder there could be read, and nothing was cut off."""
    return not (folder.truncated or folder.link or folder.locked is not None) and all(
        facts.kind != "link" and (facts.kind != "folder" or facts.readable) for path, facts in folder.entries.items() if path.count("/") < 2
    )


def is_foreign(context: ModelContext) -> bool:
    """Whether a folder in a repository is no model at all: no config, no version, no model file. Triton takes it for one all the same."""
    folder = context.folder
    if folder is None or context.has_config or folder.config_problem or not fully_seen(folder):
        return False
    if context.versions.available or misplaced_configs(folder) or model_files(folder) or any("/" not in name and name == "configs" for name in folder.entries):
        return False
    return not any(looks_like_a_version(folder, name) for name in context.versions.ignored)


def nested_models(folder: ModelFolder) -> list[str]:
    """Sub-folders that are models themselves, as they have a config.pbtxt of their own."""
    return [name for name in folder.subfolders if f"{name}/{CONFIG_NAME}" in folder.entries and not named_like_a_version(name)]


def place(context: ModelContext, path: str = "") -> Location:
    """The location of a file or folder in a model's folder."""
    assert context.folder is not None
    return Location(str(context.folder.path / path) if path else str(context.folder.path))


def loaded_folders(context: ModelContext) -> Iterator[str]:
    """Names of the version folders that Triton opens; a version that stands for no folder of exactly that name is left out."""
    assert context.folder is not None
    for number in sorted(context.versions.loaded):
        if str(number) in context.folder.subfolders:
            yield str(number)
