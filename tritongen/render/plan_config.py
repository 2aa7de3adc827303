"""The final config of a plan, overlay included, held against the plan's profiles: what lies outside of them is refused by Triton while it loads the model.

Source: tensorrt_backend/src/instance_state.cc, which maximizes the dims of every input over each profile of a copy, holds them against the profile's sizes, and
takes the first profile for a request that none fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritongen.recipe import Profile, Span
from tritongen.render.findings import Findings
from tritongen.render.placement import is_overlaid
from tritongen.render.tensors import Sizes
from tritongen.render.warmup import OVERLAID
from tritongen.rules.plan_ranges import (
    REFUSED_SAMPLE,
    Ranges,
    dims_outside,
    lie_in,
    range_of,
    ranges_text,
    row_ranges,
    samples_outside,
    unknown_profiles,
    used_profiles,
)
from tritongen.samples import Array
from tritongen.signature import Signature, TensorSpec
from tritongen.spec import ModelSpec


def judge_plan(
    config: Any,
    model: ModelSpec,
    signature: Signature,
    profiles: Sequence[Profile],
    sizes: Mapping[str, Sizes],
    samples: Mapping[str, Array],
    findings: Findings,
) -> None:
    """Say what in the config lies outside the plan: other devices, profiles that it has not, and dims and samples that these do not take.

    `profiles`: those of the plan; none where it needs none. `sizes`: of every input whose variable dimensions are known; where one is missing, the profiles are
    not known, and that is an error of its own. `samples`: the values of inputs, one item each.
    """
    if model.backend != "tensorrt":
        return
    _check_devices(config, model, findings)
    if model.ragged is not None or any(tensor.name not in sizes for tensor in signature.inputs):
        return
    _check_numbers(config, model, max(len(profiles), 1), findings)
    batched, used = config.max_batch_size > 0, used_profiles(config, len(profiles))
    taken = [{tensor.name: _ranges(tensor, profiles, number, batched=batched) for tensor in signature.inputs} for number in used]
    _check_inputs(config, model, taken, findings)
    # Every profile has the one range of values that the spec gives.
    values = profiles[0].values if profiles else {}
    _check_given(samples, taken, values, findings)
    if OVERLAID in model.config:
        _check_samples(config, taken, values, findings)


def plan_dla(config: Any) -> int | None:
    """The deep learning accelerator that the plan of a model is built for: that of its copies; None for the GPU."""
    return next((device.device_id for group in config.instance_group for device in group.secondary_devices), None)


def _check_devices(config: Any, model: ModelSpec, findings: Findings) -> None:
    """Say where copies are to run on several devices: a model has one plan for them all."""
    dla = plan_dla(config)
    for index, group in enumerate(config.instance_group):
        own = next((device.device_id for device in group.secondary_devices), None)
        if own != dla:
            overlaid = is_overlaid(model)
            findings.error(
                "TG127",
                ("config", "instance_group", index) if overlaid else ("instances", index),
                f"these copies are to run on {_device(own)}, and others of the model on {_device(dla)}",
                consequence="the model has one plan, which is built for one of them",
                hint=f"give every group the same {'secondary_devices' if overlaid else 'dla'}, or make a model of its own for each device",
            )
            return


def _device(dla: int | None) -> str:
    return "the GPU alone" if dla is None else f"deep learning accelerator {dla}"


def _check_numbers(config: Any, model: ModelSpec, count: int, findings: Findings) -> None:
    """Say where copies are to use profiles that the plan has not. `count`: how many it has."""
    for index, message in unknown_profiles(config, count):
        findings.error(
            "TG122",
            ("config", "instance_group", index, "profile") if is_overlaid(model) else ("instances", index, "profiles"),
            message,
            consequence="Triton refuses to load the model",
            hint="describe it in tensorrt: {profiles: [...]}, or remove it here",
        )


def _ranges(tensor: TensorSpec, profiles: Sequence[Profile], number: int, *, batched: bool) -> Ranges:
    span = profiles[number].shapes.get(tensor.name) if profiles else None
    return row_ranges(range_of(span) if span is not None else [(dim, dim) for dim in tensor.dims], batched=batched)


def _check_inputs(config: Any, model: ModelSpec, taken: Sequence[Mapping[str, Ranges]], findings: Findings) -> None:
    """Say where dims of an input, which only an overlay can have changed, lie outside a profile that some copy uses."""
    laid = [entry.get("name") for entry in model.config.get("input", ())]
    for index, message in dims_outside(config, taken):
        name = config.input[index].name
        findings.error(
            "TG186",
            ("config", "input", laid.index(name), "dims") if name in laid else ("config", "input", index),
            message,
            consequence="Triton refuses to load the model",
            hint="write dims that the plan takes, or change shapes, which the plan's profiles are made from",
        )


def _check_given(samples: Mapping[str, Array], taken: Sequence[Mapping[str, Ranges]], values: Mapping[str, Span], findings: Findings) -> None:
    """Say where a sample of the spec lies between the profiles, or gives a shape tensor values that they do not take."""
    for name in sorted(samples.keys() & taken[0].keys()):
        dims, ranges = list(samples[name].shape) or [1], [each[name] for each in taken]
        if not any(lie_in(dims, each) for each in ranges):
            findings.error(
                "TG186",
                ("samples", name),
                f"the sample of '{name}' has the size {dims}, and the plan takes {' or '.join(map(ranges_text, ranges))}",
                consequence="Triton refuses requests of this size, and the model where they are its warmup",
                hint="give a sample of a size that the plan takes, or widen a profile",
            )
    for name in sorted(samples.keys() & values.keys()):
        given, allowed = samples[name].ravel().tolist(), range_of(values[name])
        if not _are_taken(given, allowed):
            findings.error(
                "TG186",
                ("samples", name),
                f"the sample gives the shape tensor '{name}' the values {given}, and the plan takes {ranges_text(allowed)}",
                consequence="Triton refuses requests with them, and the model where they are its warmup",
                hint=f"give values that the plan takes, or widen its range in shape_tensors ({findings.locate(('tensorrt', 'shape_tensors', name))})",
            )


def _are_taken(values: Sequence[int], allowed: Ranges) -> bool:
    """Whether each value of a shape tensor lies in its range; -1 is one like any other."""
    return all(low <= value <= high for value, (low, high) in zip(values, allowed, strict=True))


def _check_samples(config: Any, taken: Sequence[Mapping[str, Ranges]], values: Mapping[str, Span], findings: Findings) -> None:
    """Say where a warmup sample has sizes, or no values for a shape tensor, that a profile takes. What is in files that it names is not known here."""
    for field, message in samples_outside(config, taken):
        findings.error("TG186", ("config", *field), message, consequence=REFUSED_SAMPLE, hint="give it sizes that the plan takes, or widen shapes")
    for index, sample in enumerate(config.model_warmup):
        for name in sorted(sample.inputs.keys() & values.keys()):
            kind, allowed = sample.inputs[name].WhichOneof("input_data_type"), range_of(values[name])
            if kind == "random_data" or (kind == "zero_data" and not _are_taken([0] * len(allowed), allowed)):
                findings.error(
                    "TG186",
                    ("config", OVERLAID, index, "inputs", name),
                    f"the warmup sample '{sample.name}' has {kind} for the shape tensor '{name}', and the plan takes the values {ranges_text(allowed)}",
                    consequence=REFUSED_SAMPLE,
                    hint="leave model_warmup out, so that the samples that are derived have the values of samples or shape_tensors; or write input_data_file",
                )
