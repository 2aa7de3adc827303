"""What Triton makes of a config before it asks a backend: backend, platform, file name, versions.

Sources: `AutoCompleteBackendFields` and `GetBackendType*` in core/src/model_config_utils.cc, `VersionsToLoad` in core/src/model_lifecycle.cc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tritongen.repository.scan import ModelFolder

SKIPPED_FOLDERS = frozenset({"warmup", "initial_state", "configs"})
"""Sub-folders of a model that Triton never takes for versions."""

_LEADING_INT = re.compile(r"\s*[+-]?\d+")
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class KnownBackend:
    """A backend that core itself recognises from a platform, a file name, or the files of a model."""

    name: str
    platforms: tuple[str, ...]
    filename: str
    may_be_folder: bool = False


KNOWN_BACKENDS = (
    KnownBackend("tensorflow", ("tensorflow_savedmodel", "tensorflow_graphdef"), "model.savedmodel", may_be_folder=True),
    KnownBackend("tensorrt", ("tensorrt_plan",), "model.plan"),
    KnownBackend("onnxruntime", ("onnxruntime_onnx",), "model.onnx", may_be_folder=True),
    KnownBackend("openvino", (), "model.xml"),
    KnownBackend("pytorch", ("pytorch_libtorch", "torch_aoti"), "model.pt"),
    KnownBackend("python", (), "model.py"),
)
"""In the order in which core tries them where the config names no backend."""


@dataclass(frozen=True)
class Resolved:
    """Backend, platform and file name as Triton completes them; empty text for what stays unknown."""

    backend: str
    platform: str
    filename: str


@dataclass(frozen=True)
class VersionChoice:
    """What comes of a model's sub-folders.

    Attributes:
        loaded: version number → name of its folder, for those that the policy picks. Where a name only starts with a number, Triton looks for the number's own
            folder.
        ignored: folder name → why Triton takes it for no version.
        available: every number that a folder stands for.
        folders: the folder that stands for each of them.
    """

    loaded: dict[int, str]
    ignored: dict[str, str]
    available: tuple[int, ...]
    folders: dict[int, str]


def resolve_backend(config: Any, name: str, folder: ModelFolder | None) -> Resolved:
    """Complete backend, platform and file name as core does, from the config and the first sub-folder of the model."""
    backend, platform, filename = config.backend, config.platform, config.default_model_filename
    if platform == "ensemble" or config.HasField("ensemble_scheduling"):
        return Resolved(backend, platform, filename)
    if not backend:
        backend = _detect(platform, filename, folder)
    known = next((candidate for candidate in KNOWN_BACKENDS if candidate.name == backend), None)
    if known is not None:
        platform = platform or (known.platforms[0] if known.platforms else "")
        filename = filename or known.filename
    elif not backend and not platform and not filename and "." in name:
        backend = name.rsplit(".", 1)[1]
        filename = f"model.{backend}"
    return Resolved(backend, platform, filename)


def _detect(platform: str, filename: str, folder: ModelFolder | None) -> str:
    for candidate in KNOWN_BACKENDS:
        if platform in candidate.platforms or filename == candidate.filename:
            return candidate.name
    if platform or filename or folder is None or not folder.subfolders:
        return ""
    # Core looks into the first sub-folder only, in the order of a plain sort: hidden folders and `10` come before `2`.
    first = folder.subfolders[0]
    present = folder.files_in(first)
    for candidate in KNOWN_BACKENDS:
        facts = folder.entries.get(f"{first}/{candidate.filename}")
        if candidate.filename in present and facts is not None and (facts.kind == "file" or candidate.may_be_folder):
            return candidate.name
    return ""


def choose_versions(config: Any, folder: ModelFolder | None) -> VersionChoice:
    """The versions that Triton would load from a model's folder, and why it leaves others out."""
    ignored: dict[str, str] = {}
    numbers: dict[int, str] = {}
    for name in folder.subfolders if folder is not None else ():
        if name in SKIPPED_FOLDERS:
            continue
        reason = _why_ignored(name)
        if reason:
            ignored[name] = reason
        else:
            match = _LEADING_INT.match(name)
            assert match is not None
            number = int(match.group())
            if name == str(number) or number not in numbers:
                numbers[number] = name
    available = tuple(sorted(numbers))
    policy = config.version_policy.WhichOneof("policy_choice")
    if policy == "all":
        wanted = available
    elif policy == "specific":
        wanted = tuple(number for number in available if number in set(config.version_policy.specific.versions))
    else:
        count = config.version_policy.latest.num_versions if policy == "latest" else 1
        wanted = available[max(0, len(available) - count) :] if count else ()
    return VersionChoice({number: numbers[number] for number in wanted}, ignored, available, numbers)


def _why_ignored(name: str) -> str:
    if name.startswith("0") and len(name) > 1:
        return "it has leading zeros"
    match = _LEADING_INT.match(name)
    if match is None:
        return "it is no whole number"
    return "" if abs(int(match.group())) <= _INT64_MAX else "the number is larger than 64 bits hold"
