"""Rules: instance groups, their kinds, GPUs and counts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tritongen.modelconfig import ModelInstanceGroup
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Rule

_AUTO, _GPU, _CPU, _MODEL = (getattr(ModelInstanceGroup, name) for name in ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"))
_PLAN = "tensorrt_plan"
_GPUS_KNOWN = frozenset({"config", "gpus"})


def _groups(context: ModelContext) -> Iterator[tuple[int, Any]]:
    """The instance groups with their places; an ensemble may have none, which another rule says."""
    if not context.is_ensemble:
        yield from enumerate(context.config.instance_group)


def _name(group: Any, index: int) -> str:
    return f"instance group '{group.name}'" if group.name else f"instance group {index + 1}"


def _gpus_without_gpu_kind(context: ModelContext) -> Iterator[Finding]:
    for index, group in _groups(context):
        if group.gpus and group.kind in (_CPU, _MODEL):
            kind = ModelInstanceGroup.Kind.Name(group.kind)
            yield Finding(
                f"{_name(group, index)} is {kind} and lists gpus {list(group.gpus)}; only KIND_GPU and KIND_AUTO may",
                ("instance_group", index, "gpus"),
                "remove `gpus`, or write `kind: KIND_GPU`",
            )


def _no_gpu(context: ModelContext) -> Iterator[Finding]:
    if context.server.gpus:
        return
    for index, group in _groups(context):
        if group.kind == _GPU and all(gpu >= 0 for gpu in group.gpus):
            yield Finding(
                f"{_name(group, index)} is KIND_GPU, and the server has no GPU",
                ("instance_group", index, "kind"),
                "write `kind: KIND_CPU`, or `kind: KIND_AUTO` without `gpus` to run on whatever there is",
            )


def _absent_gpu(context: ModelContext) -> Iterator[Finding]:
    known = context.server.gpus
    for index, group in _groups(context):
        if group.kind not in (_AUTO, _GPU):
            continue
        negative = any(gpu < 0 for gpu in group.gpus)
        for position, gpu in enumerate(group.gpus):
            if gpu < 0:
                message = f"{_name(group, index)} lists GPU {gpu}; ids begin at 0"
            elif known is not None and gpu >= known and (group.kind == _AUTO or known) and not negative:
                there = "there is none" if not known else "there is only GPU 0" if known == 1 else f"there are only GPUs 0 to {known - 1}"
                turned = "; KIND_AUTO then becomes KIND_CPU, which may list no GPU" if group.kind == _AUTO else ""
                message = f"{_name(group, index)} lists GPU {gpu}, and {there}{turned}"
            else:
                continue
            yield Finding(
                message,
                ("instance_group", index, "gpus", position),
                "write ids that the server sees (they count from 0 whatever CUDA_VISIBLE_DEVICES or docker's --gpus hands through), or remove `gpus`",
            )


def _profile_without_plan(context: ModelContext) -> Iterator[Finding]:
    platform = context.resolved.platform
    if not platform and not context.resolved.backend:
        return
    for index, group in _groups(context):
        if group.profile and platform != _PLAN:
            yield Finding(
                f"{_name(group, index)} has a profile, which only TensorRT plans have; this is {platform or 'a model of backend ' + context.resolved.backend}",
                ("instance_group", index, "profile"),
                "remove `profile`; profiles of the tensorrt accelerator of onnxruntime are set by trt_profile_min_shapes, _opt_shapes and _max_shapes",
            )


def _profile_number(context: ModelContext) -> Iterator[Finding]:
    for index, group in _groups(context):
        for position, profile in enumerate(group.profile if context.resolved.platform == _PLAN else ()):
            if not re.match(r"\s*\+?\d+", profile):  # core reads the number at the beginning
                yield Finding(
                    f"{_name(group, index)} has the profile '{profile}'; it is the index of an optimization profile in the plan, 0 or more",
                    ("instance_group", index, "profile", position),
                    'write `profile: ["0"]`',
                )


def _negative_count(context: ModelContext) -> Iterator[Finding]:
    for index, group in _groups(context):
        if group.count < 0:
            used = 2 if group.kind == _CPU and context.is_onnx else 1
            yield Finding(
                f"{_name(group, index)} has count {group.count}; Triton makes {used} of it and says nothing",
                ("instance_group", index, "count"),
                "write the number of instances, `count: 1` or more",
            )


def _passive(context: ModelContext) -> Iterator[Finding]:
    groups = list(_groups(context))
    if groups and all(group.passive for _, group in groups):
        what = "the only instance group is" if len(groups) == 1 else f"all {len(groups)} instance groups are"
        yield Finding(
            f"{what} passive, and Triton hands requests to other instances only: there is none to answer",
            ("instance_group", groups[0][0], "passive"),
            "remove `passive`, or add a group without it",
            follows="the model is READY, and its first request ends the whole server (SIGSEGV) or waits for ever",
        )


def _resources(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    uses: dict[str, list[tuple[bool, ModelContext, int, int]]] = defaultdict(list)
    for context in contexts:
        for index, group in _groups(context):
            for position, resource in enumerate(group.rate_limiter.resources):
                uses[resource.name].append((getattr(resource, "global"), context, index, position))
    for name, places in uses.items():
        first = places[0]
        for everywhere, context, index, position in places:
            if everywhere != first[0]:
                here, there = ("global", "per device") if everywhere else ("per device", "global")
                yield Finding(
                    f"rate limiter resource '{name}' is {here} here and {there} in model '{first[1].name}'; with --rate-limit=execution_count Triton "
                    f"refuses this model",
                    ("instance_group", index, "rate_limiter", "resources", position),
                    "declare it the same way everywhere, or give the two resources different names",
                    model=context.name,
                )


def _count_per_gpu(context: ModelContext) -> Iterator[Finding]:
    gpus = context.server.gpus or 0
    for index, group in _groups(context):
        if group.kind == _GPU and not group.gpus and group.count > 1 and gpus > 1:
            yield Finding(
                f"{_name(group, index)} has count {group.count} and lists no gpus: on {gpus} GPUs that makes {group.count * gpus} instances, each "
                f"with its own copy of the weights",
                ("instance_group", index, "count"),
                f"nothing, if {group.count} on each GPU are meant; otherwise list the GPUs: `count: {group.count} gpus: [0]`",
            )


def _kind_model(context: ModelContext) -> Iterator[Finding]:
    if not context.is_onnx or not context.server.gpus:
        return
    for index, group in _groups(context):
        if group.kind == _MODEL:
            yield Finding(
                f"{_name(group, index)} is KIND_MODEL; the onnxruntime backend then uses no GPU, though the server has {context.server.gpus}",
                ("instance_group", index, "kind"),
                "write `kind: KIND_GPU`, or `kind: KIND_CPU` if the CPU is meant",
            )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG280",
        "gpus-of-a-cpu-group",
        Consequence.REFUSED,
        "Only groups of KIND_GPU and KIND_AUTO list GPUs.",
        "'has kind KIND_CPU but specifies one or more GPUs' (core/src/model_config_utils.cc, ValidateInstanceGroup; tried on 24.10).",
        "instance_group [ { kind: KIND_CPU gpus: [0] } ]",
        "instance_group [ { kind: KIND_CPU } ]",
        check=_gpus_without_gpu_kind,
    ),
    Rule(
        "TG281",
        "gpu-group-without-gpu",
        Consequence.REFUSED,
        "A group of KIND_GPU needs a server with a GPU.",
        "'has kind KIND_GPU but no GPUs are available' (core/src/model_config_utils.cc, ValidateInstanceGroup; tried on 24.10). Without any "
        "instance_group Triton falls back to the CPU "
        "and says nothing; KIND_GPU is how to forbid that.",
        "instance_group [ { kind: KIND_GPU } ]  # --gpus 0",
        "instance_group [ { kind: KIND_CPU } ]",
        check=_no_gpu,
        needs=_GPUS_KNOWN,
    ),
    Rule(
        "TG282",
        "absent-gpu",
        Consequence.REFUSED,
        "A listed GPU exists.",
        "'specifies invalid or unsupported gpu id'; a group of KIND_AUTO (or without a kind) becomes KIND_CPU, and is refused because it lists GPUs "
        "(core/src/model_config_utils.cc, NormalizeInstanceGroup and ValidateInstanceGroup; tried on 24.10).",
        "instance_group [ { kind: KIND_GPU gpus: [6] } ]  # --gpus 2",
        "instance_group [ { kind: KIND_GPU gpus: [0] } ]",
        check=_absent_gpu,
    ),
    Rule(
        "TG283",
        "profile-without-plan",
        Consequence.REFUSED,
        "Only TensorRT plans have a profile.",
        "'specifies profile field which is only supported for TensorRT models' (core/src/model_config_utils.cc, ValidateInstanceGroup; tried on 24.10).",
        'backend: "onnxruntime"\ninstance_group [ { profile: ["0"] } ]',
        'backend: "onnxruntime"\ninstance_group [ { count: 1 } ]',
        check=_profile_without_plan,
    ),
    Rule(
        "TG284",
        "profile-is-no-index",
        Consequence.REFUSED,
        "A profile is the index of an optimization profile, 0 or more.",
        "core/src/model_config_utils.cc, ValidateInstanceGroup. The field is a list of strings.",
        'platform: "tensorrt_plan"\ninstance_group [ { profile: ["max"] } ]',
        'platform: "tensorrt_plan"\ninstance_group [ { profile: ["0", "1"] } ]',
        check=_profile_number,
    ),
    Rule(
        "TG285",
        "negative-count",
        Consequence.MISBEHAVES,
        "A group's count is not negative.",
        "Triton takes every count below 1 for its default: 1, or 2 for onnxruntime on the CPU (core/src/model_config_utils.cc, "
        "NormalizeInstanceGroup; tried on 24.10).",
        "instance_group [ { count: -1 } ]",
        "instance_group [ { count: 1 } ]",
        check=_negative_count,
    ),
    Rule(
        "TG286",
        "resource-of-two-kinds",
        Consequence.FRAGILE,
        "A rate limiter resource is either global or per device, in all models.",
        "'is present as both global and device-specific resource' for the model that is loaded second, where the server has "
        "--rate-limit=execution_count; by default the rate limiter "
        "is off and nothing is looked at (core/src/rate_limiter.cc; tried on 24.10).",
        'resources [ { name: "R" count: 1 }, { name: "R" global: true count: 1 } ]',
        'resources [ { name: "R" count: 1 }, { name: "G" global: true count: 1 } ]',
        check_all=_resources,
    ),
    Rule(
        "TG287",
        "count-on-every-gpu",
        Consequence.FRAGILE,
        "A group with a count above 1 says which GPUs it is for.",
        "Without `gpus`, KIND_GPU means every GPU of the server, and `count` holds for each of them (core/src/model_config_utils.cc, "
        "NormalizeInstanceGroup): a config that was right on "
        "one GPU takes eight times the memory on a host with eight.",
        "instance_group [ { kind: KIND_GPU count: 4 } ]  # --gpus 8",
        "instance_group [ { kind: KIND_GPU count: 4 gpus: [0] } ]",
        check=_count_per_gpu,
        needs=_GPUS_KNOWN,
    ),
    Rule(
        "TG288",
        "onnx-of-kind-model",
        Consequence.SLOW,
        "An ONNX model on a server with GPUs is not of KIND_MODEL.",
        "The onnxruntime backend adds its GPU providers for KIND_GPU alone; KIND_MODEL loads and runs on the CPU (onnxruntime_backend, LoadModel).",
        'backend: "onnxruntime"\ninstance_group [ { kind: KIND_MODEL } ]  # --gpus 1',
        'backend: "onnxruntime"\ninstance_group [ { kind: KIND_GPU } ]',
        check=_kind_model,
        needs=_GPUS_KNOWN,
    ),
    Rule(
        "TG289",
        "only-passive-instances",
        Consequence.FAILS,
        "At least one instance group of a model is not passive.",
        "A passive instance is loaded, and no scheduler knows of it. Where all are, the model is READY, and its first request ends the server with a SIGSEGV, "
        "and every other model with it; a sequence of the direct strategy waits for ever. Nothing checks it before (core/src/model_config_utils.cc; tried on "
        "24.10).",
        "instance_group [ { kind: KIND_CPU passive: true } ]",
        "instance_group [ { kind: KIND_CPU passive: true }, { kind: KIND_CPU } ]",
        check=_passive,
    ),
)
