"""What a plan was made from: written beside it when it is built, and compared with what would be built now.

`stale` is pure and says each difference that matters. What does not matter is recorded and never compared: another driver loads the same plan, and another
version of tritongen builds the same one from an equal recipe. The build script writes manifests too (`templates/build_plans.sh.j2`), one key on a line.

Source of what matters: NVIDIA's TensorRT documentation on the compatibility of serialized engines (version, GPU, VERSION_COMPATIBLE,
HardwareCompatibilityLevel).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tritongen.recipe import PlanFile, PlanRecipe
from tritongen.releases import Release, same_version
from tritongen.signature.plan import TENSORRT

FORMAT = 1
"""Version of a manifest's format."""

_MOST_BYTES = 1 << 24
"""A larger file is no manifest that anybody wrote."""

_AMPERE = (8, 0)
_WORDS = {
    "precision": "precision",
    "strongly_typed": "binding types",
    "tf32": "TF32",
    "workspace_bytes": "workspace in bytes",
    "optimization_level": "optimization level",
    "version_compatible": "version compatibility",
    "hardware_compatibility": "hardware compatibility",
    "strip": "stripped weights",
    "refit": "refitting",
    "plugins": "plugins",
    "dla_core": "deep learning accelerator",
    "gpu_fallback": "fallback to the GPU",
}
"""Build options of a recipe, in words; files and profiles have sentences of their own."""


@dataclass(frozen=True)
class Builder:
    """Who built a plan, and on what. Empty texts are what nobody knows.

    Attributes:
        kind: `tensorrt` or `tensorrt-rtx`.
        tensorrt: version of that library.
        cuda: version of CUDA.
        compute_capability: of the GPU, such as `8.6`.
        gpu: its name.
        driver: version of the driver.
        release: the container release that it was built in, as YY.MM.
        tritongen: version of tritongen that built it, or that wrote the script.
    """

    kind: str
    tensorrt: str
    cuda: str = ""
    compute_capability: str = ""
    gpu: str = ""
    driver: str = ""
    release: str = ""
    tritongen: str = ""


@dataclass(frozen=True)
class Manifest:
    """What one plan was made from.

    Attributes:
        sha256: SHA-256 (hex) of the plan's own content.
        options: the recipe's `build_options`.
        fingerprint: the recipe's `fingerprint`.
        builder: what built it.
    """

    sha256: str
    options: Mapping[str, Any]
    fingerprint: str
    builder: Builder


@dataclass(frozen=True)
class LoadedBy:
    """What will load a plan, as far as it is known.

    Attributes:
        release: the container release; None where nobody said, or where it is not in the table.
        tensorrt: the exact version of TensorRT, where it is at hand; else that of the release counts.
        compute_capability: of the GPU, such as `8.6`; empty where it is not known.
        kind: the library, `tensorrt` or `tensorrt-rtx`.
    """

    release: Release | None = None
    tensorrt: str = ""
    compute_capability: str = ""
    kind: str = TENSORRT


def make_manifest(recipe: PlanRecipe, plan_sha256: str, builder: Builder) -> Manifest:
    """The manifest of a plan with this hash that `builder` made by `recipe`."""
    return Manifest(plan_sha256, _plain(recipe), recipe.fingerprint, builder)


def _plain(recipe: PlanRecipe) -> dict[str, Any]:
    """The build options as they are read back from text: with lists in place of tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(recipe.build_options))
    return plain


def manifest_path(version: int, plan: str) -> PurePosixPath:
    """Where the manifest of a plan lies in the model's artifacts folder: one file for each plan, since each GPU's is built on another machine."""
    return PurePosixPath(str(version), f"{plan}.manifest.json")


def print_manifest(manifest: Manifest) -> str:
    """The manifest as the JSON text of a file; equal manifests give equal text, each key on a line of its own, `options` as a whole."""
    plain = {**dataclasses.asdict(manifest.builder), "sha256": manifest.sha256, "fingerprint": manifest.fingerprint, "format": FORMAT}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(plain.items())]
    return "{\n" + ",\n".join([*lines, f' "options": {json.dumps(manifest.options, sort_keys=True)}']) + "\n}\n"


def read_manifest(text: str) -> Manifest:
    """The manifest in such a text. Raises ValueError, with the reason in words, where it is not one, or one of a later format."""
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict) or "fingerprint" not in data:
        raise ValueError("it is no manifest of a plan")
    if data.get("format") != FORMAT:
        raise ValueError(f"it has the format {data.get('format')!r}, and this tritongen reads format {FORMAT}")
    names = [field.name for field in dataclasses.fields(Builder)]
    wrong = [name for name in (*names, "sha256", "fingerprint") if not isinstance(data.get(name), str)]
    wrong += [] if isinstance(data.get("options"), dict) else ["options"]
    if wrong:
        raise ValueError(f"it is damaged: {', '.join(wrong)}")
    return Manifest(data["sha256"], data["options"], data["fingerprint"], Builder(**{name: data[name] for name in names}))


def load_manifest(path: Path) -> Manifest | None:
    """The manifest in a file; None where there is no such file. Raises ValueError where it is not one, OSError where it cannot be read."""
    if not path.is_file():
        return None
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes, and was not read")
    return read_manifest(path.read_text(encoding="utf-8"))


def stale(manifest: Manifest, recipe: PlanRecipe, plan: PlanFile, loader: LoadedBy) -> tuple[str, ...]:
    """Why the plan that `manifest` describes is not the one that `recipe` asks for, or does not load where it shall; empty where it is good.

    Each reason is a clause about the plan, such as `was built with TensorRT 10.3.0, and release 25.08 has 10.13.2.6`.
    """
    return (*changed_options(manifest, recipe), *not_loadable(manifest, plan, loader))


def changed_options(manifest: Manifest, recipe: PlanRecipe) -> tuple[str, ...]:
    """What a recipe asks for otherwise than the plan was built, as clauses about the plan."""
    if manifest.fingerprint == recipe.fingerprint:
        return ()
    reasons = list(_changed(manifest.options, _plain(recipe)))
    return tuple(reasons) if reasons else ("was built by a recipe that cannot be compared with this one",)


def _changed(built: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    if built.get("files") != wanted["files"]:
        yield from _changed_files(built.get("files"), wanted["files"])
    if built.get("profiles") != wanted["profiles"]:
        yield from _changed_profiles(built.get("profiles"), wanted["profiles"])
    for key, word in _WORDS.items():
        if built.get(key) != wanted[key]:
            yield f"was built with {word} {_shown(built.get(key))}, and {_shown(wanted[key])} is asked for"


def _changed_files(built: Any, wanted: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*(built if isinstance(built, dict) else ()), *wanted}):
        old = built.get(name) if isinstance(built, dict) else None
        if old != wanted.get(name):
            was, now = (f"SHA-256 {str(sha)[:12]}..." if sha else "none" for sha in (old, wanted.get(name)))
            yield f"was built from another {name} ({was}; it is now {now})"


def _changed_profiles(built: Any, wanted: list[Any]) -> Iterator[str]:
    if not isinstance(built, list) or len(built) != len(wanted):
        yield f"was built with {len(built) if isinstance(built, list) else 'other'} profiles, and {len(wanted)} are asked for"
        return
    for number, (old, new) in enumerate(zip(built, wanted, strict=True)):
        if old != new:
            yield f"was built with other sizes in profile {number}: {_sizes(old)}; asked for are {_sizes(new)}"


def _sizes(profile: Any) -> str:
    """A profile of the plain form, in words: `x 1x8 to 16x8, tuned for 4x8`. A manifest may have been edited: what is no profile is said to be none."""
    texts = []
    try:
        for name, span in [*profile["shapes"].items(), *profile["values"].items()]:
            least, usual, most = ("x".join(map(str, span[which])) for which in ("minimum", "optimum", "maximum"))
            texts.append(f"{name} {least} to {most}, tuned for {usual}")
    except (KeyError, TypeError, AttributeError):
        return "none that can be read"
    return "; ".join(texts) or "none"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def not_loadable(manifest: Manifest, plan: PlanFile, loader: LoadedBy) -> tuple[str, ...]:
    """Why the plan does not load where it shall, as clauses about the plan."""
    return tuple(_obstacles(manifest, plan, loader))


def _obstacles(manifest: Manifest, plan: PlanFile, loader: LoadedBy) -> Iterator[str]:
    builder = manifest.builder
    if builder.kind != loader.kind:
        yield f"was built by {builder.kind}, and {loader.kind} loads no such plan"
        return
    later_too = bool(manifest.options.get("version_compatible"))
    if reason := other_tensorrt(builder.tensorrt, loader, later_too=later_too, built_in=builder.release):
        yield reason
    hardware = str(manifest.options.get("hardware_compatibility"))
    for wanted, whose in ((plan.compute_capability, "the plan is for"), (loader.compute_capability, "this GPU has")):
        if not _runs_on(builder.compute_capability, wanted, hardware):
            yield f"was built on a GPU of compute capability {builder.compute_capability}, and {whose} {wanted}"
            return


def other_tensorrt(version: str, loader: LoadedBy, *, later_too: bool = False, built_in: str = "") -> str:
    """Why a plan that TensorRT `version` wrote does not load; empty where it does, or where that is not known.

    Args:
        version: the version that stands in the plan's header or manifest; empty where it is not known.
        loader: what will load it.
        later_too: whether the plan was built for later versions of the same major, too.
        built_in: the release that it was built in; a plan built in the very image that loads it is never refused for its version.
    """
    release = loader.release
    if not version or (not loader.tensorrt and release is not None and release.name == built_in):
        return ""
    was = f"was built with TensorRT {version}{f' (release {built_in})' if built_in else ''}"
    have = loader.tensorrt or (release.tensorrt if release else None)
    if have:
        later = later_too and version.split(".")[0] == have.split(".")[0] and _numbers(version) <= _numbers(have)
        owner = f"release {release.name}" if release is not None and not loader.tensorrt else "what loads it"
        return "" if later or same_version(version, have) else f"{was}, and {owner} has {have}"
    if release is None or later_too:
        return ""
    least = release.least_tensorrt
    if built_in or (_numbers(version) < _numbers(least) and not same_version(version, least)):
        return f"{was}, and release {release.name} has {release.tensorrt_text}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """A version for comparing by age; what is not stated counts as nothing."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _runs_on(built: str, wanted: str, hardware: str) -> bool:
    """Whether a plan built on one compute capability runs on another; True where either is not known."""
    if not built or not wanted or built == wanted:
        return True
    return hardware == "ampere_plus" and _numbers(built) >= _AMPERE and _numbers(wanted) >= _AMPERE
