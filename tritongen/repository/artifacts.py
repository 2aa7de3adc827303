"""A model's files beside the repository, which Triton must not see: whose each is, what is in the way of new ones, what goes with a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from tritongen.recipe import RECIPES, print_recipes, read_recipes
from tritongen.repository.comparing import content_of_text, is_edited, is_regular, listing, stamp_of
from tritongen.repository.digests import file_sha256
from tritongen.repository.entry import Entry, KeptFile
from tritongen.repository.place import artifacts_beside, is_link_of_another
from tritongen.repository.stamp import Stamp
from tritongen.repository.system import owner_of, remove_empty
from tritongen.repository.unfinished import is_unfinished

_PRODUCTS = (".manifest.json", ".log")
"""Endings of what a builder leaves for a plan; the first is that of `manifest.manifest_path`."""

_TIMES = re.compile(r"timing(\.[^/]*)?\.cache")
"""Files with the times of kernels (`PlanFile.timing_cache`)."""


def blocked_artifacts(root: Path, model: str, wanted: Iterable[PurePosixPath]) -> list[str]:
    """Why files cannot be put into a model's artifacts folder, or taken from it, whatever is taken over. Raises OSError.

    That is a file in a folder's place, a folder in a file's, or a folder that is a link of another user's (`is_link_of_another`).
    """
    found: dict[str, None] = {}
    artifacts = artifacts_beside(root) / model
    for path in wanted:
        folders = [artifacts.parent, *(artifacts / parent for parent in reversed(path.parents))]
        found |= {f"{folder} is a link that user {owner_of(folder)} made": None for folder in folders if is_link_of_another(folder, root)}
        found |= {f"{folder} is no folder": None for folder in folders if (folder.exists() or folder.is_symlink()) and not folder.is_dir()}
        if (artifacts / path).is_dir() and not (artifacts / path).is_symlink():
            found[f"{artifacts / path} is no file"] = None
    return [*found]


def foreign_artifacts(artifacts: Path, differing: Iterable[PurePosixPath], model: str, stamp: Stamp | None) -> list[str]:
    """Which of the files that would be overwritten are somebody's work. `stamp`: of the model's config, None where there is none. Raises OSError."""
    written = stamp.artifacts if stamp is not None else _vouched_for(artifacts, model)
    reasons = []
    for path in differing:
        if path not in written:
            reasons.append(f"{artifacts / path} was not made by tritongen, and its place is needed")
        elif is_edited(artifacts / path, written[path]):
            reasons.append(f"{artifacts / path} was changed by hand")
    return reasons


def _vouched_for(artifacts: Path, model: str) -> Mapping[PurePosixPath, str]:
    """Of a model whose folder was removed: its recipes, where they are in our form and about it, and the sources that they name with their SHA-256 (hex)."""
    file = artifacts / RECIPES
    if not is_regular(file):
        return {}
    content = content_of_text(file)
    if content is None:
        return {}
    try:
        recipes = read_recipes(content.decode())
    except ValueError:
        return {}
    if print_recipes(recipes).encode() != content or {recipe.model for recipe in recipes} != {model}:
        return {}
    return {path: sha for recipe in recipes for path, sha in recipe.files.items()} | {RECIPES: file_sha256(file)}


def stale_artifacts(artifacts: Path, entry: Entry | None, stamp: Stamp | None) -> tuple[PurePosixPath, ...]:
    """Files of an artifacts folder that are no longer wanted: those that we wrote and that are as we wrote them, and what a builder made of them.

    `entry`: what the model is to be; None for one that is removed. Raises OSError.
    """
    if stamp is None:
        return ()
    asked = set(entry.artifacts) if entry is not None else set()
    kept = {path: file for path, file in entry.files.items() if isinstance(file, KeptFile)} if entry is not None else {}
    gone = [
        path for path, written in stamp.artifacts.items() if path not in asked and is_regular(artifacts / path) and file_sha256(artifacts / path) == written
    ]
    made = [path for path in _made_by_builders(listing(artifacts), stamp.kept, kept) if path not in asked]
    return tuple(sorted({*gone, *made}))


def _made_by_builders(found: Iterable[PurePosixPath], before: Iterable[PurePosixPath], kept: Mapping[PurePosixPath, KeptFile]) -> Iterator[PurePosixPath]:
    """What builders leave in a model's artifacts folder for plans that it had, and has no more; their unfinished files too."""
    gone = {path for path in before if path not in kept}
    products = _products(gone, kept)
    caches = {file.plan.timing_cache for file in kept.values() if file.plan is not None}
    for path in found:
        is_idle_cache = bool(_TIMES.fullmatch(str(path))) and path.name not in caches
        if path in products or (gone and (is_idle_cache or (not kept and is_unfinished(path)))):
            yield path


def _products(plans: Collection[PurePosixPath], others: Collection[PurePosixPath]) -> set[PurePosixPath]:
    """What builders make for plans beside the repository, without what `others` have of it too: a plan of TensorRT-RTX stands for all of its version."""
    rtx = {_rtx(path) for path in plans} - {_rtx(path) for path in others}
    return {path.with_name(path.name + ending) for path in (*plans, *rtx) for ending in _PRODUCTS} | (rtx - {*plans})


def _rtx(plan: PurePosixPath) -> PurePosixPath:
    """The plan of TensorRT-RTX beside one of TensorRT (`build.survey`): one for several kinds of GPU."""
    return plan.with_name(f"{plan.name.partition('.')[0]}.rtx{plan.suffix}")


def take_back(root: Path, staged: Sequence[Path]) -> None:
    """Undo what a killed render did to the artifacts of models that it did not swap: else no stamp would know them. Raises OSError.

    `staged`: the folders that it staged in. A model's artifacts are placed before the model itself; what they were is in `was`.
    """
    for name in sorted({path.name for folder in staged for part in ("new", "was") if (folder / part).is_dir() for path in (folder / part).iterdir()}):
        artifacts, live = artifacts_beside(root) / name, stamp_of(root / name)
        fresh = next((stamp for folder in staged if (stamp := stamp_of(folder / "new" / name))), None)
        written = live.artifacts if live is not None else {}
        placed = {path: sha for path, sha in fresh.artifacts.items() if path not in written} if fresh is not None else {}
        for path, sha in placed.items():
            if is_regular(artifacts / path) and file_sha256(artifacts / path) == sha:
                (artifacts / path).unlink()
        moved = [(folder / "was" / name, path) for folder in staged for path in listing(folder / "was" / name)]
        for folder, path in moved:
            if _belongs_to(live, path, folder / path) if live is not None else fresh is not None:
                artifacts.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).replace(artifacts / path)
        touched = [*placed, *(path for _, path in moved), *(path for folder in staged for path in listing(folder / "artifacts" / name))]
        remove_empty([*folders_of(artifacts, touched), artifacts.parent] if touched else [])


def _belongs_to(model: Stamp, path: PurePosixPath, file: Path) -> bool:
    """Whether a file that was moved out of an artifacts folder is one of a model's: as it was written with it, or made for a plan of it. Raises OSError."""
    return path in _products(model.kept, ()) or model.artifacts.get(path) == file_sha256(file)


def folders_of(artifacts: Path, paths: Iterable[PurePosixPath]) -> list[Path]:
    """The folders that some files of a model's artifacts folder lie in, that folder too, the inner ones first."""
    return sorted({artifacts / parent for path in paths for parent in path.parents}, reverse=True)
