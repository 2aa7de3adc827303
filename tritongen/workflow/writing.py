"""A rendering → what it says, on disk: all of it or, where anything is in the way, nothing."""

from __future__ import annotations

import dataclasses
import shlex
from dataclasses import dataclass

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.errors import RepositoryError
from tritongen.repository import Applied, FilePlan, Progress, StagedFiles, apply_plan, conflicts, file_conflicts, held_files, plan_again, staged_files
from tritongen.workflow.deploying import left_alone
from tritongen.workflow.rendering import Rendering
from tritongen.workflow.rights import first_unreadable


@dataclass(frozen=True)
class Written:
    """What was done with a rendering.

    Attributes:
        repository: what the disk needed of the model repository.
        deployment: what it needed of the deployment; None where none was asked for, or it stays as it is.
        left: what stays as it is, and why.
        notes: what a user should know about the way in which all of it was written.
    """

    repository: Applied
    deployment: FilePlan | None = None
    left: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


def apply_rendering(rendering: Rendering, *, skip_conflicts: bool = False, progress: Progress | None = None) -> Written:
    """Write all that a rendering would change.

    With `skip_conflicts`, models whose folders hold somebody's work stay as they are; a deployment does where one of these is a model, or a file of its own.
    `progress` is that of `apply_plan`. Raises RepositoryError: with nothing written, where anything would destroy somebody's work; and where the disk refuses.
    """
    if not skip_conflicts and (found := [*conflicts(rendering.plan), *deployment_conflicts(rendering)]):
        raise RepositoryError(found)
    if rendering.deployment is None:
        applied = apply_plan(rendering.plan, skip_conflicts=skip_conflicts, progress=progress)
        return Written(applied, left=tuple(conflicts(applied.plan)), notes=applied.notes)
    with held_files(rendering.deployment) as held:
        in_the_way = file_conflicts(held.plan)
        if in_the_way and not skip_conflicts:
            raise RepositoryError(in_the_way)
        # Held together: of two renders at once, one has the last word on the repository and the deployment. So both are looked at anew.
        plan = plan_again(rendering.plan)
        if in_the_way:
            applied = apply_plan(plan, skip_conflicts=skip_conflicts, progress=progress)
            return Written(applied, left=(*conflicts(applied.plan), *in_the_way), notes=(*held.notes, *applied.notes))
        # A folder that takes no deployment is found before the repository is written.
        with staged_files(held.plan) as deployment:
            applied = apply_plan(plan, skip_conflicts=skip_conflicts, progress=progress)
            notes = (*held.notes, *applied.notes)
            if stay := [change.name for change in applied.plan.conflicts]:
                return Written(applied, left=(*conflicts(applied.plan), left_alone(held.plan.root, stay)), notes=notes)
            _place(deployment, applied)
        return Written(applied, held.plan, tuple(conflicts(applied.plan)), notes)


def _place(deployment: StagedFiles, applied: Applied) -> None:
    """Put a deployment in place; where that fails, what was done before is said with it."""
    try:
        deployment.place()
    except RepositoryError as error:
        if not (done := [*applied.written, *applied.pruned]):
            raise
        before = f"the model repository was written before ({', '.join(done)})"
        raise RepositoryError([dataclasses.replace(each, consequence=f"{each.consequence}; {before}") for each in error.diagnostics]) from error


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
