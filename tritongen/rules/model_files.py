"""Rules: the model file of each version that Triton would load."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from tritongen.repository.stamp import read_stamp
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import backend_of_file, fully_seen, loaded_folders, place
from tritongen.rules.rule import Consequence, Finding, Rule

_NVIDIAS = frozenset({"onnxruntime", "tensorrt", "openvino", "pytorch", "python"})
"""Backends that open a file of a known name in the version's folder."""

_FOLDERS = frozenset({"onnxruntime"})
"""Backends whose model file may be a folder, which then holds a file of the default name."""

_BY_GPU = frozenset({"onnxruntime", "tensorrt"})
"""Backends that look up the name of the file by the GPU's compute capability."""


def _is_judged(context: ModelContext) -> bool:
    """Whether it is known which file the backend opens."""
    config, folder = context.config, context.folder
    if folder is None or not fully_seen(folder) or folder.config_problem or context.is_ensemble:
        return False
    if context.resolved.backend not in _NVIDIAS or context.resolved.platform == "torch_aoti":
        return False
    # Other names by GPU, several files for several GPUs, another library that reads the model: what is opened then is not ours to say.
    return not (config.cc_model_filenames or config.runtime or "enable_multi_device" in config.parameters)


def _absent(context: ModelContext) -> Iterator[tuple[str, str, list[str]]]:
    """Version folder, expected path in the model's folder, and files of the same kind beside it, for each version whose model file is not there."""
    if not _is_judged(context) or _bad_module(context):
        return
    folder, filename = context.folder, context.resolved.filename
    assert folder is not None
    stamp = read_stamp(context.text.decode(errors="replace"))
    kept = {str(path) for path in stamp.kept} if stamp else set()
    for version in loaded_folders(context):
        path = posixpath.normpath(f"{version}/{filename}")
        facts = folder.entries.get(path)
        if path in kept or path.startswith("../") or (facts is not None and facts.kind not in ("folder", "nowhere")):
            continue
        if facts is not None and facts.kind == "folder" and context.resolved.backend != "python":
            inner = f"{path}/model.onnx"
            if context.resolved.backend not in _FOLDERS or inner in folder.entries:
                continue
            path = inner
        yield version, path, _alike(context, version, filename)


def _alike(context: ModelContext, version: str, filename: str) -> list[str]:
    """Files in a version's folder that this backend could have been meant to open."""
    assert context.folder is not None
    backend, ending = context.resolved.backend, posixpath.splitext(filename)[1].lower()
    names = [name for name in context.folder.files_in(version) if context.folder.entries[f"{version}/{name}"].kind == "file"]
    return [name for name in names if backend_of_file(name) == backend or (ending and posixpath.splitext(name)[1].lower() == ending)]


def _missing(context: ModelContext) -> Iterator[Finding]:
    for version, path, alike in _absent(context):
        if len(alike) == 1:
            continue
        folder, name = context.folder, posixpath.basename(path)
        assert folder is not None
        if path in folder.entries:
            kind = "folder" if folder.entries[path].kind == "folder" else "link that leads nowhere"
            found, hint = f"; it is a {kind}", f"put the file itself at {folder.at(path)}"
        elif alike:
            found, hint = f"; it holds {', '.join(alike)}", f'write `default_model_filename: "{alike[0]}"` with the name of the one to serve'
        elif name in folder.entries and folder.entries[name].kind == "file":
            found, hint = f"; {name} lies beside it, in the model's folder", f"mv {folder.at(name)} {folder.at(version)}"
        else:
            held = [entry for entry in folder.files_in(version) if not entry.startswith(".")]
            found = f"; it holds {', '.join(held[:4])}{', ...' if len(held) > 4 else ''}" if held else "; it is empty"
            hint = f"put the model file at {folder.at(path)}"
        if context.resolved.backend == "python" and not (path in folder.entries and folder.entries[path].kind == "folder"):
            found += "; the python backend waits for it without an end (seen with release 24.10), so that the server never gets ready"
        yield Finding(f"version {version} has no {posixpath.relpath(path, version)}{found}", hint=hint, location=place(context, version))


def _bad_module(context: ModelContext) -> str:
    """What is wrong with the file name of a Python model, which the backend imports by its name without the ending; empty where nothing is."""
    name = posixpath.basename(context.resolved.filename)
    if context.resolved.backend != "python":
        return ""
    if not name.endswith(".py"):
        return "does not end with .py"
    return "has a dot before its ending, so that Python looks for a package" if "." in name.removesuffix(".py") else ""


def _bad_module_name(context: ModelContext) -> Iterator[Finding]:
    reason = _bad_module(context) if _is_judged(context) else ""
    if not reason:
        return
    name = posixpath.basename(context.resolved.filename)
    stem = name.removesuffix(".py") if name.endswith(".py") else posixpath.splitext(name)[0]
    better = posixpath.join(posixpath.dirname(context.resolved.filename), re.sub(r"\W+", "_", stem) + ".py")
    message = f"the python backend cannot import '{name}': the name {reason}"
    if context.config.default_model_filename:
        yield Finding(message, ("default_model_filename",), f'call the file {better}, and write `default_model_filename: "{better}"`')
    else:
        hint = 'write `backend: "python"`, and call the file model.py; without a backend the name follows from that of the folder'
        yield Finding(message, (), hint, None if context.has_config else place(context))


def _misnamed(context: ModelContext) -> Iterator[Finding]:
    yield from _bad_module_name(context)
    for version, path, alike in _absent(context):
        if len(alike) != 1:
            continue
        message = f"version {version} has no {posixpath.relpath(path, version)}, which the {context.resolved.backend} backend opens; it has {alike[0]}"
        assert context.folder is not None
        hint = f"mv {context.folder.at(f'{version}/{alike[0]}')} {context.folder.at(path)}"
        if context.has_config and (context.config.backend or context.config.platform):
            hint = f'write `default_model_filename: "{alike[0]}"`, or {hint}'
        key = ("default_model_filename",) if context.config.default_model_filename else ()
        yield Finding(message, key, hint, None if key and context.has_config else place(context, f"{version}/{alike[0]}"))


def _absent_by_gpu(context: ModelContext) -> Iterator[Finding]:
    config, folder = context.config, context.folder
    if folder is None or not fully_seen(folder) or folder.config_problem or context.is_ensemble or context.resolved.backend not in _BY_GPU:
        return
    stamp = read_stamp(context.text.decode(errors="replace"))
    kept = {str(path) for path in stamp.kept} if stamp else set()
    for capability, name in sorted(config.cc_model_filenames.items()):
        paths = {version: posixpath.normpath(f"{version}/{name}") for version in loaded_folders(context)}
        lacking = [version for version, path in paths.items() if path not in folder.entries and path not in kept]
        if lacking:
            message = f"GPUs of compute capability {capability} load {name}, and version{'s' * (len(lacking) > 1)} {', '.join(lacking)} has no such file"
            hint = f"put the file at {folder.at(f'{lacking[0]}/{name}')}, or remove the entry"
            yield Finding(message, ("cc_model_filenames", capability), hint)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG225",
        "missing-model-file",
        Consequence.REFUSED,
        "Every version that Triton loads has its model file.",
        "NVIDIA's backends open <version>/<default_model_filename>, by default model.onnx, model.plan, model.pt, model.xml or model.py, in each "
        "loaded version, and one version that "
        "fails fails the model: 'failed to stat file' (onnxruntime_backend, LoadModel). The python backend of 24.10 logs 'Python model file not found' and "
        "waits for a process that has ended: the load never comes to an end (python_backend, pb_stub.cc). Backends that are not NVIDIA's are left alone.",
        'backend: "onnxruntime"  # and 1/ is empty',
        'backend: "onnxruntime"  # with 1/model.onnx',
        check=_missing,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG226",
        "misnamed-model-file",
        Consequence.REFUSED,
        "The model file has the name that the backend opens.",
        "The backend opens <version>/<default_model_filename>, or its own default name, and fails with 'failed to stat file' where the only model "
        "file is named otherwise "
        "(onnxruntime_backend, LoadModel; triton-inference-server/server 3687). The python backend imports the file by its name: it ends with .py and has no "
        "other dot (\"Model name must end with '.py'\", 'ModuleNotFoundError'; tried on 24.10).",
        'backend: "onnxruntime"  # with 1/best.onnx',
        'backend: "onnxruntime"\ndefault_model_filename: "best.onnx"  # with 1/best.onnx',
        check=_misnamed,
        needs=frozenset({"folder"}),
    ),
    Rule(
        "TG234",
        "missing-model-file-of-a-gpu",
        Consequence.MISBEHAVES,
        "Every file in cc_model_filenames is there.",
        "On a GPU of the compute capability that is the key, the backend opens that file in place of the default one, and fails with 'failed to stat file' "
        "where it is not there (onnxruntime_backend and tensorrt_backend, model_state.cc). On other GPUs nobody notices.",
        'backend: "onnxruntime"\ncc_model_filenames { key: "8.6" value: "small.onnx" }  # with 1/model.onnx alone',
        'backend: "onnxruntime"\ncc_model_filenames { key: "8.6" value: "small.onnx" }  # with 1/small.onnx, too',
        check=_absent_by_gpu,
        needs=frozenset({"folder", "config"}),
    ),
)
