"""A compiled model → the `Entry` that holds every file of its folder."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.modelconfig import print_pbtxt
from tritongen.recipe import RECIPES, PlanRecipe, print_recipes
from tritongen.render.backends import BACKENDS
from tritongen.render.compile import Compiled, label_filename
from tritongen.render.findings import Findings, Key
from tritongen.repository import CONFIG, CopiedFile, Entry, EntryFile, KeptFile, Made, TextFile, file_sha256
from tritongen.repository.stamp import stamp_text
from tritongen.repository.unfinished import is_unfinished
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.templating import environment

SOURCE_NAME = "model.onnx"
_OWN_NAMES = (PurePosixPath(SOURCE_NAME), PurePosixPath(BACKENDS["tensorrt"].filename), RECIPES)
_BUILT_NAMES = re.compile(r".*\.plan(\.log)?|.*\.manifest\.json|timing(\..*)?\.cache")
"""What builders call the files that they put beside a plan and its source."""

_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, halves of characters, and ends of lines."""

_SAVE_AGAIN = "save the model again with another name for its external data"


@dataclass(frozen=True)
class ModelFiles:
    """A model's file with its external data: hashes by path relative to the folder that will hold them, and where each is read from."""

    sources: Mapping[PurePosixPath, Path]
    hashes: Mapping[PurePosixPath, str]

    @property
    def digest(self) -> str:
        """One SHA-256 (hex) over all of them."""
        lines = "".join(f"{path} {sha}\n" for path, sha in sorted(self.hashes.items()))
        return hashlib.sha256(lines.encode()).hexdigest()


def hash_model(path: Path, signature: Signature) -> ModelFiles:
    """Read the model and its external data once. Raises OSError where a file cannot be read."""
    sources = {PurePosixPath(location): path.parent / location for location in dict.fromkeys(external.location for external in signature.external_data)}
    sources = {PurePosixPath(SOURCE_NAME): path} | sources
    return ModelFiles(sources, {name: file_sha256(source) for name, source in sources.items()})


def digest_of(files: Sequence[ModelFiles]) -> str:
    """One SHA-256 (hex) over a model's files: that of its only version, or one over those of all."""
    digests = [version.digest for version in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()


def check_names(signature: Signature, key: Key, findings: Findings) -> None:
    """Say where a model's external data has a name that it cannot keep. `key`: the key of the spec that names the model file."""
    for location in dict.fromkeys(external.location for external in signature.external_data):
        if problem := _name_problem(location):
            findings.error("TG133", key, f"the external data file {location!r} {problem}", hint=_SAVE_AGAIN)


def _name_problem(location: str) -> str:
    """Why a file of this name cannot lie beside the model; empty where it can."""
    path = PurePosixPath(location)
    if path in _OWN_NAMES:
        return "has the name that the model itself gets"
    if any(unicodedata.category(char) in _NO_TEXT for char in location):
        return "has control characters or ends of lines in its name"
    if ".." in path.parts:
        return "is named by a way through other folders ('..'), which are not in the repository"
    own = next((own for own in _OWN_NAMES if own in path.parents), None)
    if own is not None:
        return f"lies in a folder with the name of a file that is put there: {own}"
    if _BUILT_NAMES.fullmatch(path.name) or is_unfinished(path):
        return "has the name of a file that a build of the model's plan writes"
    return ""


def build_entry(
    model: ModelSpec,
    compiled: Compiled,
    files: Mapping[int, ModelFiles],
    *,
    previous: Mapping[PurePosixPath, CopiedFile],
    made: Mapping[int, Made],
    recipes: Sequence[PlanRecipe],
    labels: Mapping[str, bytes],
    spec_name: str,
    tritongen_version: str,
    basis: str | None = None,
) -> Entry:
    """All files of the model's folder.

    Args:
        model: what the spec says.
        compiled: its config and warmup data.
        files: by version, the model file with its external data.
        previous: files of earlier versions that stay.
        made: by version, how a rewritten model file came about.
        recipes: how the plans of each version are built; none for a model that is served from its ONNX file.
        labels: content of the label files, by output.
        spec_name: file name of the spec, for the header.
        tritongen_version: likewise.
        basis: for a model that is made from what its folder holds: see `Entry`.
    """
    contents: dict[PurePosixPath, EntryFile] = {**previous}
    artifacts: dict[PurePosixPath, EntryFile] = {}
    plans = {recipe.version: recipe for recipe in recipes}
    for version, model_files in files.items():
        copied = {name: CopiedFile(source, model_files.hashes[name]) for name, source in model_files.sources.items()}
        folder = PurePosixPath(str(version))
        if version in plans:
            contents.update({folder / plan.name: KeptFile(plans[version], plan) for plan in plans[version].plans})
            artifacts.update({plans[version].onnx.parent / name: file for name, file in copied.items()})
        else:
            contents.update({folder / name: file for name, file in copied.items()})
    if recipes:
        artifacts[RECIPES] = TextFile(print_recipes(recipes).encode())
    contents.update({path: TextFile(content) for path, content in compiled.warmup_files.items()})
    contents.update({PurePosixPath(label_filename(model, output)): TextFile(content) for output, content in labels.items()})
    header = (
        environment()
        .get_template("config.pbtxt.j2")
        .render(name=model.name, tritongen_version=tritongen_version, spec_name=spec_name, remarks=compiled.remarks)
    )
    contents[CONFIG] = TextFile(stamp_text(header, print_pbtxt(compiled.config), contents, artifacts, made).encode())
    return Entry(model.name, contents, artifacts, basis=basis)
