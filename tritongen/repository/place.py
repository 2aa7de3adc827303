"""Where a repository is: its folder without links on the way, and the folder beside it for what Triton must not see."""

from __future__ import annotations

import os
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError


def repository_root(path: Path) -> Path:
    """The folder that a path means, which need not exist: what is staged must lie beside the folder itself, on its filesystem, and not beside a link to it.

    Raises RepositoryError (TG041) for a loop of links, and for the root of the filesystem, beside which nothing can lie.
    """
    problem, hint = f"the links at {path} form a loop", "remove one of the links, or choose another place with -o"
    try:
        root = path.resolve()
        loops = root.is_symlink()  # from Python 3.13 on, a loop is resolved to itself
    except RuntimeError:
        root, loops = path, True
    if not loops and root.name:
        return root
    if not loops:
        problem, hint = "the root of the filesystem cannot be the model repository: plans' sources lie beside it", "choose a folder in it with -o"
    raise RepositoryError([Diagnostic("TG041", problem, Location(str(path)), "Triton would take every folder in it for a model" if not loops else "", hint)])


def artifacts_beside(root: Path) -> Path:
    """Where the files lie that belong to the repository at `root` (see `repository_root`) and that Triton must not see; a folder for each model."""
    return root.with_name(f"{root.name}.artifacts")


def is_link_of_another(path: Path, root: Path) -> bool:
    """Whether something beside the repository at `root` is a link that neither this user nor the repository's owner made, nor root: it may lead anywhere.

    Raises OSError.
    """
    return path.is_symlink() and path.lstat().st_uid not in {0, os.geteuid(), *([root.stat().st_uid] if root.exists() else [])}
