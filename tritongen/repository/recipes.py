"""The recipes of all plans that a repository will have when a plan was applied: those of the models that are written, and of those that stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritongen.recipe import RECIPES, PlanRecipe, load_recipes
from tritongen.repository.entry import Entry
from tritongen.repository.place import artifacts_beside


def recipes_of(entry: Entry | None, root: Path, name: str) -> tuple[tuple[PlanRecipe, ...], str]:
    """The recipes of one model: its entry's, or, for one that has none, those on the disk; and in words why these cannot be used."""
    if entry is not None:
        return entry.recipes, ""
    file = artifacts_beside(root) / name / RECIPES
    if not (root / name).is_dir():
        return (), ""
    try:
        return load_recipes(file), ""
    except (ValueError, OSError) as error:
        return (), f"it has no part for {name}, which stays as it is: {file} cannot be used: {error}"


def recipes_after(root: Path, models: Sequence[tuple[str, Entry | None]]) -> tuple[list[PlanRecipe], list[str]]:
    """Those of all models, and what is to be said of some; `models`: the name of each that will be there, with its entry where it is written or kept."""
    found = [recipes_of(entry, root, name) for name, entry in models]
    return [recipe for recipes, _ in found for recipe in recipes], [problem for _, problem in found if problem]
