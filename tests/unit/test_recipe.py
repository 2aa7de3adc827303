"""Recipes of plans: written, read back, and told apart."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path, PurePosixPath

import pytest

from tritongen.recipe import RECIPES, PlanFile, PlanRecipe, Profile, Span, load_recipes, print_recipes, read_recipes

FULL = PlanRecipe(
    model="m",
    version=3,
    plans=(PlanFile("model.plan.86", "8.6", "timing.86.cache"), PlanFile("model.plan.90", "9.0", "timing.90.cache")),
    onnx=PurePosixPath("3/model.onnx"),
    files={PurePosixPath("3/model.onnx"): "ab" * 32, PurePosixPath("3/weights é.bin"): "cd" * 32},
    profiles=tuple(Profile({"x y": Span((1, 3), (usual, 3), (8, 3))}, {"size": Span((1,), (2,), (3,))}) for usual in (4, 8)),
    precision="fp16",
    workspace_bytes=1 << 30,
    optimization_level=5,
    plugins=("libmine.so",),
    dla_core=0,
    release="25.08",
)


def test_recipes_are_read_as_they_were_written() -> None:
    other = dataclasses.replace(FULL, version=4, profiles=(), workspace_bytes=None, dla_core=None)
    assert read_recipes(print_recipes([FULL, other])) == (FULL, other)


def test_equal_recipes_are_equal_texts_whatever_the_order_of_their_keys() -> None:
    turned = dataclasses.replace(FULL, files=dict(reversed(FULL.files.items())))
    assert print_recipes([turned]) == print_recipes([FULL])
    assert turned.fingerprint == FULL.fingerprint


CHANGES = {
    "files": {PurePosixPath("3/model.onnx"): "ef" * 32},
    "profiles": FULL.profiles[:1],
    "precision": "bf16",
    "strongly_typed": True,
    "tf32": False,
    "workspace_bytes": None,
    "optimization_level": 4,
    "version_compatible": True,
    "hardware_compatibility": "ampere_plus",
    "strip": True,
    "refit": True,
    "plugins": (),
    "dla_core": 1,
    "gpu_fallback": False,
}


@pytest.mark.parametrize("key", CHANGES)
def test_whatever_changes_a_plan_changes_the_fingerprint(key: str) -> None:
    assert dataclasses.replace(FULL, **{key: CHANGES[key]}).fingerprint != FULL.fingerprint


def test_every_field_of_a_recipe_is_known_to_change_the_plan_or_not_to() -> None:
    assert {field.name for field in dataclasses.fields(PlanRecipe)} == {*CHANGES, "model", "version", "plans", "onnx", "release", "gpus"}


def test_precision_is_a_flag_only_where_the_file_does_not_decide() -> None:
    assert FULL.precision_flags(10) == ("FP16",)
    assert dataclasses.replace(FULL, strongly_typed=True).precision_flags(10) == ()
    assert dataclasses.replace(FULL, precision="tf32").precision_flags(10) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no file of recipes"),
        ('{"recipes": 3}', "no file of recipes"),
        ("{", "Expecting"),
        (json.dumps({"format": 2, "recipes": []}), "format 2"),
        (json.dumps({"format": 1, "recipes": [{"model": "m"}]}), "damaged"),
        (json.dumps({"format": 1, "recipes": [3]}), "damaged"),
        (print_recipes([FULL]).replace('"tf32": true', '"tf32": "perhaps"'), "damaged: recipes.0.tf32: "),
        (print_recipes([FULL]).replace('"onnx": "3/', '"onnx": "4/'), "no hash of 4/model.onnx"),
        (print_recipes([FULL, FULL]), "2 recipes of version 3"),
    ],
)
def test_what_is_no_file_of_recipes_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_recipes(text)


WRONG = {
    "model": "../m",
    "version": 0,
    "plans": (),
    "onnx": PurePosixPath("/etc/passwd"),
    "files": {PurePosixPath("3/model.onnx"): "ab"},
    "profiles": (Profile({"x": Span((1, 3), (4, 3), (2, 3))}),),
    "precision": "fp8",
    "strongly_typed": 1,
    "tf32": "true",
    "workspace_bytes": -1,
    "optimization_level": 6,
    "version_compatible": None,
    "hardware_compatibility": "all",
    "strip": "no",
    "refit": 0,
    "plugins": ("",),
    "dla_core": -1,
    "gpu_fallback": [],
    "release": "latest",
    "gpus": (-1,),
}


@pytest.mark.parametrize("key", [field.name for field in dataclasses.fields(PlanRecipe)])
def test_no_value_of_a_recipe_is_taken_unseen(key: str) -> None:
    with pytest.raises(ValueError, match="it is damaged"):
        read_recipes(print_recipes([dataclasses.replace(FULL, **{key: WRONG[key]})]))


@pytest.mark.parametrize(
    "change",
    [
        {"plans": (PlanFile("../model.plan"),)},
        {"plans": (PlanFile("model.plan", "86"),)},
        {"plans": (PlanFile("model.plan", timing_cache="/tmp/timing.cache"),)},
        {"plans": (PlanFile("model.plan"), PlanFile("model.plan"))},
        {"files": {**FULL.files, PurePosixPath("../weights.bin"): "ab" * 32}},
        {"files": {**FULL.files, PurePosixPath("4/weights.bin"): "ab" * 32}},
        {"profiles": (Profile({"x": Span((1,), (1, 2), (1,))}),)},
        {"profiles": (Profile({"x": Span((-1,), (1,), (1,))}),)},
        {"profiles": (Profile({"x": Span((1,), (1,), (1 << 63,))}),)},
        {"profiles": (Profile({"x": Span((1,), (1,), (1,))}), Profile({"y": Span((1,), (1,), (1,))}))},
        {"profiles": (Profile({"x": Span((1,), (1,), (1,))}), Profile({"x": Span((1, 1), (1, 1), (1, 1))}))},
        {"version": 1 << 63},
    ],
)
def test_a_recipe_neither_leads_out_of_its_folder_nor_contradicts_itself(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="it is damaged"):
        read_recipes(print_recipes([dataclasses.replace(FULL, **change)]))


def test_recipes_of_another_model_are_none_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / RECIPES).write_text(print_recipes([FULL]))
    with pytest.raises(ValueError, match="recipes of 'm', and lies in the folder of 'other'"):
        load_recipes(tmp_path / "other" / RECIPES)
    assert load_recipes(tmp_path / "m" / RECIPES) == ()


def test_the_same_model_in_another_version_folder_makes_the_same_plan() -> None:
    moved = {PurePosixPath("4", *path.parts[1:]): sha for path, sha in FULL.files.items()}
    assert dataclasses.replace(FULL, version=4, onnx=PurePosixPath("4/model.onnx"), files=moved).fingerprint == FULL.fingerprint
