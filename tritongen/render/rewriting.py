"""What a spec asks to be done to a model's file, as a recipe; and what of it contradicts itself or has no effect. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tritongen.releases import Release
from tritongen.render.findings import Findings
from tritongen.render.items import has_batch_axis
from tritongen.render.placement import placed_groups
from tritongen.render.precision import is_converted
from tritongen.render.ragged import as_requested, batch_arrays, strung
from tritongen.render.tensors import shapes_hint
from tritongen.rewrite import Convert, Optimise, Recipe, is_anonymous, repeats_the_batch, shares_a_mark
from tritongen.samples import Array
from tritongen.signature import Signature, TensorSpec
from tritongen.spec import ModelSpec

_CHECKED_ROWS = 2
_CHECKED_LENGTH = 16
"""Elements of a ragged item of which nothing is known, in the check of an optimised file."""


def recipe_of(model: ModelSpec, signature: Signature, shapes: dict[str, tuple[int, ...]], release: Release | None) -> Recipe:
    """The rewrites that the spec asks for, and what TensorRT needs. `shapes`: what `frozen_shapes` gave."""
    asked = model.optimize
    optimise = Optimise(asked.level, asked.hardware, asked.tolerance, (release.onnxruntime if release else None) or "") if asked else None
    names, apart = _naming(model, signature)
    return Recipe(shapes, model.rebatch and model.batching.max != 0, optimise, conversion_of(model), names, apart)


def _naming(model: ModelSpec, signature: Signature) -> tuple[bool, bool]:
    """Whether dimensions of inputs must be named, for what reads a plan's file or is handed parts of the graph; and whether those named like the batch, too.

    ONNX Runtime gives TensorRT its parts of a graph with the names in it: there a file is touched only where TensorRT would take two dimensions to be equal.
    """
    batched = has_batch_axis(model, signature)
    accelerated = model.accelerator == "tensorrt" and any(group.kind in ("gpu", "auto") for group in placed_groups(model))
    built = model.backend == "tensorrt"
    nameless = is_anonymous(signature) if built else accelerated and shares_a_mark(signature, batched=batched)
    apart = batched and (built or accelerated) and repeats_the_batch(signature)
    return nameless or apart, apart


def conversion_of(model: ModelSpec) -> Convert | None:
    """The conversion of the model's file to its precision; None where it is served as it is."""
    how = model.conversion
    return Convert(model.precision, how.keep_io_types, how.fp32_operators, how.fp32_nodes) if is_converted(model) else None


def frozen_shapes(model: ModelSpec, signature: Signature, findings: Findings) -> dict[str, tuple[int, ...]]:
    """The full shape of every input that `freeze` fixes, -1 for a batch dimension that stays. Says which sizes are missing, or are not one."""
    if not model.freeze:
        return {}
    batched = has_batch_axis(model, signature)
    left = _left_variable(model)
    variable = [tensor for tensor in signature.inputs if tensor.name not in left and any(not isinstance(dim, int) for dim in _item(tensor, batched=batched))]
    shapes = {}
    if missing := [tensor for tensor in variable if tensor.name not in model.shapes]:
        findings.error(
            "TG190",
            ("freeze",),
            f"freeze writes fixed sizes into the model, and shapes has none for {', '.join(tensor.describe() for tensor in missing)}",
            hint=f"add {shapes_hint(missing, batched=batched)}, or remove freeze",
        )
    for tensor in variable:
        given = model.shapes.get(tensor.name)
        if given is None:
            continue
        if given.min != given.max:
            findings.error(
                "TG190",
                ("shapes", tensor.name),
                f"'{tensor.name}' has a range, {list(given.min)} to {list(given.max)}, and freeze ({findings.locate(('freeze',))}) writes one size",
                hint=f"write {tensor.name}: {list(given.opt)}, or remove freeze",
            )
        elif tensor.shape is None or len(given.opt) == len(_item(tensor, batched=batched)):  # else the compile stage says so
            shapes[tensor.name] = (-1, *given.opt) if batched else given.opt
    return shapes


def _left_variable(model: ModelSpec) -> frozenset[str]:
    """Inputs that count the elements of a batch, so that no size can be written into them."""
    if model.ragged is None:
        return frozenset()
    return frozenset((*model.ragged.inputs, *(name for entry in model.ragged.batch_inputs for name in entry.names)))


def _item(tensor: TensorSpec, *, batched: bool) -> tuple[int | str | None, ...]:
    """The dimensions that may be frozen; one unknown for a tensor without a shape."""
    if tensor.shape is None:
        return (None,)
    return tensor.shape[1:] if batched else tensor.shape


def checked_inputs(model: ModelSpec, signature: Signature, samples: Mapping[str, Array]) -> tuple[dict[str, tuple[int, ...]], dict[str, object]]:
    """Full shapes and whole values of a file's inputs, as far as the spec says them, for comparing an optimised file with its original.

    What does not fit the model is left out: the compile stage says so, at its place. `samples`: the spec's values, one item each.
    """
    rows = _CHECKED_ROWS if has_batch_axis(model, signature) else 0
    known = {tensor.name: tensor for tensor in as_requested(model, signature).inputs}
    items = {name: shape.opt for name, shape in model.known_shapes.items() if name in known and _fits(known[name], shape.opt, rows)}
    if model.ragged is None:
        shapes = {name: (rows, *item) if rows else item for name, item in items.items()}
        return shapes, {name: [array.tolist()] * rows if rows else array.tolist() for name, array in samples.items()}
    if not rows:
        return {}, {}
    for name in known.keys() - items.keys():
        items[name] = samples[name].shape if name in samples else _any_item(known[name])
    return (
        {name: (rows * prod(item),) if name in model.ragged.inputs else (rows, *item) for name, item in items.items()},
        {name: (np.tile(array.ravel(), rows) if name in strung(model) else np.stack([array] * rows)).tolist() for name, array in samples.items()}
        | {name: array.tolist() for name, array in batch_arrays(model.ragged, signature, items, rows).items()},
    )


def _any_item(tensor: TensorSpec) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else _CHECKED_LENGTH for dim in (tensor.shape or ())[1:])


def _fits(tensor: TensorSpec, item: Sequence[int], rows: int) -> bool:
    dims = tensor.dims[1:] if rows else tensor.dims
    return tensor.shape is not None and len(dims) == len(item) and all(dim in (-1, size) for dim, size in zip(dims, item, strict=True))


def check_effects(model: ModelSpec, recipes: Sequence[Recipe], findings: Findings) -> None:
    """Say which keys changed nothing in any of the model's files. `recipes`: for each, what was done to it in the end."""
    if model.freeze and not any(recipe.shapes for recipe in recipes):
        why = "every dimension that it could fix is fixed in the model already"
        if model.ragged is not None:
            why = f"every dimension is fixed in the model, or counts what is in a batch, which ragged ({findings.locate(('ragged',))}) leaves open"
        findings.idle(("freeze",), f"freeze has no effect: {why}", hint="remove freeze")
    if model.rebatch and model.batching.max == 0:
        message = f"rebatch has no effect: batching ({findings.locate(('batching',))}) is off, so the batch may stay as it is"
        findings.idle(("rebatch",), message, consequence="Triton executes every request alone", hint="remove rebatch, or batching: none")
    elif model.rebatch and not any(recipe.rebatch for recipe in recipes):
        message = "rebatch has no effect: the leading dimensions are variable already, and no node pins the batch"
        findings.idle(("rebatch",), message, consequence="the model file stays as it is", hint="remove rebatch")
    if is_converted(model) and not any(recipe.convert for recipe in recipes):
        findings.advice(
            "TG167",
            ("precision",),
            f"the model file has no FP32 numbers, so that precision: {model.precision} converts nothing",
            consequence="it is served as it is",
        )
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
    elif model.accelerator != "none" or any(group.kind == "gpu" for group in placed_groups(model)):
        findings.warning(
            "TG191",
            ("optimize",),
            f"{own}, and the model is to run on another one",
            consequence="what the other provider lacks runs on the CPU, with copies to and fro",
            hint="write optimize: offline, and let the server optimise the rest at load",
        )
