"""A temporary copy of a model repository with the configs that this machine can serve.

Weights are linked, never copied; what need not change is linked as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from tritongen.cache import cache_folder
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.modelconfig import parse_pbtxt, print_pbtxt
from tritongen.recipe import RECIPES, load_recipes
from tritongen.repository import CONFIG, artifacts_beside, repository_root
from tritongen.server import adapt, gpu
from tritongen.server.adapt import Adapted, Machine
from tritongen.server.options import EMBEDDED_RELEASE, ServerOptions


@dataclass(frozen=True)
class Served:
    """What to start the server on.

    Attributes:
        repositories: the given ones, or copies where something had to be adapted.
        warnings: one plain sentence for each adapted model.
        originals: by copy, the repository that it was made from.
        wants_cache: whether a model asks for the response cache.
        builds_engines: whether a model has the TensorRT accelerator, and this machine a GPU.
    """

    repositories: tuple[Path, ...]
    warnings: tuple[str, ...]
    originals: Mapping[Path, Path]
    wants_cache: bool
    builds_engines: bool


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(gpu.count(), len(os.sched_getaffinity(0)), str(cache_folder() / "engine-cache"))


def prepare(repositories: Sequence[Path], target: Path, machine: Machine, options: ServerOptions) -> Served:
    """Adapt what must be adapted; a repository where nothing must be is served in place.

    Args:
        repositories: folders of models.
        target: a folder for copies; it is made when needed.
        machine: where the server will run.
        options: `strict` refuses instead of adapting.

    Raises RepositoryError with every model that cannot be served as asked (`strict`), or whose plan has no source ONNX.
    """
    configs = [(repository, _configs(repository)) for repository in repositories]
    found = [(repository, _adapted(models, machine)) for repository, models in configs]
    if options.strict and options.model_control == "explicit":
        # what is loaded later, on request, Triton itself refuses or loads as it is
        found = [(repository, {name: models[name] for name in models if name in options.load_models}) for repository, models in found]
    problems = [problem for repository, models in found for problem in _problems(repository, models, strict=options.strict)]
    if problems:
        raise RepositoryError(problems)
    served: list[Path] = []
    warnings: list[str] = []
    originals: dict[Path, Path] = {}
    for number, (repository, models) in enumerate(found):
        if not models:
            served.append(repository)
            continue
        copy = target / str(number)
        _copy(repository, copy, models)
        served.append(copy)
        originals[copy] = repository
        release = options.release or EMBEDDED_RELEASE
        for name, adapted in models.items():
            refused = [f"release {release} would refuse it on such a machine"] if adapted.refused else []
            if adapted.differences:
                warnings.append(f"model {name}: {'; '.join([*adapted.differences, *refused])}")
        if options.model_control == "poll":
            warnings.append(f"{repository}: an adapted copy is served, which does not follow changes of the repository; polling has no effect on it")
    wants_cache = any(config.response_cache.enable for _, models in configs for config in models.values())
    builds = machine.gpus != 0 and any(_has_engines(config) for _, models in configs for config in models.values())
    return Served(tuple(served), tuple(warnings), originals, wants_cache, builds)


def _has_engines(config: Any) -> bool:
    return any(accelerator.name == "tensorrt" for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator)


def plan_source(repository: Path, model: str, version: str) -> Path:
    """The folder of the source ONNX of a plan: where the recipe has it; else, for one that was put there by hand, the version's folder or the model's.

    A folder of the version alone says nothing: a build leaves the plan's manifest there.
    """
    folder = artifacts(repository, model)
    try:
        recipes = load_recipes(folder / RECIPES)
    except (ValueError, OSError):
        recipes = ()  # what is wrong with them, `check` says; the source may be there all the same
    brought = folder / version if (folder / version / adapt.SOURCE_FILE).is_file() else folder
    return next((folder / recipe.onnx.parent for recipe in recipes if str(recipe.version) == version), brought)


def artifacts(repository: Path, model: str) -> Path:
    """Where a model's files lie that Triton must not see, its source ONNX among them. Raises RepositoryError as `repository_root` does."""
    return artifacts_beside(repository_root(repository)) / model


def _configs(repository: Path) -> dict[str, Any]:
    """Every model's config. One that cannot be read is left to Triton, which says why."""
    found = {}
    for folder in sorted(path for path in repository.iterdir() if path.is_dir()):
        try:
            config = parse_pbtxt((folder / CONFIG).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, text_format.ParseError):
            continue
        if not config.name:
            config.name = folder.name
        found[folder.name] = config
    return found


def _adapted(configs: Mapping[str, Any], machine: Machine) -> dict[str, Adapted]:
    """The models that cannot be served as they are."""
    return {name: adapted for name, config in configs.items() if (adapted := adapt.adapt(config, machine)) is not None}


def _problems(repository: Path, models: dict[str, Adapted], *, strict: bool) -> list[Diagnostic]:
    problems = []
    for name, adapted in models.items():
        versions = sorted(inner.name for inner in (repository / name).iterdir() if inner.is_dir() and inner.name.isdigit()) or [""]
        source = next((path for path in (plan_source(repository, name, version) / adapt.SOURCE_FILE for version in versions) if not path.is_file()), None)
        if strict and adapted.differences:
            problems.append(
                Diagnostic(
                    "TG903",
                    f"model {name!r} cannot be served here as its config asks: {'; '.join(adapted.differences)}",
                    Location(str(repository / name / CONFIG)),
                    consequence="Triton refuses to load it on this machine",
                    hint="serve it where the GPU is, or leave out --strict to serve an adapted copy",
                    model=name,
                )
            )
        elif adapted.needs_source and source is not None:
            problems.append(
                Diagnostic(
                    "TG904",
                    f"model {name!r} is a TensorRT plan, which the embedded server cannot run, and its source ONNX is not at {source}",
                    Location(str(repository / name / CONFIG)),
                    consequence="the embedded Triton has no TensorRT backend and refuses to load it",
                    hint="put the ONNX there (`tritongen render` does), or serve the plan with NVIDIA's container on a machine with a GPU",
                    model=name,
                )
            )
    return problems


def _copy(repository: Path, copy: Path, models: dict[str, Adapted]) -> None:
    """Link everything of a repository but the configs that change."""
    copy.mkdir(parents=True)
    for entry in repository.absolute().iterdir():
        adapted = models.get(entry.name)
        if adapted is None:
            (copy / entry.name).symlink_to(entry)
            continue
        folder = copy / entry.name
        folder.mkdir()
        (folder / CONFIG).write_text(print_pbtxt(adapted.config), encoding="utf-8")
        for inner in entry.iterdir():
            if inner.name == CONFIG.name:
                continue
            replaced = adapted.needs_source and inner.is_dir() and inner.name.isdigit()
            (folder / inner.name).symlink_to(plan_source(repository, entry.name, inner.name) if replaced else inner)
        for cache in adapted.folders:
            Path(cache).mkdir(parents=True, exist_ok=True)
