"""Recipes of plans → the shell script that builds them on the machine that serves them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tritongen.manifest import FORMAT
from tritongen.recipe import PlanFile, PlanRecipe
from tritongen.render.findings import Findings
from tritongen.render.trtexec import tensorrt_major, trtexec_options
from tritongen.repository import Entry, KeptFile
from tritongen.repository.stamp import stamp_text
from tritongen.templating import comment, environment

SCRIPT = PurePosixPath("build_plans.sh")
"""Name of the script in the repository's artifacts folder."""


@dataclass(frozen=True)
class _Scripted:
    """One recipe as the template writes it. Texts may hold any character; the template quotes them."""

    model: str
    words: str
    version: int
    plans: tuple[PlanFile, ...]
    onnx: str
    files: tuple[tuple[str, str], ...]
    hardware_compatibility: str
    version_compatible: bool
    fingerprint: str
    options_json: str
    options: tuple[str, ...]
    problem: str


def shared_files(entries: Sequence[Entry], *, image: str, spec_name: str, tritongen_version: str) -> dict[PurePosixPath, bytes | None]:
    """What lies in the artifacts folder for all models together: the script, where there are plans to build, else None in its place."""
    kept = [file.recipe for entry in entries for file in entry.files.values() if isinstance(file, KeptFile) and file.recipe is not None]
    recipes = list({(recipe.model, recipe.version): recipe for recipe in kept}.values())
    return {SCRIPT: build_script(recipes, image=image, spec_name=spec_name, tritongen_version=tritongen_version) if recipes else None}


def judge_trtexec(recipes: Sequence[PlanRecipe], findings: Findings) -> None:
    """Say what the script will not be able to build."""
    for problem in dict.fromkeys(problem for recipe in recipes for problem in trtexec_options(recipe).problems):
        findings.warning(
            "TG184",
            ("backend",),
            problem,
            consequence=f"{SCRIPT} builds the other plans, and fails for this one",
            hint="build it on the GPU that serves it with `tritongen build`, or give the input another name in the ONNX file",
        )


def build_script(recipes: Sequence[PlanRecipe], *, image: str, spec_name: str, tritongen_version: str) -> bytes:
    """The script for the plans of a whole repository, all of which the same release loads; with a stamp, so that a hand edit is found."""
    release = recipes[0]
    text = (
        environment()
        .get_template("build_plans.sh.j2")
        .render(
            recipes=[_scripted(recipe) for recipe in recipes],
            release=release.release,
            release_tensorrt=(release.target and release.target.tensorrt) or "",
            release_major=tensorrt_major(release),
            image=image,
            manifest_format=FORMAT,
            spec_name=spec_name,
            tritongen_version=tritongen_version,
        )
    )
    lines = text.splitlines(keepends=True)
    end = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    return stamp_text("".join(lines[:end]), "".join(lines[end:]), {}, {}, {}).encode()


def _scripted(recipe: PlanRecipe) -> _Scripted:
    told = trtexec_options(recipe)
    return _Scripted(
        recipe.model,
        comment(recipe.model),
        recipe.version,
        recipe.plans,
        str(recipe.onnx),
        # With ./ before them, no file is taken for the -- that ends the list.
        tuple((f"./{path}", sha) for path, sha in sorted(recipe.files.items())),
        recipe.hardware_compatibility,
        recipe.version_compatible,
        recipe.fingerprint,
        json.dumps(recipe.build_options, sort_keys=True),
        told.options,
        "; ".join(told.problems),
    )
