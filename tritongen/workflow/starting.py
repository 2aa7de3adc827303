"""Model files → the text of a starter spec."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.errors import InputError
from tritongen.proof import DEFAULT_LIMIT_BYTES
from tritongen.releases import DEFAULT_RELEASE
from tritongen.render.starter import Starter, explore, model_name, starter_spec
from tritongen.signature import Signature
from tritongen.signature.inference import infer_missing_shapes, refine_outputs
from tritongen.signature.onnx import read_onnx
from tritongen.workflow.rendering import plan_render


def starter_text(models: Sequence[Path], folder: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> tuple[str, list[Starter]]:
    """A commented spec for `models`, with paths relative to `folder`, and what was found out about each.

    Raises InputError with everything that is wrong with any of the files.
    """
    signatures: list[tuple[Path, Signature]] = []
    problems: list[Diagnostic] = []
    for path in models:
        try:
            signatures.append((path, refine_outputs(path, infer_missing_shapes(path, read_onnx(path)))))
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(problems)
    starters: list[Starter] = []
    for path, signature in signatures:
        name = model_name(path, [starter.name for starter in starters])
        source = os.path.relpath(path.absolute(), folder.absolute())
        starters.append(explore(path, signature, name=name, source=source, limit_bytes=limit_bytes))
    _check_renders([dataclasses.replace(starter, source=str(path.absolute())) for starter, (path, _) in zip(starters, signatures, strict=True)])
    return starter_spec(starters, release=DEFAULT_RELEASE.name), starters


def _check_renders(starters: Sequence[Starter]) -> None:
    """Raise InputError where the spec would be refused: what no spec can serve (a dimension of 0, say) is said now and not by the next command.

    The sources are absolute paths here. Nothing is run again: `explore` has run what it wrote.
    """
    with tempfile.TemporaryDirectory(prefix="tritongen-init-") as scratch:
        spec = Path(scratch) / "spec.yaml"
        spec.write_text(starter_spec(starters, release=DEFAULT_RELEASE.name), encoding="utf-8", errors="surrogateescape")
        try:
            plan_render(spec, output=Path(scratch) / "repository", prove_limit_bytes=0).close()
        except InputError as error:
            problems = [diagnostic for diagnostic in error.diagnostics if diagnostic.severity is Severity.ERROR]
            raise InputError([dataclasses.replace(problem, location=None) for problem in problems]) from error
