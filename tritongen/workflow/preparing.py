"""The files that a model is served from: each source as the spec names it, or rewritten as the spec asks, or found again where an earlier render put it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritongen import __version__
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import ModelFileError
from tritongen.proof import why_not_provable
from tritongen.releases import Release
from tritongen.render import Findings, ModelFiles, hash_model
from tritongen.render.entry import check_names
from tritongen.render.findings import Key
from tritongen.render.rewriting import checked_inputs, frozen_shapes, recipe_of
from tritongen.render.rows import is_demanded, judge_batch
from tritongen.repository import Made
from tritongen.rewrite import BatchProof, Recipe, Rewritten, changed_libraries, convert, freeze, name_dimensions, optimize, rebatch, rewritten_in
from tritongen.samples import Array
from tritongen.signature import Signature
from tritongen.signature.inference import infer_missing_shapes, refine_outputs
from tritongen.signature.onnx import read_onnx
from tritongen.spec import ModelSpec
from tritongen.spec.source import PlacedSource
from tritongen.workflow.shelf import Shelf
from tritongen.workflow.workspace import Workspace

Samples = Callable[[Signature], Mapping[str, Array]]


@dataclass(frozen=True)
class Prepared:
    """One version's model file.

    Attributes:
        key: the key of the spec that names its source.
        source: the file that the spec names.
        path: the file that goes into the repository; the source, where it is not rewritten.
        signature: what that file says, with the output shapes that its backend will see.
        stated: what it says by itself.
        files: it and its external data, with their hashes.
        recipe: what was done to the source; what had no effect is not part of it.
        made: how it came about, for the record; None for the source itself.
    """

    key: Key
    source: Path
    path: Path
    signature: Signature
    stated: Signature
    files: ModelFiles
    recipe: Recipe = field(default_factory=Recipe)
    made: Made | None = None

    @property
    def external(self) -> list[str]:
        """Names of the files that hold its external data."""
        return [part.location for part in self.signature.external_data]


def prepare(
    model: ModelSpec,
    placed: PlacedSource,
    source: Path,
    *,
    release: Release | None,
    samples: Samples,
    shelf: Shelf,
    workspace: Workspace,
    limit_bytes: int,
    findings: Findings,
) -> Prepared:
    """Read a source and rewrite it as the model's spec asks.

    Args:
        model: what the spec says.
        placed: the key of the spec that names the file.
        source: the file.
        release: the release that will serve it.
        samples: the values that the spec gives for inputs, for a signature.
        shelf: what an earlier render left.
        workspace: for rewritten files.
        limit_bytes: models above this size are not loaded into ONNX Runtime.
        findings: receives what has no effect and what is against each other.

    Raises:
        ModelFileError: for an unusable file, and for a rewrite that is not possible.
    """
    signature, stated = _read(source, model)
    check_names(signature, placed.key, findings)
    files = _hashed(source, signature)
    as_is = Prepared(placed.key, source, source, signature, stated, files)
    asked = recipe_of(model, signature, frozen_shapes(model, signature, findings), release)
    if asked.is_empty or findings.has_errors:
        return as_is
    if asked.rebatch and is_demanded(model) and (reason := why_not_provable(source, limit_bytes=limit_bytes, external=as_is.external)):
        judge_batch(model, placed.key, BatchProof(source, skipped=reason), (), findings)
        return as_is
    _explain(model, files, asked, shelf, findings)
    steps = _Steps(model, placed.key, source, workspace, samples, limit_bytes)
    if found := shelf.find(Made(files.digest, asked.text(tritongen=__version__))):
        return _done(model, as_is, found, asked)
    path, recipe = steps.reshape(asked)
    if not recipe.is_empty and (found := shelf.find(Made(files.digest, recipe.text(tritongen=__version__)))):
        return _done(model, as_is, found, recipe)
    if recipe.optimise is not None:
        path = steps.optimise(path, recipe)
    if recipe.convert is not None:
        path, recipe = steps.convert(path, recipe)
    if recipe.names:
        path, recipe = steps.name(path, recipe)
    return as_is if recipe.is_empty else _done(model, as_is, path, recipe)


def reshaped(
    model: ModelSpec, placed: PlacedSource, source: Path, *, release: Release | None, workspace: Workspace, findings: Findings
) -> tuple[Path, Signature, Signature]:
    """A source with the sizes and the batch that the spec gives it, and nothing else: the file, what it says as its backend will see it, and by itself.

    Arguments and errors as for `prepare`. Weights are read only where a size or the batch is rewritten.
    """
    signature, stated = _read(source, model)
    check_names(signature, placed.key, findings)
    asked = recipe_of(model, signature, frozen_shapes(model, signature, findings), release)
    if findings.has_errors or not (asked.shapes or asked.rebatch):
        return source, signature, stated
    path, _ = _Steps(model, placed.key, source, workspace, lambda signature: {}, 0).reshape(asked)
    return path, *_read(path, model)


def _read(path: Path, model: ModelSpec) -> tuple[Signature, Signature]:
    """What a file says: as its backend will see it, and by itself.

    Triton compares the outputs of a config with those that ONNX Runtime reports, which knows some sizes that a file leaves open (onnxruntime_backend
    `ValidateOutputs`).
    """
    stated = infer_missing_shapes(path, read_onnx(path))
    return refine_outputs(path, stated) if model.backend == "onnxruntime" else stated, stated


def _hashed(path: Path, signature: Signature) -> ModelFiles:
    try:
        return hash_model(path, signature)
    except OSError as error:
        raise ModelFileError(
            [Diagnostic("TG022", f"the model cannot be read: {error.strerror}", Location(str(error.filename)), hint="check its permissions")]
        ) from error


def _explain(model: ModelSpec, files: ModelFiles, asked: Recipe, shelf: Shelf, findings: Findings) -> None:
    """Say why a file is made again though neither the spec nor the source has changed."""
    for how in shelf.made.values():
        changed = changed_libraries(how.recipe, asked.text(tritongen=__version__)) if how.source == files.digest else {}
        if changed:
            old, new = (", ".join(f"{name} {versions[which] or '(none)'}" for name, versions in changed.items()) for which in (0, 1))
            findings.advice(
                "TG195",
                _why(model, asked),
                f"the rewritten model file was made with {old}, and is made again with {new}",
                consequence="its bytes may differ though neither the spec nor the source has changed",
                hint="render with the same versions everywhere (pin them), or commit the new file",
            )
            return


def _why(model: ModelSpec, asked: Recipe) -> Key:
    """The key of the spec that a file is rewritten for."""
    reasons = ((asked.optimise, "optimize"), (asked.shapes, "freeze"), (asked.rebatch, "rebatch"), (asked.convert, "precision"))
    return next(((key,) for there, key in reasons if there), ("accelerator" if model.backend == "onnxruntime" else "backend",))


def _done(model: ModelSpec, original: Prepared, path: Path, recipe: Recipe) -> Prepared:
    """The rewritten file at `path` as one of the model's."""
    signature, stated = _read(path, model)
    made = Made(original.files.digest, recipe.text(tritongen=__version__))
    return dataclasses.replace(original, path=path, signature=signature, stated=stated, files=_hashed(path, signature), recipe=recipe, made=made)


@dataclass(frozen=True)
class _Steps:
    """The rewrites of one source; each reads a file and writes another into the workspace."""

    model: ModelSpec
    key: Key
    source: Path
    workspace: Workspace
    samples: Samples
    limit_bytes: int

    def reshape(self, recipe: Recipe) -> tuple[Path, Recipe]:
        """Sizes written in, then the batch made variable; and the recipe without what proved to change nothing."""
        path = self.source
        if recipe.shapes:
            path = self._step("freeze", path, lambda source, target: freeze(source, recipe.shapes, target)).path
        if recipe.rebatch:
            done = self._step("rebatch", path, rebatch)
            if done.notes:
                return done.path, recipe
        return path, dataclasses.replace(recipe, rebatch=False)

    def optimise(self, path: Path, recipe: Recipe) -> Path:
        """ONNX Runtime's graph of the file at `path`."""
        how = recipe.optimise
        assert how is not None
        signature = read_onnx(path)
        shapes, values = checked_inputs(self.model, signature, self.samples(signature))

        def work(source: Path, target: Path) -> Rewritten:
            return optimize(
                source,
                target,
                level=how.level,
                hardware=how.hardware,
                onnxruntime=how.onnxruntime,
                tolerance=how.tolerance,
                shapes=shapes,
                samples=values,
                limit_bytes=self.limit_bytes,
            )

        return self._step("optimize", path, work).path

    def convert(self, path: Path, recipe: Recipe) -> tuple[Path, Recipe]:
        """The file at `path` in another precision; and the recipe without that, where there was nothing to convert."""
        how = recipe.convert
        assert how is not None
        done = self._step("convert", path, lambda source, target: convert(source, target, how))
        return (done.path, recipe) if done.notes else (path, dataclasses.replace(recipe, convert=None))

    def name(self, path: Path, recipe: Recipe) -> tuple[Path, Recipe]:
        """The file at `path` with names for dimensions that TensorRT would else take to be equal; and the recipe without that, where all are fixed by now."""
        done = self._step("names", path, lambda source, target: name_dimensions(source, target, batched=recipe.apart))
        return (done.path, recipe) if done.notes else (path, dataclasses.replace(recipe, names=False))

    def _step(self, name: str, source: Path, work: Callable[[Path, Path], Rewritten]) -> Rewritten:
        """One rewrite. What is wrong with a file in between is said of the file that a person knows."""
        try:
            return rewritten_in(self.workspace.folder(self.model.name, "-".join(map(str, self.key)), name), source, work)
        except ModelFileError as error:
            where = Location(str(self.source))
            moved = [
                dataclasses.replace(each, location=where) if each.location and self.workspace.holds(each.location.path) else each for each in error.diagnostics
            ]
            raise ModelFileError(moved) from error
        except OSError as error:
            message = f"there is no place for the rewritten model: {error.strerror or error}"
            raise ModelFileError(
                [Diagnostic("TG164", message, Location(str(error.filename or source)), hint="check the disk that the repository lies on")]
            ) from error
