"""A spec or a repository → a running Triton on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritongen.check.evaluate import evaluate_path
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.errors import RepositoryError
from tritongen.proof import DEFAULT_LIMIT_BYTES
from tritongen.releases import find_release
from tritongen.render.precision import is_converted
from tritongen.repository import apply_plan
from tritongen.rules import ServerFacts, built_plans, plan_profiles
from tritongen.server import EmbeddedServer, ServerOptions, start
from tritongen.server.options import LeftOut, with_server
from tritongen.server.policies import this_host
from tritongen.server.runtime import base_folder, owned_folder
from tritongen.server.served_copy import this_machine
from tritongen.spec import LoadedSpec
from tritongen.workflow.rendering import plan_render


@dataclass(frozen=True)
class Served:
    """A running server and what was found before it was started (warnings and advice): while rendering, or about plans in a repository that was there."""

    server: EmbeddedServer
    findings: tuple[Diagnostic, ...] = ()


_OTHER_FILES = {
    ".onnx": ("this is an ONNX model", "`tritongen init {name}` writes a spec for it first; give that"),
    ".pbtxt": ("this is the config of one model", "give the folder of the model repository, which is two levels up"),
    ".plan": ("this is a TensorRT plan", "give the folder of the model repository that it lies in"),
}
"""By suffix, files that are no spec and are tried all the same: what they are, and what to serve in their place."""

_OF_PLANS = (*built_plans.RULES, *plan_profiles.RULES)
"""Rules about plans that another server loads."""


@contextlib.contextmanager
def serving(target: Path, options: ServerOptions, *, prove_limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Served]:
    """Serve `target` until the block ends.

    A folder is a model repository and is served as it is. A file is a spec: it is rendered into a temporary folder (the repository that the spec names is
    not touched), and served with auto-complete off, since a rendered config is complete.

    Raises InputError for what is wrong with the spec or the repository, ServerStartError where Triton or a model does not start.
    """
    if target.is_dir():
        findings = stale_plans(target, options.release)
        with start(target, options) as server:
            yield Served(server, findings)
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
    refuse_other_files(target)
    folder = owned_folder(base_folder())
    try:
        with plan_render(target, output=folder / "model_repository", prove_limit_bytes=prove_limit_bytes) as rendering:
            apply_plan(rendering.plan, link=True)
        loaded = rendering.loaded
        options, left_out = with_server(options, loaded.spec.server, this_host())
        release = options.release or loaded.spec.triton.release
        with start(rendering.plan.root, dataclasses.replace(options, disable_auto_complete=True, release=release)) as server:
            # the server says itself that it does not know its release, and has a cache where a model asks for one
            findings = tuple(finding for finding in rendering.findings if finding.code not in ("TG115", "TG409"))
            yield Served(server, (*findings, *_halves_on_cpu(loaded), *(_left_out(loaded, one) for one in left_out)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stale_plans(repository: Path, release: str | None) -> tuple[Diagnostic, ...]:
    """What is to be said of the TensorRT plans in a repository that another server will load; here, their source ONNX is served in their place.

    Plans of another TensorRT or GPU, and plans that are not what a render asks for, as warnings. A repository that cannot be listed is left to the server.
    """
    facts = ServerFacts(find_release(release) if release else None)
    try:
        found = evaluate_path(repository, facts, _OF_PLANS)
    except OSError:
        return ()
    codes = {rule.code for rule in _OF_PLANS}
    return tuple(
        dataclasses.replace(finding, severity=Severity.WARNING, consequence=f"its source ONNX is served here; with the plan, {finding.consequence}")
        for finding in found
        if finding.code in codes
    )


def _halves_on_cpu(loaded: LoadedSpec) -> Iterator[Diagnostic]:
    """Advice (TG439) for each model whose converted file runs on the CPU only since this machine has no GPU."""
    if this_machine().gpus:
        return
    for index, model in enumerate(loaded.spec.models):
        if is_converted(model) and model.conversion.keep_io_types:
            yield Diagnostic(
                "TG439",
                f"precision {model.precision} is for GPUs, and this machine has none",
                loaded.locate(("models", index, "precision")),
                "the converted file runs here on the CPU, which computes it in FP32 between casts: slower than the source, with the rounded weights' answers",
                "for the source itself: `tritongen render --cpu`, then `tritongen serve` the repository that it writes",
                model.name,
                severity=Severity.ADVICE,
            )


def _left_out(loaded: LoadedSpec, one: LeftOut) -> Diagnostic:
    """The finding for a key of `server` that has no effect here."""
    return Diagnostic(
        "TG436",
        f"server.{'.'.join(one.key)} has no effect in the embedded server: {one.reason}",
        loaded.locate(("server", *one.key)),
        hint="it has in a deployment of the spec's release: tritongen render --deploy compose",
        severity=Severity.WARNING,
    )


def refuse_other_files(target: Path) -> None:
    """Say what a file is that is no spec. Raises RepositoryError."""
    if found := _OTHER_FILES.get(target.suffix.lower()):
        message, hint = found
        raise RepositoryError(
            [Diagnostic("TG047", f"{message}, neither a spec nor a model repository", Location(str(target)), hint=hint.format(name=shlex.quote(str(target))))]
        )
