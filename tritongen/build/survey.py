"""Which plans a repository should have, and which of them must be built: recipes and manifests on one side, what lies on the disk on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.build.device import Device
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.manifest import load_manifest, manifest_path
from tritongen.recipe import RECIPES, RTX_PLAN, PlanFile, PlanRecipe, load_recipes
from tritongen.releases import version_numbers
from tritongen.repository import artifacts_beside, file_sha256, stamp_of
from tritongen.signature.plan import TENSORRT, TENSORRT_RTX
from tritongen.staleness import LoadedBy, stale

_AGAIN = "render the spec again"
_MOVE = "remove the folder, or move it away"


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
        device: the GPU of this machine that it is built on; None where there is none, or none is needed.
    """

    recipe: PlanRecipe
    plan: PlanFile
    path: Path
    artifacts: Path
    kind: str
    capabilities: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    elsewhere: str = ""
    device: Device | None = None

    @property
    def manifest(self) -> Path:
        """Where its manifest lies."""
        return self.artifacts / manifest_path(self.recipe.version, self.plan.name)

    @property
    def timing_cache(self) -> Path:
        """The file with the times of kernels."""
        return self.artifacts / self.plan.timing_cache


def read_all_recipes(root: Path) -> dict[str, tuple[PlanRecipe, ...]]:
    """The recipes beside the repository at `root`, by model: of the plans that the models' configs say are built on the target.

    A file of recipes that lies there for a model that has no plan (any more) is none of them. Raises RepositoryError (TG095) with every file that cannot be
    used.
    """
    artifacts = artifacts_beside(root)
    if not artifacts.is_dir():
        message = f"there is no {artifacts.name} beside this folder, where a render leaves the recipes of plans"
        hint = "give the spec, or the folder of a repository that it was rendered to"
        raise RepositoryError([Diagnostic("TG095", message, Location(str(root)), hint=hint)])
    found: dict[str, tuple[PlanRecipe, ...]] = {}
    problems = []
    for path in sorted(artifacts.glob(f"*/{RECIPES}")):
        name = path.parent.name
        try:
            kept = _kept_plans(root / name)
            recipes = load_recipes(path) if kept else ()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            message = f"the recipes of plans cannot be used: {reason}"
            problems.append(Diagnostic("TG095", message, Location(str(path)), "no plan of this model can be built", _AGAIN, name))
        else:
            wanted = {PurePosixPath(str(recipe.version), plan.name) for recipe in recipes for plan in recipe.plans}
            if strangers := sorted(map(str, wanted ^ kept)):
                message = f"the recipes of plans and the model's config name different plans: {', '.join(strangers)}"
                problems.append(Diagnostic("TG095", message, Location(str(path)), "no plan of this model can be built", _AGAIN, name))
            elif recipes:
                found[name] = recipes
    if problems:
        raise RepositoryError(problems)
    return found


def _kept_plans(folder: Path) -> frozenset[PurePosixPath]:
    """The plans that a model's config says are made on the target, by path in its folder. Raises OSError."""
    stamp = stamp_of(folder)
    return frozenset(stamp.kept) if stamp is not None else frozenset()


def survey(
    root: Path,
    recipes: Mapping[str, Sequence[PlanRecipe]],
    kind: str,
    *,
    version: str = "",
    devices: Sequence[Device] = (),
    capabilities: tuple[str, ...] = (),
    force: bool = False,
) -> tuple[Wanted, ...]:
    """Every plan that `recipes` ask for when the library `kind` builds, by model and version, with the reasons to build it.

    Args:
        root: the repository's folder.
        recipes: by model.
        kind: `tensorrt` or `tensorrt-rtx`.
        version: that of TensorRT-RTX here, which alone loads its plans; empty where it is not known. Plans of TensorRT are the release's.
        devices: the GPUs of this machine, for `tensorrt`: a plan is built on the first that loads it.
        capabilities: for `tensorrt-rtx`, the GPUs to build for.
        force: build what is good, too.

    Raises RepositoryError (TG096) where the disk cannot be read.
    """
    listed = (wanted for model in recipes.values() for recipe in model for wanted in _wanted(root, recipe, kind, capabilities))
    try:
        return tuple(_judged(wanted, version, devices, force=force) for wanted in listed)
    except OSError as error:
        raise RepositoryError([disk_problem(error, "read")]) from error


def check_files(wanted: Wanted) -> tuple[Diagnostic, ...]:
    """Every file that is not there, or is another than the recipe was made for (TG095): a manifest would say what is not so. Raises OSError.

    And every folder that lies where a file is to be written (TG096), which would be found only once all is built.
    """
    faults = {path: _fault(wanted.artifacts / path, sha256) for path, sha256 in wanted.recipe.files.items()}
    return tuple(
        Diagnostic("TG095", f"{path} {fault}", Location(str(wanted.artifacts / path)), "the plan cannot be built", _AGAIN, wanted.recipe.model)
        for path, fault in faults.items()
        if fault
    ) + tuple(
        Diagnostic(
            "TG096", f"{path} is a folder, and a file is to be written there", Location(str(path)), "the plan cannot be placed", _MOVE, wanted.recipe.model
        )
        for path in (wanted.path, wanted.manifest, wanted.timing_cache)
        if path.is_dir()
    )


def _fault(path: Path, sha256: str) -> str:
    if not path.is_file():
        return "is not there, and the plan is built from it"
    return "" if file_sha256(path) == sha256 else "is not the file that the recipe of the plan was made for"


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
        names = _ordered(capabilities) or tuple(plan.compute_capability for plan in recipe.plans if plan.compute_capability)
        plan = PlanFile(RTX_PLAN)
        yield Wanted(recipe, plan, artifacts / str(recipe.version) / plan.name, artifacts, kind, names)
        return
    for plan in recipe.plans:
        yield Wanted(recipe, plan, root / recipe.model / str(recipe.version) / plan.name, artifacts, kind)


def _judged(wanted: Wanted, version: str, devices: Sequence[Device], *, force: bool) -> Wanted:
    device, elsewhere = _choose(wanted, devices) if wanted.kind == TENSORRT else (None, "")
    reasons = tuple(_reasons(wanted, version, device.compute_capability if device else ""))
    if not reasons and force and not elsewhere:
        reasons = ("is built again, since --force is given",)
    return dataclasses.replace(wanted, reasons=reasons, elsewhere=elsewhere, device=device)


def _choose(wanted: Wanted, devices: Sequence[Device]) -> tuple[Device | None, str]:
    """The first GPU that loads the plan, or why none of those that are here does; neither where there is none at all."""
    numbers, meant = wanted.recipe.gpus, wanted.plan.compute_capability
    serving = [device for device in devices if not numbers or device.number in numbers]
    if devices and not serving:
        here = "the only one here has number 0" if len(devices) == 1 else f"those here have numbers 0 to {len(devices) - 1}"
        return None, f"instances name GPU {', '.join(map(str, numbers))}, and {here}"
    device = next((device for device in serving if not meant or device.compute_capability == meant), None)
    if device is None and serving:
        capabilities = capability_text(_ordered([each.compute_capability for each in serving]))
        have = f"this one has {capabilities}" if len(serving) == 1 else f"those that serve the model here have {capabilities}"
        return None, f"it is for a GPU of compute capability {meant}, and {have}"
    return device, ""


def _reasons(wanted: Wanted, version: str, compute_capability: str) -> Iterator[str]:
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
    release = wanted.recipe.release if wanted.kind == TENSORRT else ""
    loader = LoadedBy(release, tensorrt=version, compute_capability=compute_capability, kind=wanted.kind)
    yield from stale(manifest, wanted.recipe, wanted.plan, loader)
    asked = capability_text(wanted.capabilities)
    if wanted.kind == TENSORRT_RTX and manifest.builder.compute_capability != asked:
        yield f"was built for {manifest.builder.compute_capability or 'all GPUs'}, and {asked or 'all GPUs'} are asked for"
    if manifest.sha256 != file_sha256(wanted.path):
        yield "was changed since it was built"


def _ordered(capabilities: Sequence[str]) -> tuple[str, ...]:
    """Compute capabilities in ascending order, each once: in which order they are asked for makes no other plan."""
    return tuple(sorted({*capabilities}, key=version_numbers))


def capability_text(capabilities: Sequence[str]) -> str:
    """The GPUs that a plan of TensorRT-RTX is for, as its manifest states them."""
    return ", ".join(capabilities)
