"""Where the files that a spec names are: relative to the spec, or inside an installed Python package.

Findings made here: TG016 a file that is copied into the repository is missing or lies outside the spec's folder, TG017 a package that cannot be found.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import SpecError
from tritongen.spec.models import Source


def resolve_source(source: Source, folder: Path, *, location: Location | None = None, model: str = "") -> Path:
    """The path of a model's file; whether a file is there is for the reader of the file to say.

    Args:
        source: the `source` of a model.
        folder: the spec's folder, to which plain paths are relative.
        location: where the source stands in the spec, for the finding.
        model: the model's name, for the finding.

    Raises:
        SpecError: (TG017) the package is not installed or has no folder; (TG016) `~user` names no user.
    """
    found = _in_package(source.package, source.path) if source.package is not None else expand(source.path, folder)
    if isinstance(found, Path):
        return found
    code = "TG017" if source.package is not None else "TG016"
    raise SpecError([Diagnostic(code, found[0], location, hint=found[1], model=model)])


def expand(text: str, folder: Path) -> Path | tuple[str, str]:
    """A path of the spec as a path of this machine, or (message, hint) where its `~user` is unknown."""
    try:
        return folder / Path(text).expanduser()
    except RuntimeError:
        return f"the home folder in {text!r} cannot be determined", "write the path without ~"


def _in_package(package: str, inner: str) -> Path | tuple[str, str]:
    """The path of a file in an installed package, or (message, hint). Only top-level names come here: finding those imports nothing."""
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module without a spec is loaded under that name, such as __main__
        spec = None
    if spec is None:
        return f"the Python package {package!r} is not installed", f"pip install {package.replace('_', '-')}"
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    if not folders:
        return f"{package!r} is a single Python module, not a package with files", "give the package whose folder holds the model file"
    if not any(folder.is_dir() for folder in folders):
        return f"the Python package {package!r} has no folder on disk", "install it unpacked, with pip"
    candidates = [folder.joinpath(*PurePosixPath(inner).parts) for folder in folders]
    return next((path for path in candidates if path.is_file()), candidates[0])


def check_inside(text: str, folder: Path, *, may_be_folder: bool = False) -> tuple[str, str] | None:
    """What is wrong with a file that goes into the repository, as (message, hint): it must exist inside the spec's folder, links followed."""
    path = expand(text, folder)
    if not isinstance(path, Path):
        return path
    try:
        root, real = folder.resolve(), path.resolve()
        if not real.is_relative_to(root):
            through = "" if Path(text).is_absolute() or ".." in Path(text).parts else f": it leads to {real}"
            return f"the file {text!r} lies outside the spec's folder{through}", f"copy it into {folder}, so that the spec can be moved and shared as a whole"
        if not real.exists():
            return f"there is no file {text!r} in the spec's folder", "check the path; it is relative to the spec"
        if real.is_file() or (may_be_folder and real.is_dir()):
            return None
        return (f"{text!r} is neither a file nor a folder", "give the path of one") if may_be_folder else (f"{text!r} is not a file", "give the path of a file")
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError up to Python 3.12
        reason = error.strerror if isinstance(error, OSError) else "the links form a loop"
        return f"the file {text[:60]!r} cannot be looked at: {reason}", "check the path and its permissions"
