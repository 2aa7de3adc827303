"""A spec or a repository → a running Triton on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.proof import DEFAULT_LIMIT_BYTES
from tritongen.repository import apply_plan
from tritongen.server import EmbeddedServer, ServerOptions, start
from tritongen.server.runtime import base_folder, owned_folder
from tritongen.workflow.rendering import plan_render


@dataclass(frozen=True)
class Served:
    """A running server and what was found while rendering for it (warnings and advice; empty for a repository that was there)."""

    server: EmbeddedServer
    findings: tuple[Diagnostic, ...] = ()


@contextlib.contextmanager
def serving(target: Path, options: ServerOptions, *, prove_limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Served]:
    """Serve `target` until the block ends.

    A folder is a model repository and is served as it is. A file is a spec: it is rendered into a temporary folder (the repository that the spec names is
    not touched),
    and served with auto-complete off, since a rendered config is complete.

    Raises InputError for what is wrong with the spec or the repository, ServerStartError where Triton or a model does not start.
    """
    if target.is_dir():
        with start(target, options) as server:
            yield Served(server)
        return
    if not target.exists():
        raise RepositoryError(
            [
                Diagnostic(
                    "TG047",
                    "there is neither a spec nor a model repository here",
                    Location(str(target)),
                    hint="give a spec.yaml, or the folder of a model repository",
                )
            ]
        )
    folder = owned_folder(base_folder())
    try:
        rendering = plan_render(target, output=folder / "model_repository", prove_limit_bytes=prove_limit_bytes)
        apply_plan(rendering.plan, link=True)
        release = options.release or rendering.loaded.spec.triton.release
        with start(rendering.plan.root, dataclasses.replace(options, disable_auto_complete=True, release=release)) as server:
            yield Served(server, rendering.findings)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
