"""What a spec asks to be done to a model's file, as a recipe; and what of it contradicts itself or has no effect. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tritongen.batching import batch_blockers
from tritongen.releases import Release
from tritongen.render.findings import Findings
from tritongen.rewrite import Optimise, Recipe
from tritongen.signature import Signature, TensorSpec
from tritongen.spec import ModelSpec


def recipe_of(model: ModelSpec, shapes: dict[str, tuple[int, ...]], release: Release | None) -> Recipe:
    """The rewrites that the spec asks for. `shapes`: what `frozen_shapes` gave."""
    asked = model.optimize
    optimise = Optimise(asked.level, asked.hardware, asked.tolerance, (release.onnxruntime if release else None) or "") if asked else None
    return Recipe(shapes, model.rebatch and model.batching.max != 0, optimise)


def frozen_shapes(model: ModelSpec, signature: Signature, findings: Findings) -> dict[str, tuple[int, ...]]:
    """The full shape of every input that `freeze` fixes, -1 for a batch dimension that stays. Says which sizes are missing, or are not one."""
    if not model.freeze:
        return {}
    batched = model.batching.max != 0 and (model.rebatch or not batch_blockers(signature))
    variable = [tensor for tensor in signature.inputs if any(not isinstance(dim, int) for dim in _item(tensor, batched=batched))]
    shapes = {}
    for tensor in variable:
        given = model.shapes.get(tensor.name)
        if given is None:
            example = "[" + ", ".join(str(dim) if isinstance(dim, int) else "..." for dim in _item(tensor, batched=batched)) + "]"
            findings.error(
                "TG190",
                ("freeze",),
                f"freeze writes fixed sizes into the model, and shapes has none for {tensor.describe()}",
                hint=f"add shapes: {{{tensor.name}: {example}}}{', without the batch dimension' if batched else ''}, or remove freeze",
            )
        elif given.min != given.max:
            findings.error(
                "TG190",
                ("shapes", tensor.name),
                f"'{tensor.name}' has a range, {list(given.min)} to {list(given.max)}, and freeze ({findings.locate(('freeze',))}) writes one size",
                hint=f"write {tensor.name}: {list(given.opt)}, or remove freeze",
            )
        elif tensor.shape is None or len(given.opt) == len(_item(tensor, batched=batched)):  # else the compile stage says so
            shapes[tensor.name] = (-1, *given.opt) if batched else given.opt
    return shapes


def _item(tensor: TensorSpec, *, batched: bool) -> tuple[int | str | None, ...]:
    """The dimensions that may be frozen; one unknown for a tensor without a shape."""
    if tensor.shape is None:
        return (None,)
    return tensor.shape[1:] if batched else tensor.shape


def check_effects(model: ModelSpec, recipes: Sequence[Recipe], findings: Findings) -> None:
    """Say which keys changed nothing in any of the model's files. `recipes`: for each, what was done to it in the end."""
    if model.freeze and not any(recipe.shapes for recipe in recipes):
        findings.idle(("freeze",), "freeze has no effect: every dimension that it could fix is fixed in the model already", hint="remove freeze")
    if model.rebatch and model.batching.max == 0:
        message = f"rebatch has no effect: batching ({findings.locate(('batching',))}) is off, so the batch may stay as it is"
        findings.idle(("rebatch",), message, consequence="Triton executes every request alone", hint="remove rebatch, or batching: none")
    elif model.rebatch and not any(recipe.rebatch for recipe in recipes):
        message = "rebatch has no effect: the leading dimensions are variable already, and no node pins the batch"
        findings.idle(("rebatch",), message, consequence="the model file stays as it is", hint="remove rebatch")
    if model.optimize and model.optimize.hardware and model.optimize.level != "all":
        message = f"hardware has no effect with level: {model.optimize.level}, which holds for any machine"
        findings.idle(("optimize", "hardware"), message, hint="remove hardware")


def check_optimisation(model: ModelSpec, findings: Findings) -> None:
    """Say where the operators of an optimised graph do not fit what runs it."""
    asked = model.optimize
    if asked is None or asked.level == "basic":
        return
    own = f"level: {asked.level} fuses nodes into operators of ONNX Runtime's own, for its CPU provider"
    if model.backend == "tensorrt":
        findings.error(
            "TG191",
            ("optimize",),
            f"{own}, and backend: tensorrt ({findings.locate(('backend',))}) builds a plan from the file",
            consequence="TensorRT's parser knows no such operators, and builds no plan",
            hint="write optimize: offline, or optimize: none: TensorRT optimises the graph itself",
        )
    elif model.accelerator != "none" or any(group.kind == "gpu" for group in model.instances):
        findings.warning(
            "TG191",
            ("optimize",),
            f"{own}, and the model is to run on another one",
            consequence="what the other provider lacks runs on the CPU, with copies to and fro",
            hint="write optimize: offline, and let the server optimise the rest at load",
        )
