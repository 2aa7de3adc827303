"""Recipes of plans → the shell script that builds them on the machine that serves them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tritongen.manifest import CAPABILITY, FORMAT, FORMS
from tritongen.recipe import SCRIPT, PlanFile, PlanRecipe
from tritongen.releases import tensorrt_major_of
from tritongen.render.findings import Findings
from tritongen.render.trtexec import trtexec_options
from tritongen.repository import SharedFile
from tritongen.repository.stamp import stamp_text
from tritongen.spec import ModelSpec
from tritongen.staleness import ANNOUNCED
from tritongen.templating import comment, environment


@dataclass(frozen=True)
class _Scripted:
    """One recipe as the template writes it. Texts may hold any character; the template quotes them. `gpus` are numbers with a blank between them."""

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
    gpus: str


def shared_files(recipes: Sequence[PlanRecipe], *, release: str, image: str, spec_name: str, tritongen_version: str) -> dict[PurePosixPath, SharedFile]:
    """What lies in the artifacts folder for all models together: the script, where there are plans to build, else nothing in its place.

    `recipes`: of all models that will be there. `release`: the one that the spec names; a script is for one, and models that an earlier render made for another
    have no part in it.
    """
    if not recipes:
        return {SCRIPT: SharedFile(None)}
    released = release if any(recipe.release == release for recipe in recipes) else recipes[0].release
    others = dict.fromkeys((recipe.model, recipe.release) for recipe in recipes if recipe.release != released)
    notes = tuple(f"it has no part for {model}, which stays as it is: release {other} loads its plans, and this is for {released}" for model, other in others)
    wanted = [recipe for recipe in recipes if recipe.release == released]
    return {SCRIPT: SharedFile(build_script(wanted, image=image, spec_name=spec_name, tritongen_version=tritongen_version), notes)}


def check_model_name(model: ModelSpec, findings: Findings) -> None:
    """Say where a model's folder for artifacts would get the place of the script. Some disks do not tell upper case from lower case."""
    if model.name.casefold() == str(SCRIPT).casefold():
        findings.error(
            "TG013",
            ("name",),
            f"{model.name!r} is the name of the script that builds plans",
            consequence="the model's files and the script would need the same place in the repository's .artifacts folder",
            hint="give the model another name",
        )


def judge_trtexec(recipes: Sequence[PlanRecipe], findings: Findings) -> None:
    """Say what the script will not be able to build: an error where nothing else builds it either."""
    for problem in dict.fromkeys(problem for recipe in recipes for problem in trtexec_options(recipe).problems):
        if problem.is_final:
            consequence = "the plan cannot be built: `tritongen build` is for TensorRT 10 and newer (release 24.05)"
        else:
            consequence = f"{SCRIPT} builds the other plans, and fails for this one"
        say = findings.error if problem.is_final else findings.warning
        say("TG184", problem.key, problem.message, consequence=consequence, hint=problem.remedy)


def build_script(recipes: Sequence[PlanRecipe], *, image: str, spec_name: str, tritongen_version: str) -> bytes:
    """The script for the plans of a whole repository, all of which the same release loads; with a stamp, so that a hand edit is found."""
    release = recipes[0]
    target = release.target
    text = (
        environment()
        .get_template("build_plans.sh.j2")
        .render(
            recipes=[_scripted(recipe) for recipe in recipes],
            release=release.release,
            release_tensorrt=(target and target.tensorrt) or "",
            release_words=target.tensorrt_text if target else "",
            release_least=target.least_tensorrt if target else "",
            release_most=(target and target.most_tensorrt) or "",
            release_major=tensorrt_major_of(release.release),
            image=image,
            manifest_format=FORMAT,
            announced=ANNOUNCED,
            forms=FORMS | {"capability": CAPABILITY},
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
        "; ".join(f"{problem.message}: {problem.remedy}" for problem in told.problems),
        " ".join(map(str, recipe.gpus)),
    )
