"""The verbs that span stages: from a spec to a repository, from a repository to a running server.

Each command of the command line is one of these and a report. Nothing here prints or exits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritongen.server import EmbeddedServer, ServerOptions
    from tritongen.workflow.rendering import Rendering

__all__ = ["render", "serve"]


def render(
    spec: str | Path, output: str | Path | None = None, *, force: bool = False, prune: bool = False, cpu: bool = False, deploy: bool = False
) -> Rendering:
    """Write the model repository of a spec file, and return what was done and found.

    Args:
        spec: the spec file.
        output: the repository's folder; by default the one that the spec names.
        force: overwrite what was edited by hand.
        prune: remove models that an earlier render made and that the spec names no more.
        cpu: write a repository for servers without a GPU, by default `<repository>.cpu`.
        deploy: write docker-compose.yml and what it needs too.

    Raises:
        InputError: with everything that is wrong; nothing is written then.

    Example:
        >>> for change in tritongen.render("spec.yaml").plan.changes:  # doctest: +SKIP
        ...     print(change.name, change.action.value)
    """
    from tritongen.workflow.rendering import plan_render
    from tritongen.workflow.writing import apply_rendering

    given = None if output is None else Path(output)
    with plan_render(Path(spec), output=given, force=force, prune=prune, settle=True, cpu=cpu, deploy=deploy) as rendering:
        written = apply_rendering(rendering)
        return dataclasses.replace(rendering, plan=written.repository.plan, deployment=written.deployment, notes=written.notes)


@contextlib.contextmanager
def serve(target: str | Path, options: ServerOptions | None = None, **settings: Any) -> Iterator[EmbeddedServer]:
    """Serve a spec, or the folder of a model repository, on a real Triton on this machine until the block ends.

    Args:
        target: a spec file, or a folder.
        options: the server's settings; by default those of `ServerOptions()`.
        **settings: single fields of `ServerOptions`, such as `http_port=0`; they win over `options`.

    Raises:
        TypeError: for a setting that `ServerOptions` does not have.
        InputError: for what is wrong with the spec or the repository.
        EnvironmentProblem: where this machine lacks something; `tritongen doctor` says what.
        ServerStartError: where Triton or a model does not start, with Triton's own reasons.

    Example:
        >>> with tritongen.serve("spec.yaml", http_port=0) as server:  # doctest: +SKIP
        ...     print(server.grpc_url, server.models)
    """
    from tritongen.server import ServerOptions
    from tritongen.workflow.serving import serving

    known = [entry.name for entry in dataclasses.fields(ServerOptions)]
    for name in settings:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise TypeError(f"serve() has no setting '{name}'; " + (f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"))
    with serving(Path(target), dataclasses.replace(options or ServerOptions(), **settings)) as served:
        yield served.server
