"""A rendering → what it says, on disk: all of it or, where anything is in the way, nothing."""

from __future__ import annotations

from tritongen.errors import RepositoryError
from tritongen.repository import apply_files, apply_plan, conflicts, file_conflicts
from tritongen.workflow.rendering import Rendering


def apply_rendering(rendering: Rendering) -> tuple[str, ...]:
    """Write all that a rendering would change, and return what a user should know about the way it was written.

    Raises RepositoryError: with nothing written, where anything would destroy somebody's work; and where the disk refuses.
    """
    files = rendering.deployment
    if found := [*conflicts(rendering.plan), *(file_conflicts(files) if files else ())]:
        raise RepositoryError(found)
    applied = apply_plan(rendering.plan)
    if files is not None:
        apply_files(files)
    return applied.notes
