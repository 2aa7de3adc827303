"""A spec, or a rendered repository → its TensorRT plans, built in this process; each with its manifest, and none half."""

from __future__ import annotations

import difflib
import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tritongen import __version__
from tritongen.build import (
    Builder,
    Building,
    Job,
    Library,
    Outcome,
    Progress,
    State,
    TensorRTBuilder,
    Wanted,
    find_devices,
    load_library,
)
from tritongen.build.libraries import installed_version
from tritongen.build.options import unknown_capability
from tritongen.build.survey import capability_text, check_files, disk_problem, read_all_recipes, survey
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import EnvironmentProblem, InputError, RepositoryError
from tritongen.manifest import Builder as BuiltBy
from tritongen.manifest import make_manifest, print_manifest
from tritongen.proof import DEFAULT_LIMIT_BYTES
from tritongen.recipe import RECIPES, SCRIPT, PlanRecipe, load_recipes
from tritongen.repository import apply_plan, artifacts_beside, conflicts, repository_root
from tritongen.repository.writing import write_whole
from tritongen.signature.plan import TENSORRT, TENSORRT_RTX
from tritongen.staleness import LoadedBy, other_tensorrt
from tritongen.workflow.rendering import plan_render
from tritongen.workflow.serving import refuse_other_files


class Audience(Protocol):
    """Who follows a run. Every plan is told once, when its fate is known."""

    def rendered(self, findings: Sequence[Diagnostic], notes: Sequence[str]) -> None:
        """The spec was rendered, with these findings and these notes on how it was written; none for a repository."""

    def building(self, wanted: Wanted) -> AbstractContextManager[Progress]:
        """Around a build, of whose progress what is entered is told; left by whatever ends the build, Ctrl-C included."""

    def end(self, outcome: Outcome) -> None:
        """A plan's fate is known."""


_PARTS = 4
"""Numbers in a version of TensorRT, where all of it is known."""


@dataclass(frozen=True)
class Request:
    """What is to be built.

    Attributes:
        kind: the library: `tensorrt` or `tensorrt-rtx`.
        models: the models; none for all.
        capabilities: for `tensorrt-rtx`, the GPUs to build for; none for those of the spec, or all.
        force: build what is good, too.
        dry_run: build and write nothing.
        prove_limit_bytes: as for a render.
    """

    kind: str = TENSORRT
    models: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    force: bool = False
    dry_run: bool = False
    prove_limit_bytes: int = DEFAULT_LIMIT_BYTES


def build_plans(target: Path, request: Request, audience: Audience) -> Building:
    """Build what is missing or stale.

    `target` is a spec, which is rendered first (into the repository that it names), or the folder of a rendered repository.

    Raises:
        InputError: what is wrong with the spec, the repository, or the names of models. What stands against a plan is in its outcome: the others are built.
        EnvironmentProblem: where the library, or a GPU, or the TensorRT of the release is not here; nothing was built then.
        KeyboardInterrupt: after the build that was running has ended; what was built before stays.
    """
    if request.capabilities and request.kind != TENSORRT_RTX:
        message = "compute capabilities are for tensorrt-rtx; TensorRT builds for the GPU that it runs on"
        raise InputError([Diagnostic("TG093", message, hint="name them in the spec: tensorrt: {build: {compute_capabilities: [...]}}")])
    root, recipes, findings, notes = _recipes(target, request)
    audience.rendered(findings, notes)
    recipes = _chosen(recipes, request.models, root)
    devices = find_devices() if request.kind == TENSORRT else ()
    version = installed_version(request.kind) if request.kind == TENSORRT_RTX else ""
    wanted = survey(root, recipes, request.kind, version=version, devices=devices, capabilities=request.capabilities, force=request.force)
    outcomes = []
    workshop = _open(request, wanted, root)
    for each in wanted:
        # A spec was rendered just now, or, of a dry run, is not what lies there: then only what is built is looked at.
        outcome = _idle(each, request)
        if target.is_dir() or outcome is None:
            outcome = _without_source(each) or outcome
        if outcome is None:
            assert workshop is not None
            with audience.building(each) as progress:
                outcome = workshop.make(each, progress)
        audience.end(outcome)
        outcomes.append(outcome)
    return Building(root, findings, tuple(outcomes), notes)


def _recipes(target: Path, request: Request) -> tuple[Path, Mapping[str, Sequence[PlanRecipe]], tuple[Diagnostic, ...], tuple[str, ...]]:
    """The repository, its recipes by model, what was found while rendering, and what a user should know of how it was written."""
    if target.is_dir():
        root = repository_root(target)
        return root, read_all_recipes(root), (), ()
    refuse_other_files(target)
    with plan_render(target, prove_limit_bytes=request.prove_limit_bytes, settle=not request.dry_run) as rendering:
        if request.dry_run and (in_the_way := conflicts(rendering.plan)):
            raise RepositoryError(in_the_way)
        notes = () if request.dry_run else apply_plan(rendering.plan).notes
        return rendering.plan.root, {entry.name: entry.recipes for entry in rendering.entries if entry.recipes}, rendering.findings, notes


def _chosen(recipes: Mapping[str, Sequence[PlanRecipe]], names: tuple[str, ...], root: Path) -> Mapping[str, Sequence[PlanRecipe]]:
    """The models that were asked for. Raises InputError (TG097) with every name that has no plan."""
    problems = []
    for name in names:
        if name not in recipes:
            close = difflib.get_close_matches(name, recipes, n=1)
            known = f"did you mean '{close[0]}'?" if close else f"models with backend: tensorrt are {', '.join(recipes) or 'not there'}"
            problems.append(Diagnostic("TG097", f"there is no plan to build for a model '{name}'", Location(str(root)), hint=known))
    if problems:
        raise InputError(problems)
    return {name: each for name, each in recipes.items() if not names or name in names}


def _without_source(wanted: Wanted) -> Outcome | None:
    """The outcome of a plan whose source is not what it was when the recipe was made, built or not; None where it is."""
    try:
        problems = check_files(wanted)
    except OSError as error:
        problems = (disk_problem(error, "read", wanted.recipe.model),)
    return Outcome(wanted, State.FAILED, problems=problems) if problems else None


def _idle(wanted: Wanted, request: Request) -> Outcome | None:
    """The outcome of a plan that is not built; None for one that is."""
    if not wanted.reasons:
        return Outcome(wanted, State.GOOD)
    if wanted.elsewhere:
        return Outcome(wanted, State.ELSEWHERE)
    return Outcome(wanted, State.WANTED) if request.dry_run else None


def _open(request: Request, wanted: Sequence[Wanted], root: Path) -> Workshop | None:
    """What builds; None where there is nothing to build. Raises EnvironmentProblem where it cannot build what is wanted."""
    here = [each for each in wanted if each.reasons and not each.elsewhere]
    if request.dry_run or not here:
        return None
    script = f"run {artifacts_beside(root) / SCRIPT} in the container that will serve the model"
    library = load_library(request.kind, instead=script)
    if request.kind == TENSORRT_RTX:
        _check_capabilities(request, here, library)
    if request.kind == TENSORRT:
        if any(each.device is None for each in here):
            raise EnvironmentProblem(
                "there is no GPU here, and TensorRT builds a plan on the GPU that it is for",
                hint=f"{script}, or this command on a machine with such a GPU; `--with tensorrt-rtx` tries a build without one",
            )
        for each in here:
            _check_release(each.recipe, library, script)
    return Workshop(TensorRTBuilder(library))


def _check_capabilities(request: Request, wanted: Sequence[Wanted], library: Library) -> None:
    """Raise InputError (TG093) where TensorRT-RTX builds nothing for a GPU that was asked for: at the option, or for each model whose spec names it."""
    problems = []
    for model, asked in {each.recipe.model: each.capabilities for each in wanted}.items():
        if problem := unknown_capability(library, asked):
            message, known = problem
            if request.capabilities:
                problems = [Diagnostic("TG093", f"--compute-capability: {message}", hint=known)]
                break
            where = f"{message}, which tensorrt.build.compute_capabilities names"
            problems.append(Diagnostic("TG093", where, hint=f"{known}: name some of these with --compute-capability, for this build alone", model=model))
    if problems:
        raise InputError(problems)


def _check_release(recipe: PlanRecipe, library: Library, script: str) -> None:
    """Raise EnvironmentProblem where the release will not load what this library builds."""
    reason = other_tensorrt(library.version, LoadedBy(recipe.release), later_too=recipe.version_compatible)
    if reason:
        version = recipe.target.tensorrt if recipe.target else None
        exact = version if version and version.count(".") == _PARTS - 1 else f"{version}.*"
        hint = f"pip install 'tensorrt=={exact}', or {script}" if version else script
        raise EnvironmentProblem(f"a plan of {recipe.model} built here would not load: it {reason}", hint=hint)


class Workshop:
    """Builds plans with one builder, and writes them."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def make(self, wanted: Wanted, progress: Progress) -> Outcome:
        """Build a plan and put it in place, with its manifest; what stands against it is in the outcome."""
        begun = time.perf_counter()
        try:
            built = self._builder.build(Job(wanted.recipe, wanted.artifacts, wanted.capabilities, _content(wanted.timing_cache), wanted.device), progress)
            if problem := _replaced(wanted):
                return Outcome(wanted, State.FAILED, time.perf_counter() - begun, problems=(problem,))
            for path in (wanted.path, wanted.manifest):
                path.parent.mkdir(parents=True, exist_ok=True)
            if built.timing_cache:
                write_whole(wanted.timing_cache, built.timing_cache)
            manifest = make_manifest(wanted.recipe, hashlib.sha256(built.plan).hexdigest(), self._built_by(wanted))
            # The plan first: between the two a new plan with an old manifest is one that is built again, and never one that is taken for good.
            write_whole(wanted.path, built.plan)
            write_whole(wanted.manifest, print_manifest(manifest).encode())
        except InputError as error:
            return Outcome(wanted, State.FAILED, time.perf_counter() - begun, problems=error.diagnostics)
        except OSError as error:
            problem = disk_problem(error, "read or written", wanted.recipe.model)
            return Outcome(wanted, State.FAILED, time.perf_counter() - begun, problems=(problem,))
        return Outcome(wanted, State.BUILT, time.perf_counter() - begun, built.plan.nbytes, built.notes)

    def _built_by(self, wanted: Wanted) -> BuiltBy:
        library, device = self._builder.library, wanted.device
        if device is None:
            return BuiltBy(library.kind, library.version, compute_capability=capability_text(wanted.capabilities), tritongen=__version__)
        return BuiltBy(
            library.kind,
            library.version,
            cuda=device.cuda,
            compute_capability=device.compute_capability,
            gpu=device.name,
            driver=device.driver,
            release=wanted.recipe.release,
            tritongen=__version__,
        )


def _replaced(wanted: Wanted) -> Diagnostic | None:
    """What is said where a render replaced or removed the model while its plan was built, which takes minutes. Raises OSError."""
    place = wanted.artifacts / RECIPES
    try:
        is_there = wanted.recipe in load_recipes(place)
    except ValueError:
        is_there = False
    if is_there:
        return None
    message = "another render changed the model while its plan was built"
    return Diagnostic(
        "TG095", message, Location(str(place)), "the plan was not kept: it is not the one for the config that is there now", "run it again", wanted.recipe.model
    )


def _content(path: Path) -> bytes:
    """What is in a file; nothing where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
