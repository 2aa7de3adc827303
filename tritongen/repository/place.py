"""Where a repository is: its folder without links on the way, and the folder beside it for what Triton must not see."""

from __future__ import annotations

import os
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.private import private_name

ELSEWHERE = "choose another place with `tritongen render -o`"
"""What helps where a place cannot be used, in the words of hints: also of those of verbs that have no such option."""


def repository_root(path: Path) -> Path:
    """The folder that a path means, which need not exist: what is staged must lie beside the folder itself, on its filesystem, and not beside a link to it.

    Raises RepositoryError (TG041) for a loop of links, and for the root of the filesystem, beside which nothing can lie.
    """
    problem, hint = f"the links at {path} form a loop", f"remove one of the links, or {ELSEWHERE}"
    try:
        root = path.resolve()
        loops = os.path.islink(root)  # noqa: PTH114 - also of a name that is too long; from Python 3.13 on, a loop is resolved to itself
    except RuntimeError:
        root, loops = path, True
    if not loops and root.name:
        return root
    if not loops:
        problem = "the root of the filesystem cannot be the model repository: plans' sources lie beside it"
        hint = "choose a folder in it with `tritongen render -o`"
    raise RepositoryError([Diagnostic("TG041", problem, Location(str(path)), "Triton would take every folder in it for a model" if not loops else "", hint)])


def root_to_write(path: Path) -> Path:
    """`repository_root` for whoever writes there. Raises RepositoryError (TG041) also for a name that leaves no room for those of what lies beside it."""
    root = repository_root(path)
    place = next(folder for folder in root.parents if os.path.isdir(folder))  # noqa: PTH112 - which says no where nothing can be seen
    size, most = len(os.fsencode(root.name)), os.pathconf(place, "PC_NAME_MAX")
    beside = len(os.fsencode(private_name(root.name))) - size
    if size + beside > most:
        message = f"the model repository's name has {size} bytes, and that of the folder beside it, in which models are staged, needs {beside} more"
        limit, hint = f"names have at most {most} bytes here", f"choose a name of at most {most - beside} bytes with `tritongen render -o`"
        raise RepositoryError([Diagnostic("TG041", message, Location(str(path)), limit, hint)])
    return root


def artifacts_beside(root: Path) -> Path:
    """Where the files lie that belong to the repository at `root` (see `repository_root`) and that Triton must not see; a folder for each model."""
    return root.with_name(f"{root.name}.artifacts")


def is_link_of_another(path: Path, root: Path) -> bool:
    """Whether something beside the repository at `root` is a link that neither this user nor the repository's owner made, nor root: it may lead anywhere.

    Raises OSError.
    """
    return path.is_symlink() and path.lstat().st_uid not in {0, os.geteuid(), *([root.stat().st_uid] if root.exists() else [])}
