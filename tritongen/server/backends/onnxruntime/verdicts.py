"""The rules that the backend shares with `tritongen check`, and how the backend applies them: it stops at the first problem, as NVIDIA's does.

The one place that reaches out of this folder. The server copies the rules beside it, at the same relative path (see `tritongen.server.runtime`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ....rules import ortload  # noqa: TID252 - the copy that runs in the stub has another name at its root
from .errors import RefusedError

__all__ = ["ortload", "refuse_first"]


def refuse_first(problems: Iterable[ortload.Problem]) -> None:
    """Raise RefusedError with the first problem that keeps NVIDIA's backend from loading the model, in its words."""
    for problem in problems:
        if problem.refused:
            raise RefusedError(problem.message)
