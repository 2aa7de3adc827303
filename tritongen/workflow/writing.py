"""A rendering → what it says, on disk: all of it or, where anything is in the way, nothing."""

from __future__ import annotations

import shlex

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.errors import RepositoryError
from tritongen.repository import Applied, Progress, apply_plan, conflicts, file_conflicts, staged_files
from tritongen.workflow.rendering import Rendering
from tritongen.workflow.rights import first_unreadable


def apply_rendering(rendering: Rendering, *, skip_conflicts: bool = False, progress: Progress | None = None) -> Applied:
    """Write all that a rendering would change; what the disk needed of the repository, and what a user should know about the way it was written.

    With `skip_conflicts`, models whose folders hold somebody's work stay as they are, and so does a deployment of which a file is; `progress` is that of
    `apply_plan`. Raises RepositoryError: with nothing written, where anything would destroy somebody's work; and where the disk refuses.
    """
    in_the_way = deployment_conflicts(rendering)
    if not skip_conflicts and (found := [*conflicts(rendering.plan), *in_the_way]):
        raise RepositoryError(found)
    if rendering.deployment is None or in_the_way:
        return apply_plan(rendering.plan, skip_conflicts=skip_conflicts, progress=progress)
    # A folder that takes no deployment is found before the repository is written.
    with staged_files(rendering.deployment) as deployment:
        applied = apply_plan(rendering.plan, skip_conflicts=skip_conflicts, progress=progress)
        deployment.place()
    return applied


def deployment_conflicts(rendering: Rendering) -> list[Diagnostic]:
    """A finding (TG043) for each file of the deployment that holds somebody's work."""
    return file_conflicts(rendering.deployment) if rendering.deployment is not None else []


def unreadable_repository(rendering: Rendering) -> list[Diagnostic]:
    """What is said (TG449) of a repository on the disk that the deployment's server may not read; nothing where no deployment is rendered."""
    if rendering.deployment is None:
        return []
    root, user = rendering.plan.root, rendering.loaded.spec.deploy.user
    path = first_unreadable(root, user)
    if path is None:
        return []
    return [
        Diagnostic(
            "TG449",
            f"the server runs as user {user} (deploy.user), who may not read {path}",
            rendering.loaded.locate(("deploy", "user")),
            "Triton finds no model there, or does not load it",
            f"let all read it (chmod -R a+rX {shlex.quote(str(root))}; umask 022 before the next render), or write your own number into deploy.user",
            severity=Severity.WARNING,
        )
    ]
