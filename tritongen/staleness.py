"""Whether a plan is the one that is asked for, and loads where it shall: its manifest, held against its recipe and against what will load it.

`stale` is pure and says each difference that matters. What does not matter is recorded and never compared: another driver loads the same plan, and another
version of tritongen builds the same one from an equal recipe.

Source of what matters: NVIDIA's TensorRT documentation on the compatibility of serialized engines (version, GPU, VERSION_COMPATIBLE,
HardwareCompatibilityLevel).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritongen.manifest import Manifest, plain_options
from tritongen.recipe import PlanFile, PlanRecipe
from tritongen.releases import Release, find_release, same_version, version_numbers
from tritongen.signature.plan import TENSORRT, TENSORRT_RTX

_AMPERE = (8, 0)
ANNOUNCED = 3
"""Numbers of a version of TensorRT that NVIDIA announces of a release."""

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


_RTX_IGNORES = ("precision", "strongly_typed", "hardware_compatibility")
"""Build options that make no other plan of TensorRT-RTX: it computes in the types of the ONNX file, and its plans are for several kinds of GPU anyway. The
build script judges manifests of TensorRT only."""


@dataclass(frozen=True)
class LoadedBy:
    """What will load a plan, as far as it is known.

    Attributes:
        release: the container release as YY.MM; empty where nobody said.
        tensorrt: the exact version of TensorRT, where it is at hand; else that of the release counts.
        compute_capability: of the GPU, such as `8.6`; empty where it is not known.
        kind: the library, `tensorrt` or `tensorrt-rtx`.
    """

    release: str = ""
    tensorrt: str = ""
    compute_capability: str = ""
    kind: str = TENSORRT


def stale(manifest: Manifest, recipe: PlanRecipe, plan: PlanFile, loader: LoadedBy) -> tuple[str, ...]:
    """Why the plan that `manifest` describes is not the one that `recipe` asks for, or does not load where it shall; empty where it is good.

    Each reason is a clause about the plan, such as `was built with TensorRT 10.3.0, and release 25.08 has 10.13.2.6`.
    """
    return (*changed_options(manifest, recipe), *not_loadable(manifest, plan, loader))


def changed_options(manifest: Manifest, recipe: PlanRecipe) -> tuple[str, ...]:
    """What a recipe asks for otherwise than the plan was built, as clauses about the plan."""
    if manifest.fingerprint == recipe.fingerprint:
        return ()
    ignored = _RTX_IGNORES if manifest.builder.kind == TENSORRT_RTX else ()
    built, wanted = ({key: value for key, value in options.items() if key not in ignored} for options in (manifest.options, plain_options(recipe)))
    if built == wanted:
        return ()
    reasons = list(_changed(built, wanted))
    return tuple(reasons) if reasons else ("was built by a recipe that cannot be compared with this one",)


def _changed(built: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    if built.get("files") != wanted["files"]:
        yield from _changed_files(built.get("files"), wanted["files"])
    if built.get("profiles") != wanted["profiles"]:
        yield from _changed_profiles(built.get("profiles"), wanted["profiles"])
    for key, word in _WORDS.items():
        if built.get(key) != wanted.get(key):
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
        if not runs_on(builder.compute_capability, wanted, hardware):
            yield f"was built on a GPU of compute capability {builder.compute_capability}, and {whose} {wanted}"
            return


def other_tensorrt(version: str, loader: LoadedBy, *, later_too: bool = False, built_in: str = "") -> str:
    """Why a plan that TensorRT `version` wrote does not load; empty where it does, or where that is not known.

    Args:
        version: the version that stands in the plan's header or manifest; empty where it is not known.
        loader: what will load it.
        later_too: whether the plan was built for later versions of the same major, too.
        built_in: the release that it was built in or for, in any of its images: of the `-py3` one the last number may be another than the table says.
    """
    release = find_release(loader.release)
    library = "TensorRT-RTX" if loader.kind == TENSORRT_RTX else "TensorRT"
    was = f"was built with {library} {version}{f' (release {built_in})' if built_in else ''}"
    if not version:
        return ""
    if loader.tensorrt:
        good = same_version(version, loader.tensorrt) or (later_too and _is_earlier(version, loader.tensorrt))
        return "" if good else f"{was}, and what loads it has {loader.tensorrt}"
    if release is None:
        is_moved = built_in and loader.release and built_in != loader.release and not later_too
        return f"{was}, and which TensorRT release {loader.release} has is not known" if is_moved else ""
    home = built_in == release.name
    if _is_of(version, release, built_in) or (later_too and _is_earlier(version, release.tensorrt or release.most_tensorrt or version)):
        return ""
    if not home:
        which = ", which of them is not known" if release.tensorrt is None and _is_of(version, release, "") else ""
        return f"{was}, and release {release.name} has {release.tensorrt_text}{which}"
    other = release.trtllm_tensorrt
    image = "the -trtllm image" if other and same_version(version, other) else "another image"
    return f"was built with TensorRT {version} ({image} of release {release.name}), and the -py3 image of release {release.name} has {release.tensorrt_text}"


def _is_earlier(version: str, than: str) -> bool:
    """Whether a version is of the same major as another, and not newer."""
    return version.split(".")[0] == than.split(".")[0] and version_numbers(version) <= version_numbers(than)


def _is_of(version: str, release: Release, built_in: str) -> bool:
    """Whether a plan of this version, built in a release (empty where nobody knows), loads in the `-py3` image of another, as far as the table says."""
    if release.tensorrt:
        # The table holds the version that NVIDIA announced; the last number of an image's own may differ.
        own = ".".join(version.split(".")[:ANNOUNCED]) if built_in == release.name else version
        return same_version(own, release.tensorrt)
    if built_in not in ("", release.name):
        return False
    least, most = release.least_tensorrt, release.most_tensorrt
    is_too_old = version_numbers(version) < version_numbers(least) and not same_version(version, least)
    is_too_new = most is not None and version_numbers(version) > version_numbers(most) and not same_version(version, most)
    return not is_too_old and not is_too_new


def runs_on(built: str, wanted: str, hardware: str) -> bool:
    """Whether a plan built on one compute capability runs on another; True where either is not known."""
    if not built or not wanted or built == wanted:
        return True
    return hardware == "ampere_plus" and version_numbers(built) >= _AMPERE and version_numbers(wanted) >= _AMPERE
