"""What a path on the command line is: a model repository, one model's folder, or a lone config.pbtxt."""

from __future__ import annotations

import enum
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError, RepositoryError
from tritongen.repository.scan import CONFIG_NAME

DEFAULT_REPOSITORY = Path("model_repository")

_MODEL_FILES = frozenset({"model.onnx", "model.plan", "model.pt", "model.py", "model.xml", "model.savedmodel", "model.graphdef", CONFIG_NAME})
_EXAMPLE = "give the folder that holds one sub-folder for each model"


class TargetKind(enum.Enum):
    """How much a path holds."""

    REPOSITORY = "repository"
    MODEL = "model"
    CONFIG = "config"


@dataclass(frozen=True)
class Target:
    """A path and what it is."""

    kind: TargetKind
    path: Path


def find_targets(paths: Sequence[Path]) -> tuple[Target, ...]:
    """What each path is; no path means the folder `model_repository` here, or else the current folder.

    Raises InputError (TG070) with every path that cannot be checked, or that holds nothing to check.
    """
    if not paths:
        return (_default_target(),)
    targets: list[Target] = []
    problems: list[Diagnostic] = []
    for path in _distinct(paths):
        try:
            targets.append(_target(path))
        except RepositoryError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(problems)
    return tuple(targets)


def _distinct(paths: Sequence[Path]) -> list[Path]:
    """The paths without those that lead to the same place as an earlier one: a repository that is given twice is one repository."""
    return list({os.path.realpath(path) if "\0" not in str(path) else str(path): path for path in reversed(paths)}.values())[::-1]


def _default_target() -> Target:
    if DEFAULT_REPOSITORY.is_dir():
        _demand_folders(DEFAULT_REPOSITORY)
        return Target(TargetKind.REPOSITORY, DEFAULT_REPOSITORY)
    here = Path()
    kind = _kind_of_folder(here)
    if kind is TargetKind.REPOSITORY and not any(_looks_like_model(name) for name in _folders(here)):
        raise _problem(here.absolute(), "there is no model repository here: no folder `model_repository`, and no folder that holds a model", _EXAMPLE)
    return Target(kind, here)


def _target(path: Path) -> Target:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _folder_target(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _problem(path, "there is no such file or folder", f"check the path; relative ones start at the current folder; {_EXAMPLE}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _problem(path, f"it cannot be looked at: {reason}", "check the path and its permissions") from error
    if not stat.S_ISREG(mode):
        raise _problem(path, "this is a pipe or a device, and a folder or a config.pbtxt is expected", _EXAMPLE)
    if path.suffix != ".pbtxt":
        raise _problem(path, "this file is no config.pbtxt", _hint_for_file(path))
    return Target(TargetKind.CONFIG, path)


def _folder_target(path: Path) -> Target:
    """A repository or a model. A version's folder is neither: as a repository it would be an empty one, and found in order whatever is in it."""
    kind = _kind_of_folder(path)
    name = path.resolve().name
    model = path.parent if path.name not in ("", "..") else path / ".."
    if kind is TargetKind.REPOSITORY and name.isdecimal() and not _folders(path) and os.path.lexists(path.resolve().parent / CONFIG_NAME):
        raise _problem(path, "this is a version of a model, and a model or a repository is expected", f"give the model's folder: {model}")
    if kind is TargetKind.REPOSITORY:
        _demand_folders(path)
    return Target(kind, path)


def _demand_folders(repository: Path) -> None:
    """Raises RepositoryError for a repository with nothing in it that Triton would take for a model: a run that looks at nothing finds everything in order."""
    try:
        with os.scandir(repository) as entries:
            holds_models = any(_is_folder(entry) or (entry.is_symlink() and not Path(entry.path).is_file()) for entry in entries)
    except OSError as error:
        raise _unlisted(repository, error) from error
    if not holds_models:
        message = "the folder holds no model: it has no sub-folder, and Triton would start and serve nothing"
        raise _problem(repository, message, _EXAMPLE)


def _hint_for_file(path: Path) -> str:
    if path.suffix in (".yaml", ".yml"):
        return f"a spec is checked by `tritongen render --dry-run {path}`; check looks at the repository that it writes"
    return f"{_EXAMPLE}, or a model's folder, or a file config.pbtxt"


def _kind_of_folder(path: Path) -> TargetKind:
    """A model's folder holds a config.pbtxt or a version; a repository holds folders that do.

    A stray config.pbtxt beside models makes no model of a repository.
    """
    try:
        folders = _folders(path)
    except OSError as error:
        raise _unlisted(path, error) from error
    holds_models = any(os.path.lexists(folder / CONFIG_NAME) for folder in folders if not folder.name.isdecimal())
    if holds_models:
        return TargetKind.REPOSITORY
    versions = [folder for folder in folders if folder.name.isdecimal() and not os.path.lexists(folder / CONFIG_NAME) and not _holds_version(folder)]
    return TargetKind.MODEL if versions or os.path.lexists(path / CONFIG_NAME) else TargetKind.REPOSITORY


def _holds_version(folder: Path) -> bool:
    return any(name.isdecimal() for name in _names(folder))


def _looks_like_model(folder: Path) -> bool:
    names = _names(folder)
    return any(name.isdecimal() or name in _MODEL_FILES for name in names)


def _folders(path: Path) -> list[Path]:
    with os.scandir(path) as entries:
        return [path / entry.name for entry in entries if _is_folder(entry)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def _names(folder: Path) -> list[str]:
    """What lies in a folder; nothing where it cannot be listed."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - names only
    except OSError:
        return []


def _unlisted(path: Path, error: OSError) -> RepositoryError:
    return _problem(path, f"the folder cannot be listed: {error.strerror}", "give its user the rights to read and enter it (chmod u+rx)")


def _problem(path: Path, message: str, hint: str) -> RepositoryError:
    return RepositoryError([Diagnostic("TG070", message, Location(str(path)), hint=hint)])
