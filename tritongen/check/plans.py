"""TensorRT plans on a disk → what rules look at: their first bytes, and what lies beside the repository about their making."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from tritongen.errors import ModelFileError
from tritongen.manifest import Manifest, load_manifest, manifest_path
from tritongen.recipe import RECIPES, PlanRecipe, load_recipes
from tritongen.repository import artifacts_beside, file_sha256
from tritongen.rules.context import BuiltPlan, ModelContext
from tritongen.signature.modelfile import opened
from tritongen.signature.plan import HEADER_BYTES, PlanHeader, read_plan_header


def built_plans(context: ModelContext) -> dict[str, BuiltPlan]:
    """The plans that a model's config names and that can be read, by path in its folder; none for other models."""
    if context.folder is None or not context.is_plan:
        return {}
    root = context.folder.path.parent.resolve()
    if not root.name:
        return {}
    artifacts = artifacts_beside(root) / context.folder.name
    recipes, problem = _recipes(artifacts / RECIPES)
    names = dict.fromkeys((context.resolved.filename, *context.config.cc_model_filenames.values()))
    found = {}
    for number, version in context.versions.loaded.items():
        for name in names:
            facts = context.folder.entries.get(f"{version}/{name}")
            if facts is not None and facts.can_be_read:
                path = context.folder.path / version / name
                found[f"{version}/{name}"] = _built(path, artifacts / manifest_path(number, name), (number, name), recipes, problem)
    return found


def _built(path: Path, manifest_file: Path, which: tuple[int, str], recipes: tuple[PlanRecipe, ...], problem: str) -> BuiltPlan:
    recipe, file = next(((recipe, plan) for recipe in recipes for plan in recipe.plans if (recipe.version, plan.name) == which), (None, None))
    manifest = None
    try:
        manifest = load_manifest(manifest_file)
    except (ValueError, OSError) as error:
        problem = f"its manifest {manifest_file} cannot be used: {_reason(error)}"
    described = partial(_is_described, path, manifest) if manifest is not None else lambda: False
    return BuiltPlan(_header(path), recipe, file, manifest, problem, described)


def _recipes(path: Path) -> tuple[tuple[PlanRecipe, ...], str]:
    """The recipes in a file, and why there are none though the file is there."""
    try:
        return load_recipes(path), ""
    except (ValueError, OSError) as error:
        return (), f"the recipes {path} cannot be used: {_reason(error)}"


def _reason(error: ValueError | OSError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _header(path: Path) -> PlanHeader | None:
    try:
        with opened(path) as (descriptor, _):
            return read_plan_header(os.pread(descriptor, HEADER_BYTES, 0))
    except ModelFileError:
        return None  # another rule says what is wrong with the file


def _is_described(path: Path, manifest: Manifest) -> bool:
    try:
        return file_sha256(path) == manifest.sha256
    except OSError:
        return False
