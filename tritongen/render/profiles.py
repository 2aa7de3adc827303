"""The optimization profiles of a plan: from the one batching decision and the sizes in the spec; and whether they cover what the server will be sent.

Every profile takes batches from 1 to max: Triton sizes a model by the smallest maximum of the profiles that a copy uses, and sends the batches that there are,
be they of one row (tensorrt_backend/src/instance_state.cc).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from math import prod

from tritongen.batching import Batching
from tritongen.recipe import Profile, Span
from tritongen.render.findings import Findings, Key
from tritongen.render.tensors import Sizes, check_symbols, fits
from tritongen.render.trtexec import takes_profiles
from tritongen.signature import Signature, TensorSpec, symbol_of
from tritongen.spec import ModelSpec
from tritongen.spec.plans import PlanProfile

_KEY: Key = ("tensorrt", "profiles")
Box = Mapping[object, tuple[int, int]]
"""A range of sizes (from, to) for each dimension that varies; dimensions of one symbol are one."""


def plan_profiles(
    model: ModelSpec, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], release: str, findings: Findings
) -> tuple[Profile, ...]:
    """The profiles of the plan, in the order of their numbers; none for a model without variable dimensions and shape tensors, or of unknown sizes.

    Says what in `tensorrt.profiles` does not fit the model, and which declared requests no profile of a copy covers. `release`: the tag of the one that loads
    the plan; where that can have one profile only, no others are derived.
    """
    if model.backend != "tensorrt":
        return ()
    _check_names(model, signature, findings)
    values = _values(model, signature, batching, findings)
    if any(tensor.name not in sizes for tensor in signature.inputs):
        return ()
    dynamic = [tensor for tensor in signature.inputs if tensor.shape and any(not isinstance(dim, int) for dim in tensor.shape)]
    if not dynamic and not model.tensorrt.shape_tensors:
        if model.tensorrt.profiles:
            findings.idle(_KEY, "profiles have no effect: every dimension of every input is fixed", hint="remove profiles")
        return ()
    asked = model.tensorrt.profiles or _automatic(model, batching, release, findings)
    profiles = []
    for index, entry in enumerate(asked):
        chosen = _sizes_in(model, entry, index, signature, batching, sizes, findings)
        opt = _batch(entry, index, batching, findings)
        profiles.append(Profile({tensor.name: _span(chosen[tensor.name], opt, batching) for tensor in dynamic}, values))
    if not findings.has_errors:
        _check_cover(model, signature, batching, sizes, profiles, findings)
    return tuple(profiles)


def sizes_key(model: ModelSpec, name: str) -> Key:
    """The key of the spec that says the sizes of an input: in `shapes`, or in the first profile where they are left to the profiles."""
    return (*_KEY, 0, "shapes", name) if name in model.known_shapes and name not in model.shapes else ("shapes", name)


def _check_names(model: ModelSpec, signature: Signature, findings: Findings) -> None:
    known = {tensor.name for tensor in signature.inputs}
    for index, entry in enumerate(model.tensorrt.profiles):
        for name in entry.shapes:
            if name not in known:
                names = ", ".join(f"'{tensor.name}'" for tensor in signature.inputs)
                findings.error("TG103", (*_KEY, index, "shapes", name), f"the model has no input '{name}'", hint=f"its inputs are {names}")


def _automatic(model: ModelSpec, batching: Batching, release: str, findings: Findings) -> tuple[PlanProfile, ...]:
    """One for each preferred size that the spec names: sizes that were derived are not worth the memory of a profile each."""
    named = batching.preferred if model.batching.preferred else ()
    if len(named) < 2:
        return (PlanProfile(),)
    if takes_profiles(release):
        return tuple(PlanProfile(batch=size) for size in named)
    findings.advice(
        "TG184",
        ("batching", "preferred"),
        f"the plan has one profile, tuned for batches of {batching.optimum}: no plan with several can be built for release {release}",
        consequence=f"batches of {', '.join(map(str, named[:-1]))} run by kernels that were chosen for {batching.optimum}",
        hint="use release 24.05 or newer for a profile for each preferred size",
    )
    return (PlanProfile(),)


def _batch(entry: PlanProfile, index: int, batching: Batching, findings: Findings) -> int:
    """The batch size that a profile is tuned for; 0 for a model without batching."""
    if not batching.max_batch_size:
        if entry.batch is not None:
            findings.idle((*_KEY, index, "batch"), "batch has no effect: the model does not batch", hint="remove batch, and give full sizes in shapes")
        return 0
    if entry.batch is not None and entry.batch > batching.max_batch_size:
        findings.error(
            "TG123",
            (*_KEY, index, "batch"),
            f"profile {index} is tuned for batches of {entry.batch}, and max_batch_size is {batching.max_batch_size}",
            consequence="TensorRT refuses a profile whose opt is above its max",
            hint=f"write a size up to {batching.max_batch_size}, or raise batching.max to {entry.batch}",
        )
    return entry.batch or batching.optimum


def _sizes_in(
    model: ModelSpec, entry: PlanProfile, index: int, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings
) -> dict[str, Sizes]:
    """The sizes of every input in one profile: its own, or the model's."""
    key = (*_KEY, index, "shapes")
    known = {tensor.name: tensor for tensor in signature.inputs}
    chosen = dict(sizes)
    for name, given in entry.shapes.items():
        if name in known and fits(known[name], given, batching, (*key, name), findings):
            chosen[name] = Sizes(given.min, given.opt, given.max)
    if entry.shapes:
        check_symbols(signature, batching, chosen, findings, lambda name: (*key, name) if name in entry.shapes else sizes_key(model, name))
    return chosen


def _span(sizes: Sizes, opt: int, batching: Batching) -> Span:
    if not batching.max_batch_size:
        return Span(sizes.minimum, sizes.usual, sizes.maximum)
    return Span((1, *sizes.minimum), (opt, *sizes.usual), (batching.max_batch_size, *sizes.maximum))


def value_count(tensor: TensorSpec, batching: Batching) -> int:
    """How many values an input has that may be sizes to TensorRT; 0 for one that cannot be a shape tensor."""
    may_be = tensor.dtype.wire in ("INT32", "INT64") and not batching.max_batch_size and tensor.shape is not None and len(tensor.shape) < 2
    return prod(tensor.dims) if may_be and -1 not in tensor.dims else 0


def _values(model: ModelSpec, signature: Signature, batching: Batching, findings: Findings) -> dict[str, Span]:
    """The range of every shape tensor's values; says what cannot be one."""
    known = {tensor.name: tensor for tensor in signature.inputs}
    values = {}
    for name, span in model.tensorrt.shape_tensors.items():
        key, tensor = ("tensorrt", "shape_tensors", name), known.get(name)
        if tensor is None:
            names = ", ".join(f"'{each}'" for each in known)
            findings.error("TG103", key, f"the model has no input '{name}'", hint=f"its inputs are {names}")
            continue
        wide = sorted(value for value in {*span.min, *span.max} if not -(1 << 31) <= value < 1 << 31)
        count = value_count(tensor, batching)
        if not count:
            findings.error(
                "TG125",
                key,
                f"{tensor.describe()} cannot be a shape tensor",
                consequence="TensorRT takes INT32 and INT64 tensors of at most one dimension as such; a batch would need the same values for each of its rows",
                hint="remove it here: an input whose values are no sizes needs no range",
            )
        elif count != len(span.opt):
            findings.error("TG125", key, f"{tensor.describe()} has {count} values, and {len(span.opt)} are given", hint=f"give {count} for min, opt and max")
        elif tensor.dtype.wire == "INT32" and wide:
            findings.error("TG125", key, f"{tensor.describe()} cannot hold {', '.join(map(str, wide))}", hint=f"give values that {tensor.dtype} holds")
        else:
            values[name] = Span(span.min, span.opt, span.max)
    return values


def _check_cover(
    model: ModelSpec, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], profiles: Sequence[Profile], findings: Findings
) -> None:
    """Say where a group of copies has no profile for a request of declared sizes: those in `shapes`, or, where that is left to the profiles, of any of them."""
    inputs = [tensor for tensor in signature.inputs if tensor.name in profiles[0].shapes]
    boxes = [_box(inputs, profile) for profile in profiles]
    wanted = boxes
    if model.shapes.keys() >= {tensor.name for tensor in inputs}:
        wanted = [_box(inputs, Profile({name: _span(span, 1, batching) for name, span in sizes.items()}))]
    for index, group in enumerate(model.instances):
        used = [number for number in group.profiles if number < len(profiles)] or range(len(profiles))
        missed = next(filter(None, (_uncovered(part, [boxes[number] for number in used]) for part in wanted)), None)
        if missed is not None:
            who = f"profiles {', '.join(map(str, used))} of these copies" if group.profiles else "the profiles"
            findings.error(
                "TG124",
                ("instances", index, "profiles") if group.profiles else _KEY,
                f"{who} do not cover the sizes in {'shapes' if model.shapes else 'all profiles'}: none takes {_example(inputs, missed)}",
                consequence="Triton takes the first profile where none fits, and then refuses the request",
                hint="widen a profile, add one, or narrow shapes",
            )
            return


def _box(inputs: Sequence[TensorSpec], profile: Profile) -> Box:
    return {
        key: (low, high)
        for tensor in inputs
        for key, low, high in zip(_axes(tensor), profile.shapes[tensor.name].minimum, profile.shapes[tensor.name].maximum, strict=True)
    }


def _axes(tensor: TensorSpec) -> Iterator[object]:
    """What tells the dimensions of an input apart: their symbol, or their place."""
    yield from (symbol_of(dim) or (tensor.name, axis) for axis, dim in enumerate(tensor.shape or ()))


def _uncovered(wanted: Box, boxes: Sequence[Box]) -> Box | None:
    """A part of `wanted` that lies in none of the boxes; None where they cover it all."""
    left = [wanted]
    for box in boxes:
        left = [piece for part in left for piece in _without(part, box)]
    return left[0] if left else None


def _without(part: Box, box: Box) -> Iterator[Box]:
    """What of `part` lies outside `box`, as boxes: dimension by dimension, what lies below and above is cut off."""
    rest = dict(part)
    for key, (low, high) in part.items():
        least, most = box[key]
        if high < least or low > most:
            yield rest
            return
        if low < least:
            yield rest | {key: (low, least - 1)}
        if high > most:
            yield rest | {key: (most + 1, high)}
        rest[key] = (max(low, least), min(high, most))


def _example(inputs: Sequence[TensorSpec], missed: Box) -> str:
    """A request that lies in the part, in words: `ids [1, 129]`."""

    def shown(name: str, axes: Iterator[object]) -> str:
        return f"{name} [{', '.join(str(missed[axis][0]) for axis in axes)}]"

    return ", ".join(starmap(shown, ((tensor.name, _axes(tensor)) for tensor in inputs)))
