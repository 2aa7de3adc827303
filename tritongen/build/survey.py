"""Which plans a repository should have, and which of them must be built: recipes and manifests on one side, what lies on the disk on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.build.device import Device
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.manifest import LoadedBy, load_manifest, manifest_path, stale
from tritongen.recipe import RECIPES, PlanFile, PlanRecipe, read_recipes
from tritongen.repository import artifacts_beside, file_sha256
from tritongen.signature.plan import TENSORRT, TENSORRT_RTX

_AGAIN = "render the spec again"


@dataclass(frozen=True)
class Wanted:
    """One plan that there should be.

    Attributes:
        recipe: how it is built.
        plan: its file, and the GPU that it is for.
        path: where it lies.
        artifacts: the model's artifacts folder.
        kind: the library that builds it.
        capabilities: the GPUs that a plan of TensorRT-RTX is for; none for all that it knows.
        reasons: why it is built, as clauses about the plan; empty where it is good as it is.
        elsewhere: why it cannot be built on this machine; empty where it can.
    """

    recipe: PlanRecipe
    plan: PlanFile
    path: Path
    artifacts: Path
    kind: str
    capabilities: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    elsewhere: str = ""

    @property
    def manifest(self) -> Path:
        """Where its manifest lies."""
        return self.artifacts / manifest_path(self.recipe.version, self.plan.name)

    @property
    def timing_cache(self) -> Path:
        """The file with the times of kernels."""
        return self.artifacts / self.plan.timing_cache


def read_all_recipes(root: Path) -> dict[str, tuple[PlanRecipe, ...]]:
    """The recipes beside the repository at `root`, by model. Raises RepositoryError (TG095) with every file that cannot be used."""
    found: dict[str, tuple[PlanRecipe, ...]] = {}
    problems = []
    if not artifacts_beside(root).is_dir():
        message = f"there is no {artifacts_beside(root).name} beside this folder, where a render leaves the recipes of plans"
        problems.append(Diagnostic("TG095", message, Location(str(root)), hint="give the spec, or the folder of a repository that it was rendered to"))
    for path in sorted(artifacts_beside(root).glob(f"*/{RECIPES}")):
        try:
            found[path.parent.name] = read_recipes(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            problems.append(
                Diagnostic("TG095", f"the recipes of plans cannot be used: {reason}", Location(str(path)), "no plan of this model can be built", _AGAIN)
            )
    if problems:
        raise RepositoryError(problems)
    return found


def survey(
    root: Path,
    recipes: Mapping[str, Sequence[PlanRecipe]],
    kind: str,
    *,
    device: Device | None = None,
    capabilities: tuple[str, ...] = (),
    force: bool = False,
) -> tuple[Wanted, ...]:
    """Every plan that `recipes` ask for when the library `kind` builds, by model and version, with the reasons to build it.

    Args:
        root: the repository's folder.
        recipes: by model.
        kind: `tensorrt` or `tensorrt-rtx`.
        device: the GPU of this machine, for `tensorrt`; None where there is none.
        capabilities: for `tensorrt-rtx`, the GPUs to build for.
        force: build what is good, too.

    Raises RepositoryError (TG096) where the disk cannot be read.
    """
    listed = (wanted for model in recipes.values() for recipe in model for wanted in _wanted(root, recipe, kind, capabilities))
    try:
        return tuple(_judged(wanted, device, force=force) for wanted in listed)
    except OSError as error:
        raise RepositoryError([disk_problem(error, "read")]) from error


def check_files(wanted: Wanted) -> None:
    """Raise RepositoryError (TG095) with every file that is another than the recipe was made for: a manifest would say what is not so. Raises OSError, too."""
    problems = [
        Diagnostic(
            "TG095",
            f"{path} is not the file that the recipe of the plan was made for",
            Location(str(wanted.artifacts / path)),
            hint=_AGAIN,
            model=wanted.recipe.model,
        )
        for path, sha256 in wanted.recipe.files.items()
        if file_sha256(wanted.artifacts / path) != sha256
    ]
    if problems:
        raise RepositoryError(problems)


def disk_problem(error: OSError, what: str, model: str = "") -> Diagnostic:
    """The finding for a disk that does not let us read or write a plan or what belongs to it."""
    hint = "check the path, its permissions and the space left"
    return Diagnostic(
        "TG096", f"a plan, or what belongs to it, cannot be {what}: {error.strerror or error}", Location(str(error.filename or "")), hint=hint, model=model
    )


def _wanted(root: Path, recipe: PlanRecipe, kind: str, capabilities: tuple[str, ...]) -> Iterator[Wanted]:
    artifacts = artifacts_beside(root) / recipe.model
    if kind == TENSORRT_RTX:
        # One plan serves several kinds of GPU. It lies where Triton never looks: its tensorrt backend cannot load it.
        names = capabilities or tuple(plan.compute_capability for plan in recipe.plans if plan.compute_capability)
        name = PurePosixPath(recipe.plans[0].name)
        plan = PlanFile(f"{name.stem.partition('.')[0]}.rtx{name.suffix}")
        yield Wanted(recipe, plan, artifacts / str(recipe.version) / plan.name, artifacts, kind, names)
        return
    for plan in recipe.plans:
        yield Wanted(recipe, plan, root / recipe.model / str(recipe.version) / plan.name, artifacts, kind)


def _judged(wanted: Wanted, device: Device | None, *, force: bool) -> Wanted:
    here = device.compute_capability if device else ""
    meant = wanted.plan.compute_capability
    elsewhere = (
        f"it is for a GPU of compute capability {meant}, and this one has {here}" if wanted.kind == TENSORRT and meant and here and meant != here else ""
    )
    reasons = tuple(_reasons(wanted, "" if elsewhere else here))
    if not reasons and force and not elsewhere:
        reasons = ("is built again, since --force is given",)
    return dataclasses.replace(wanted, reasons=reasons, elsewhere=elsewhere)


def _reasons(wanted: Wanted, compute_capability: str) -> Iterator[str]:
    """Why the plan is not good as it is, as clauses about it."""
    if not wanted.path.is_file():
        yield "is not there"
        return
    try:
        manifest = load_manifest(wanted.manifest)
    except ValueError as error:
        yield f"has a manifest that cannot be used: {error}"
        return
    if manifest is None:
        yield "has no manifest, so that nobody knows what it was built from"
        return
    loader = LoadedBy(release=wanted.recipe.target if wanted.kind == TENSORRT else None, compute_capability=compute_capability, kind=wanted.kind)
    yield from stale(manifest, wanted.recipe, wanted.plan, loader)
    asked = capability_text(wanted.capabilities)
    if wanted.kind == TENSORRT_RTX and manifest.builder.compute_capability != asked:
        yield f"was built for {manifest.builder.compute_capability or 'all GPUs'}, and {asked or 'all GPUs'} are asked for"
    if manifest.sha256 != file_sha256(wanted.path):
        yield "was changed since it was built"


def capability_text(capabilities: Sequence[str]) -> str:
    """The GPUs that a plan of TensorRT-RTX is for, as its manifest states them."""
    return ", ".join(capabilities)
