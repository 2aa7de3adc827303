"""A spec → the plan for the files of its deployment; and the same spec for a server without a GPU."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from tritongen import __version__
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.render.containers import grafana_user
from tritongen.render.cpu import for_cpu
from tritongen.render.deploy import DOCKERFILE, LEAD, MONITORING, Places, deployment, judge_deployment
from tritongen.render.serving import builds_plans, has_metrics
from tritongen.repository import Action, FilePlan, Plan, WantedFiles, artifacts_beside, plan_files
from tritongen.spec import LoadedSpec
from tritongen.spec.models import Source
from tritongen.spec.paths import resolve_source
from tritongen.workflow.rights import may_read

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

    Attributes:
        folder: where they lie.

    Raises SpecError (TG016) where a path's `~user` names no user.
    """

    def __init__(self, loaded: LoadedSpec, output: Path | None, *, cpu: bool) -> None:
        self._loaded = loaded
        self.folder = _resolved(loaded, "folder")
        repository, on_cpu = ((repository_of(loaded, cpu=device), loaded.spec.repository) for device in (False, True))
        if output is not None:
            given = (Path(os.path.normpath(output.absolute())), str(output))
            repository, on_cpu = (repository, given) if cpu else (given, on_cpu)
        self._repositories = (repository[0], on_cpu[0])
        password = loaded.spec.deploy.monitoring.admin_password
        self._places = Places(
            os.path.relpath(os.path.normpath(loaded.path.absolute()), self.folder),
            self._stated(*repository),
            self._stated(*_artifacts(*repository)),
            self._stated(*on_cpu),
            None if password is None else self._stated(_resolved(loaded, "monitoring", "admin_password"), password),
        )

    def findings(self) -> list[Diagnostic]:
        """What is in the way of a deployment."""
        return [*judge_deployment(self._loaded, self._places).found, *self._inside(), *self._not_its_owner(), *self._password()]

    def plan(self, *, force: bool, prune: bool = False) -> FilePlan:
        """What would be written. Raises RepositoryError where a file cannot be read."""
        text = deployment(self._loaded, self._places, tritongen_version=__version__)
        return plan_files(self.folder, WantedFiles(LEAD, text.header, text.body, text.others, self._places.spec), force=force, prune=prune)

    def forgotten(self, plan: Plan) -> list[Diagnostic]:
        """What is said of models that stay in the repository though the spec names them no more: nobody knows what they need."""
        names = [change.name for change in plan.with_action(Action.ORPHAN)]
        server = self._loaded.spec.server
        loads_all = server.model_control != "explicit" or "*" in server.load_models
        if not names or plan.prune or not loads_all:
            return []
        are, them = ("is", "it") if len(names) == 1 else ("are", "them")
        return [
            Diagnostic(
                "TG441",
                f"{_models(names)} {are} still in the repository, and the deployment is made from a spec that has {them} no more",
                Location(str(plan.root)),
                "Triton loads all that is there: without the GPUs, plans and caches that only a spec asks for, and ends where a model does not load",
                "remove what is not wanted with --prune, or name it in the spec",
                severity=Severity.WARNING,
            )
        ]

    def _inside(self) -> Iterator[Diagnostic]:
        """Files of the deployment that would lie where only models may, or what belongs to them."""
        taken = [folder for root in self._repositories for folder in (root, _artifacts(root, "")[0])]
        for path in (LEAD, DOCKERFILE, MONITORING):
            target = (self.folder / path).resolve()
            holder = next((folder for folder in taken if target.is_relative_to(folder.resolve())), None)
            if holder is not None:
                yield Diagnostic(
                    "TG435",
                    f"the deployment's {path} would lie in {holder}, which holds models or what they are made from",
                    self._loaded.locate(("deploy", "folder")),
                    "Triton takes every folder in a repository for a model",
                    "change deploy.folder, or repository",
                )
                return

    def _not_its_owner(self) -> Iterator[Diagnostic]:
        """A builder of plans that may not write where this user's folders are."""
        deploy = self._loaded.spec.deploy
        wanted = int(deploy.user.partition(":")[0])
        if wanted in (0, os.geteuid()) or not builds_plans(self._loaded.spec):
            return
        shown = " and ".join(shlex.quote(str(path)) for path in (self._repositories[0], _artifacts(self._repositories[0], "")[0]))
        yield Diagnostic(
            "TG442",
            f"plan-builder runs as user {wanted} (deploy.user), and the folders that it writes plans to belong to the user who renders, {os.geteuid()}",
            self._loaded.locate(("deploy", "user")),
            "it can write no plan, and the server, which waits for it, does not start",
            f"write deploy: {{user: {_stated_user()}}}, render as user {wanted}, or give that user {shown} after each render (chown -R {wanted})",
            severity=Severity.WARNING,
        )

    def _password(self) -> Iterator[Diagnostic]:
        """A file with Grafana's password that is not there, is none, is empty, or is not for Grafana's eyes."""
        if self._places.password_file is None or not has_metrics(self._loaded.spec):
            return
        path = _resolved(self._loaded, "monitoring", "admin_password")
        if path.is_file():
            yield from self._password_in(path)
            return
        # An older container engine made a folder of it.
        room = f"rmdir {shlex.quote(str(path))}" if path.is_dir() else f"mkdir -p {shlex.quote(str(path.parent))}"
        yield Diagnostic(
            "TG448",
            f"the file with Grafana's password, {path}, {'is no file' if path.exists() else 'is not there'}",
            self._loaded.locate(("deploy", "monitoring", "admin_password")),
            "the container engine does not start Grafana, or gives it a folder in place of the password",
            f"write the password into it: (umask 077 && {room} && printf %s PASSWORD > {shlex.quote(str(path))}), as the user that deploy.user names",
            severity=Severity.WARNING,
        )

    def _password_in(self, path: Path) -> Iterator[Diagnostic]:
        where = self._loaded.locate(("deploy", "monitoring", "admin_password"))
        user = grafana_user(self._loaded.spec)
        if not may_read(path.stat(), user):
            yield Diagnostic(
                "TG448",
                f"Grafana runs as user {user}, who may not read the file with its password, {path}",
                where,
                "Grafana does not start",
                f"give it to that user (chown {user.partition(':')[0]}), or write your own number into deploy.user",
                severity=Severity.WARNING,
            )
        if os.access(path, os.R_OK) and not path.read_bytes().strip():
            yield Diagnostic(
                "TG448",
                f"the file with Grafana's password, {path}, is empty",
                where,
                "Grafana would take the password that everybody knows, or not start",
                f"write the password into it: printf %s PASSWORD > {shlex.quote(str(path))}; or remove admin_password",
            )

    def _stated(self, path: Path, written: str) -> str:
        """A path as a compose file has it: as it was written where that is absolute, else relative to the deployment's folder."""
        if PurePosixPath(written).is_absolute() or written.startswith("~"):
            return str(path)
        relative = os.path.relpath(path, self.folder)
        return relative if relative == ".." or relative.startswith("../") else f"./{relative}"


def left_alone(folder: Path, stay: Collection[str]) -> Diagnostic:
    """What is said where models stay as they are, and so a deployment in `folder` does too: it would be one for the other models alone."""
    return Diagnostic(
        "TG441",
        f"the deployment was left as it is, since something is wrong with {_models(stay)}",
        Location(str(folder / LEAD)),
        "written anew, it would no longer give what these models need to the server that still has them",
        "mend what is wrong with them, and render again",
        severity=Severity.WARNING,
    )


def _models(names: Collection[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"model {listed}" if len(names) == 1 else f"models {listed}"


def _stated_user() -> str:
    """The user of this process as `deploy.user` has it."""
    return json.dumps(f"{os.geteuid()}:{os.getegid()}")


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
