"""TensorRT plans on a disk → what rules look at: their first bytes, and what lies beside the repository about their making."""

from __future__ import annotations

import dataclasses
import os
import posixpath
from functools import partial
from pathlib import Path

from tritongen.errors import ModelFileError
from tritongen.manifest import Manifest, load_manifest, manifest_path
from tritongen.recipe import RECIPES, PlanRecipe, load_recipes
from tritongen.repository import artifacts_beside, file_sha256
from tritongen.rules.context import BuiltPlan, ModelContext
from tritongen.rules.rule import Key
from tritongen.signature.modelfile import HEAD_BYTES, opened


def with_plans(context: ModelContext) -> ModelContext:
    """The context of a model that is a plan, with its plans and recipes.

    They are those of every version that Triton would load: of the file for all GPUs, and of each for GPUs of some compute capability.
    """
    assert context.folder is not None
    root = context.folder.path.parent.resolve()
    # Nothing lies beside a repository that is the root of the disk.
    artifacts = artifacts_beside(root) / context.folder.name if root.name else None
    recipes, problem = _recipes(artifacts / RECIPES) if artifacts is not None else ((), "")
    keys = _names(context)
    found = {}
    for number, version in context.versions.loaded.items():
        for name, key in keys.items():
            facts = context.folder.entries.get(f"{version}/{name}")
            if facts is not None and facts.can_be_read:
                plan = _opened(context.folder.path / version / name, key)
                if artifacts is not None:
                    plan = _described(plan, context.folder.path / version / name, artifacts, (number, name), recipes, problem)
                found[f"{version}/{name}"] = plan
    asked = [recipe for recipe in recipes if recipe.version in context.versions.loaded and any(plan.name in keys for plan in recipe.plans)]
    return dataclasses.replace(context, plans=found, recipes=tuple(sorted(asked, key=lambda recipe: recipe.version)))


def _names(context: ModelContext) -> dict[str, Key]:
    """The names of plans in a version's folder, with the field of the config that says each."""
    keys: dict[str, Key] = {posixpath.normpath(context.resolved.filename): ("default_model_filename",)}
    for capability, name in sorted(context.config.cc_model_filenames.items()):
        keys.setdefault(posixpath.normpath(name), ("cc_model_filenames", capability))
    return keys


def _opened(path: Path, key: Key) -> BuiltPlan:
    try:
        with opened(path) as (descriptor, size):
            return BuiltPlan(key, (os.pread(descriptor, HEAD_BYTES, 0), size))
    except ModelFileError as error:
        return BuiltPlan(key, problems=error.diagnostics)


def _described(plan: BuiltPlan, path: Path, artifacts: Path, which: tuple[int, str], recipes: tuple[PlanRecipe, ...], problem: str) -> BuiltPlan:
    """The plan, with what lies beside the repository about it. `which`: version and name. `problem`: why there are no recipes though their file is there."""
    recipe, file = next(((recipe, each) for recipe in recipes for each in recipe.plans if (recipe.version, each.name) == which), (None, None))
    manifest_file = artifacts / manifest_path(*which)
    manifest = None
    try:
        manifest = load_manifest(manifest_file)
    except (ValueError, OSError) as error:
        problem = f"its manifest {manifest_file} cannot be used: {_reason(error)}"
    if recipe is None and recipes:
        problem = problem or f"no recipe in {artifacts / RECIPES} is for it"
    is_described = partial(_is_described, path, manifest) if manifest is not None else lambda: False
    return dataclasses.replace(plan, recipe=recipe, file=file, manifest=manifest, problem=problem, is_described=is_described)


def _recipes(path: Path) -> tuple[tuple[PlanRecipe, ...], str]:
    """The recipes in a file, and why there are none though the file is there."""
    try:
        return load_recipes(path), ""
    except (ValueError, OSError) as error:
        return (), f"the recipes {path} cannot be used: {_reason(error)}"


def _reason(error: ValueError | OSError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _is_described(path: Path, manifest: Manifest) -> bool:
    try:
        return file_sha256(path) == manifest.sha256
    except OSError:
        return False
