"""A plan's recipe → the options that make NVIDIA's trtexec of a release build it. Pure.

Source: trtexec's own parser (TensorRT/samples/common/sampleOptions.cpp), release by release: a shape option is a list of `name:1x3x224`, split at commas first
and then at the last colon, without quotes; `--profile=N` takes the shape options that follow it; what came with TensorRT 10 and went with 11 is said below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritongen.recipe import BUILT_IN_PROCESS_SINCE, PlanRecipe, Profile
from tritongen.releases import tensorrt_major_of

_MIB = 1 << 20
_PROFILES_SINCE = _STRIPPED_SINCE = 10
"""The TensorRT whose trtexec was the first to take several profiles, and to leave weights out."""

_UNSPEAKABLE = ",'\0"
_HARDWARE = {"ampere_plus": "ampere+", "same_compute_capability": "sameComputeCapability"}


@dataclass(frozen=True)
class Untold:
    """Something that trtexec of a release cannot be told, so that it cannot build the plan.

    Attributes:
        message: as a sentence without its full stop.
        key: the key of the spec's model that asks for it.
        hint: what to write there, or in the model.
        is_final: whether nothing else builds the plan either: `tritongen build` is for TensorRT 10 and newer.
    """

    message: str
    key: tuple[str, ...]
    hint: str
    is_final: bool

    @property
    def remedy(self) -> str:
        """All that helps."""
        return self.hint if self.is_final else f"build it on the GPU that serves it with `tritongen build`, or {self.hint}"


@dataclass(frozen=True)
class TrtexecOptions:
    """What trtexec is told about a plan, without the files that it reads and writes.

    Attributes:
        options: one argument each; none where there are problems.
        problems: what trtexec of this release cannot be told.
    """

    options: tuple[str, ...]
    problems: tuple[Untold, ...] = ()


def takes_profiles(release: str) -> bool:
    """Whether a plan with several profiles can be built for a release (its tag) at all."""
    return tensorrt_major_of(release) >= _PROFILES_SINCE


def trtexec_options(recipe: PlanRecipe) -> TrtexecOptions:
    """The options for trtexec in the release that will load the plan."""
    major = tensorrt_major_of(recipe.release)
    if problems := tuple(_problems(recipe, major)):
        return TrtexecOptions((), problems)
    return TrtexecOptions(("--skipInference", *_precision(recipe, major), *_builder(recipe), *_profiles(recipe.profiles)))


def _precision(recipe: PlanRecipe, major: int) -> Iterator[str]:
    if recipe.has_binding_types(major):
        yield "--stronglyTyped"
    yield from (f"--{flag.lower()}" for flag in recipe.precision_flags(major))
    if not recipe.tf32:
        yield "--noTF32"


def _builder(recipe: PlanRecipe) -> Iterator[str]:
    if recipe.workspace_bytes is not None:
        # A number without a unit is MiB in every release; units came with TensorRT 10.
        yield f"--memPoolSize=workspace:{recipe.workspace_bytes / _MIB:.20f}".rstrip("0").rstrip(".")
    if recipe.optimization_level is not None:
        yield f"--builderOptimizationLevel={recipe.optimization_level}"
    if recipe.version_compatible:
        yield "--versionCompatible"
    if recipe.hardware_compatibility in _HARDWARE:
        yield f"--hardwareCompatibilityLevel={_HARDWARE[recipe.hardware_compatibility]}"
    if recipe.refit:
        yield "--refit"
    if recipe.strip:
        yield "--stripWeights"
    yield from (f"--staticPlugins={plugin}" for plugin in recipe.plugins)
    if recipe.dla_core is not None:
        yield f"--useDLACore={recipe.dla_core}"
        if recipe.gpu_fallback:
            yield "--allowGPUFallback"


def _profiles(profiles: tuple[Profile, ...]) -> Iterator[str]:
    for number, profile in enumerate(profiles):
        if len(profiles) > 1:
            yield f"--profile={number}"
        spans = {**profile.shapes, **profile.values}
        yield f"--minShapes={_shapes({name: span.minimum for name, span in spans.items()})}"
        yield f"--optShapes={_shapes({name: span.optimum for name, span in spans.items()})}"
        yield f"--maxShapes={_shapes({name: span.maximum for name, span in spans.items()})}"


def _shapes(sizes: Mapping[str, tuple[int, ...]]) -> str:
    return ",".join(f"{name}:{'x'.join(map(str, numbers))}" for name, numbers in sizes.items())


def _problems(recipe: PlanRecipe, major: int) -> Iterator[Untold]:
    is_final = major < BUILT_IN_PROCESS_SINCE
    for name in dict.fromkeys(name for profile in recipe.profiles for name in (*profile.shapes, *profile.values)):
        if any(char in name for char in _UNSPEAKABLE):
            yield Untold(
                f"trtexec splits its lists of shapes at commas and drops quotes, so that it cannot be told the sizes of input {name!r}",
                ("backend",),
                "give the input another name in the ONNX file",
                is_final,
            )
    if len(recipe.profiles) > 1 and major < _PROFILES_SINCE:
        yield Untold(
            f"trtexec of release {recipe.release} cannot build a plan with several profiles",
            ("tensorrt", "profiles"),
            "keep one profile that covers all sizes, or use release 24.05 or newer",
            is_final,
        )
    if recipe.strip and major < _STRIPPED_SINCE:
        yield Untold(
            f"trtexec of release {recipe.release} cannot leave the weights out of a plan",
            ("tensorrt", "build", "strip_weights"),
            "remove strip_weights, or use release 24.05 or newer",
            is_final,
        )
