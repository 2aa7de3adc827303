"""A recipe → the builder's config: flags, memory, profiles. What this version of the library has not is said, never left out without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritongen.build.libraries import Library
from tritongen.diagnostics import Diagnostic, Location
from tritongen.recipe import TYPED_SINCE, PlanRecipe, Profile, Span

if TYPE_CHECKING:
    import tensorrt

Refuse = Callable[[str, str], None]
"""Takes what an option cannot do here, and what to do about it."""


def network_flags(library: Library, recipe: PlanRecipe) -> int:
    """The flags for `create_network`. From TensorRT 11 on, and in TensorRT-RTX, every network is strongly typed, flag or none."""
    typed = library.member("NetworkDefinitionCreationFlag", "STRONGLY_TYPED")
    return 1 << int(typed) if recipe.has_binding_types(library.tensorrt_major) else 0


def configure(
    library: Library, builder: tensorrt.Builder, config: tensorrt.IBuilderConfig, recipe: PlanRecipe, capabilities: tuple[str, ...], onnx: Path
) -> list[Diagnostic]:
    """Write the recipe's options into `config`. The findings (TG093), at the file `onnx`, are what this library, or this machine, does not have."""
    found: list[Diagnostic] = []

    def refuse(message: str, hint: str) -> None:
        found.append(Diagnostic("TG093", message, Location(str(onnx)), "the plan would not be the one that was asked for", hint, recipe.model))

    if recipe.workspace_bytes is not None:
        config.set_memory_pool_limit(library.member("MemoryPoolType", "WORKSPACE"), recipe.workspace_bytes)
    if recipe.optimization_level is not None:
        config.builder_optimization_level = recipe.optimization_level
    if not recipe.tf32:
        config.clear_flag(library.member("BuilderFlag", "TF32"))
    for name in builder_flags(recipe, library.tensorrt_major):
        flag = library.member("BuilderFlag", name)
        if flag is None:
            refuse(f"{library.title} has no builder flag {name}", "remove the option from tensorrt.build, or build with another version")
        else:
            config.set_flag(flag)
    # TensorRT-RTX takes no such level: its plans are for several kinds of GPU, named or all.
    if recipe.hardware_compatibility != "none" and not library.is_rtx:
        level = library.member("HardwareCompatibilityLevel", recipe.hardware_compatibility.upper())
        if level is None:
            refuse(
                f"{library.title} has no hardware compatibility {recipe.hardware_compatibility}",
                "set tensorrt.build.hardware_compatibility to none or ampere_plus, or build with a newer version",
            )
        else:
            config.hardware_compatibility_level = level
    if recipe.dla_core is not None:
        _use_dla(library, builder, config, recipe.dla_core, refuse)
    _load_plugins(library, builder, recipe, refuse)
    if capabilities:
        _target(library, config, capabilities, refuse)
    return found


def builder_flags(recipe: PlanRecipe, tensorrt_major: int) -> Iterator[str]:
    """The names of the builder's flags that a recipe asks for."""
    yield from recipe.precision_flags(tensorrt_major)
    for wanted, name in (
        (recipe.version_compatible, "VERSION_COMPATIBLE"),
        (recipe.refit, "REFIT"),
        (recipe.strip, "STRIP_PLAN"),
        (recipe.dla_core is not None and recipe.gpu_fallback, "GPU_FALLBACK"),
    ):
        if wanted:
            yield name


def idle_precision(library: Library, recipe: PlanRecipe) -> list[str]:
    """What a user should know of a precision that this library takes from the file's types alone."""
    if recipe.strongly_typed or recipe.precision_flags(library.tensorrt_major) or not recipe.precision_flags(TYPED_SINCE):
        return []
    return [f"precision {recipe.precision} has no effect: {library.title} computes in the types that the ONNX file has"]


def _use_dla(library: Library, builder: tensorrt.Builder, config: tensorrt.IBuilderConfig, core: int, refuse: Refuse) -> None:
    if core >= builder.num_DLA_cores:
        have = f"{builder.num_DLA_cores} deep learning accelerators" if builder.num_DLA_cores else "no deep learning accelerator"
        refuse(f"the plan is for deep learning accelerator {core}, and this machine has {have}", "build on the machine that will serve the model")
        return
    config.default_device_type = library.member("DeviceType", "DLA")
    config.DLA_core = core


def _load_plugins(library: Library, builder: tensorrt.Builder, recipe: PlanRecipe, refuse: Refuse) -> None:
    registry = builder.get_plugin_registry()
    for path in recipe.plugins:
        # A library that cannot be loaded gives no handle; which exception comes with it differs between versions.
        try:
            handle: Any = registry.load_library(path)
        except (RuntimeError, OSError, ValueError) as error:
            refuse(f"the plugin library {path} cannot be loaded: {error}", "check the path, and that it was built for this TensorRT")
        else:
            if handle is None:
                refuse(f"the plugin library {path} cannot be loaded", "check the path, and that it was built for this TensorRT")


def unknown_capability(library: Library, capabilities: Iterable[str]) -> tuple[str, str] | None:
    """What TensorRT-RTX of this version builds nothing for, and what to do; None where it builds for all of them."""
    unknown = [each for each in capabilities if each not in library.capabilities]
    if not unknown:
        return None
    return f"{library.title} builds nothing for compute capability {', '.join(unknown)}", f"it knows {', '.join(library.capabilities)}"


def _target(library: Library, config: Any, capabilities: tuple[str, ...], refuse: Refuse) -> None:
    """Name the GPUs that TensorRT-RTX builds for; without names its plan is for all that it knows."""
    if problem := unknown_capability(library, capabilities):
        refuse(*problem)
        return
    config.num_compute_capabilities = len(capabilities)
    for index, each in enumerate(capabilities):
        config.set_compute_capability(library.member("ComputeCapability", f"SM{each.replace('.', '')}"), index)


def add_profile(library: Library, builder: tensorrt.Builder, config: tensorrt.IBuilderConfig, profile: Profile) -> tensorrt.IOptimizationProfile:
    """Add one profile that was held against the network. Raises RuntimeError or ValueError where the library refuses it."""
    made: tensorrt.IOptimizationProfile = builder.create_optimization_profile()
    for name, span in profile.shapes.items():
        made.set_shape(name, *_dims(library, span))
    for name, span in profile.values.items():
        made.set_shape_input(name, list(span.minimum), list(span.optimum), list(span.maximum))
    if config.add_optimization_profile(made) < 0:
        raise ValueError("it is not valid")
    return made


def _dims(library: Library, span: Span) -> tuple[tensorrt.Dims, tensorrt.Dims, tensorrt.Dims]:
    dims = library.module.Dims
    return dims(span.minimum), dims(span.optimum), dims(span.maximum)
