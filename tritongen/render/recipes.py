"""A compiled model → the recipes of its plans, one for each version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from tritongen.recipe import TYPED_SINCE, PlanFile, PlanRecipe
from tritongen.releases import tensorrt_major_of
from tritongen.render.compile import Compiled
from tritongen.render.entry import SOURCE_NAME, ModelFiles
from tritongen.render.placement import placed_groups
from tritongen.render.plan_config import plan_dla
from tritongen.render.plans import plan_name
from tritongen.rewrite import PRECISIONS
from tritongen.spec import ModelSpec
from tritongen.spec.target import Target

_TYPED = frozenset({"fp32", "tf32", *PRECISIONS})
"""Precisions in which the types of the ONNX file are what is computed; to some of them it was converted."""

_USUAL_LEVEL = 3
"""TensorRT's own optimization level: a recipe that states it is one that leaves it out, and makes no plan stale."""


def plan_recipes(compiled: Compiled, files: Mapping[int, ModelFiles], target: Target) -> tuple[PlanRecipe, ...]:
    """How the plans of each version are built; none for a model that is served from its ONNX file.

    `files`: the ONNX file of each version, with its external data. `target`: the release that will load the plans.
    """
    model = compiled.model
    if model.backend != "tensorrt":
        return ()
    return tuple(_recipe(compiled, version, each, target) for version, each in sorted(files.items()))


def _artifact_folder(model: ModelSpec, version: int) -> PurePosixPath:
    """Where a version's ONNX file lies in the model's artifacts folder: a single source lies there itself, several each in a folder of their own."""
    return PurePosixPath(str(version)) if model.sources else PurePosixPath()


def _recipe(compiled: Compiled, version: int, files: ModelFiles, target: Target) -> PlanRecipe:
    model = compiled.model
    build, folder = model.tensorrt.build, _artifact_folder(model, version)
    dla = plan_dla(compiled.config)
    return PlanRecipe(
        model=model.name,
        version=version,
        plans=_plans(build.compute_capabilities),
        onnx=folder / SOURCE_NAME,
        files={folder / path: sha for path, sha in files.hashes.items()},
        profiles=compiled.profiles,
        precision=model.precision,
        # A deep learning accelerator computes in FP16 and INT8 only, so that TensorRT 10 must be free to choose these.
        strongly_typed=model.precision in _TYPED and dla is None and tensorrt_major_of(target.release_name) >= TYPED_SINCE,
        tf32=model.precision != "fp32",
        workspace_bytes=build.max_workspace_size,
        optimization_level=None if build.builder_optimization_level == _USUAL_LEVEL else build.builder_optimization_level,
        version_compatible=build.version_compatible,
        hardware_compatibility=build.hardware_compatibility,
        strip=build.strip_weights,
        refit=build.refit,
        plugins=build.plugins,
        dla_core=dla,
        gpu_fallback=build.gpu_fallback,
        release=target.release_name,
        gpus=_loading_gpus(model),
    )


def _loading_gpus(model: ModelSpec) -> tuple[int, ...]:
    """Numbers of the GPUs that copies of the model run on; none where some copy runs on every GPU, or Triton chooses."""
    groups = placed_groups(model)
    return tuple(sorted({gpu for group in groups for gpu in group.gpus})) if all(group.gpus for group in groups) else ()


def _plans(capabilities: tuple[str, ...]) -> tuple[PlanFile, ...]:
    if not capabilities:
        return (PlanFile(plan_name("")),)
    return tuple(PlanFile(plan_name(each), each, f"timing.sm{each.replace('.', '')}.cache") for each in capabilities)
