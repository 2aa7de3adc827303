"""A spec → the plan for the files of its deployment; and the same spec for a server without a GPU."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path, PurePosixPath

from tritongen import __version__
from tritongen.diagnostics import Diagnostic
from tritongen.render.cpu import for_cpu
from tritongen.render.deploy import LEAD, Places, deployment, judge_deployment
from tritongen.repository import FilePlan, artifacts_beside, plan_files
from tritongen.spec import LoadedSpec
from tritongen.spec.models import Source
from tritongen.spec.paths import resolve_source

CPU_SUFFIX = ".cpu"


def repository_of(loaded: LoadedSpec, *, cpu: bool) -> Path:
    """Where the repository is to be written: where the spec says, and beside it for the CPU. Raises SpecError (TG016) where `~user` names no user."""
    root = loaded.repository_path()
    return root.with_name(root.name + CPU_SUFFIX) if cpu else root


def for_this_device(loaded: LoadedSpec, *, cpu: bool) -> tuple[LoadedSpec, list[Diagnostic]]:
    """The spec as it is, or for a server without a GPU, and what is in the way of that."""
    if not cpu:
        return loaded, []
    spec, refused = for_cpu(loaded.spec, loaded.locate)
    return dataclasses.replace(loaded, spec=spec), refused


class Deploying:
    """The files of one spec's deployment.

    Args:
        loaded: the spec.
        output: where the repository is written that is rendered now, where that is not the one that the spec names.
        cpu: whether that is the one for the CPU.

    Raises SpecError (TG016) where a path's `~user` names no user.
    """

    def __init__(self, loaded: LoadedSpec, output: Path | None, *, cpu: bool) -> None:
        self._loaded = loaded
        self._folder = _resolved(loaded, "folder")
        repository, on_cpu = ((repository_of(loaded, cpu=device), loaded.spec.repository) for device in (False, True))
        if output is not None:
            given = (Path(os.path.normpath(output.absolute())), str(output))
            repository, on_cpu = (repository, given) if cpu else (given, on_cpu)
        password = loaded.spec.deploy.monitoring.admin_password
        self._places = Places(
            os.path.relpath(os.path.normpath(loaded.path.absolute()), self._folder),
            self._stated(*repository),
            self._stated(*_artifacts(*repository)),
            self._stated(*on_cpu),
            None if password is None else self._stated(_resolved(loaded, "monitoring", "admin_password"), password),
        )

    def findings(self) -> list[Diagnostic]:
        """What is in the way of a deployment."""
        return judge_deployment(self._loaded, self._places).found

    def plan(self, *, force: bool) -> FilePlan:
        """What would be written. Raises RepositoryError where a file cannot be read."""
        text = deployment(self._loaded, self._places, tritongen_version=__version__)
        return plan_files(self._folder, LEAD, text.header, text.body, text.others, force=force)

    def _stated(self, path: Path, written: str) -> str:
        """A path as a compose file has it: as it was written where that is absolute, else relative to the deployment's folder."""
        if PurePosixPath(written).is_absolute() or written.startswith("~"):
            return str(path)
        relative = os.path.relpath(path, self._folder)
        return relative if relative == ".." or relative.startswith("../") else f"./{relative}"


def _artifacts(repository: Path, written: str) -> tuple[Path, str]:
    """Where a repository's artifacts are, and how that is written: beside the folder itself where the repository is a link, as `make_plan` has it."""
    root = repository.resolve() if repository.is_symlink() else repository
    path = artifacts_beside(root)
    return path, str(path) if repository.is_symlink() else written


def _resolved(loaded: LoadedSpec, *key: str) -> Path:
    """A path of `deploy` on this machine."""
    value: object = loaded.spec.deploy
    for part in key:
        value = getattr(value, part)
    path = resolve_source(Source(path=str(value)), loaded.folder, location=loaded.locate(("deploy", *key)))
    return Path(os.path.normpath(path))
