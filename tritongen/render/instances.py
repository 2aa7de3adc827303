"""`instances` of a model → `instance_group` of its config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.modelconfig import ModelInstanceGroup
from tritongen.render.findings import Findings
from tritongen.render.placement import KINDS, Placed, is_overlaid, needs_gpu, placed_groups
from tritongen.sources.flow import yaml_scalar
from tritongen.spec import ModelSpec
from tritongen.spec.instances import InstanceGroup
from tritongen.spec.server import Server


def add_instances(config: Any, model: ModelSpec, server: Server | None, profiles: int, findings: Findings) -> None:
    """Write one group for each of the spec, unless `config: instance_group` takes their place; both are judged.

    `profiles`: how many the plan has. A group that names none uses them all: without a list, Triton uses the first one only.
    """
    groups = placed_groups(model)
    for placed in groups:
        _check_kind(model, placed, findings)
        _say_needed_options(placed, server, findings)
        _say_idle_dla(model, placed, findings)
    if is_overlaid(model):
        return
    for group, placed in zip(model.instances, groups, strict=True):
        added = config.instance_group.add(kind=KINDS[placed.kind], count=group.count, gpus=group.gpus)
        added.profile.extend(map(str, group.profiles or (range(profiles) if profiles > 1 else ())))
        if group.host_policy is not None:
            added.host_policy = group.host_policy
        if group.dla is not None and model.backend == "tensorrt":
            added.secondary_devices.add(kind=ModelInstanceGroup.SecondaryDevice.KIND_NVDLA, device_id=group.dla)
        _add_rate_limiter(added, group)


def _check_kind(model: ModelSpec, placed: Placed, findings: Findings) -> None:
    """Say where a group runs on a device on which its backend or accelerator does not."""
    key = "backend" if model.backend == "tensorrt" else "accelerator"
    what = f"{key}: {getattr(model, key)} ({findings.locate((key,))})"
    if needs_gpu(model) and placed.kind in ("cpu", "model"):
        consequence = "Triton refuses to load the model" if model.backend == "tensorrt" else "Triton ignores the accelerator without a word"
        findings.error(
            "TG107",
            placed.key,
            f"{what} needs instances of kind gpu, and this group is of kind {placed.kind}",
            consequence=consequence,
            hint=f"write kind: {_written(placed, 'gpu')}, or {'backend: onnxruntime' if model.backend == 'tensorrt' else 'accelerator: none'}",
        )
    if model.accelerator == "openvino" and placed.kind == "gpu":
        hint = f"write kind: {_written(placed, 'cpu')}, or accelerator: cuda"
        findings.error("TG107", placed.key, f"{what} runs on the CPU, and this group is of kind gpu", hint=hint)


def _written(placed: Placed, kind: str) -> str:
    """A kind as it is written where the group stands."""
    return KINDS[kind] if placed.key[0] == "config" else kind


def _say_idle_dla(model: ModelSpec, placed: Placed, findings: Findings) -> None:
    if placed.dla is not None and model.backend != "tensorrt":
        what = placed.dla_key[-1]
        findings.idle(
            placed.dla_key,
            f"{what} has no effect with backend: {model.backend}",
            consequence="only the tensorrt backend reads secondary devices",
            hint=f"remove {what}, or write backend: tensorrt",
        )


def _add_rate_limiter(added: Any, group: InstanceGroup) -> None:
    if group.rate_limiter is None:
        return
    added.rate_limiter.SetInParent()
    for resource in group.rate_limiter.resources:
        taken = added.rate_limiter.resources.add(name=resource.name, count=resource.count)
        # `global` is a word of Python.
        setattr(taken, "global", resource.is_global)
    if group.rate_limiter.priority is not None:
        added.rate_limiter.priority = group.rate_limiter.priority


def _say_needed_options(placed: Placed, server: Server | None, findings: Findings) -> None:
    """Keys that the server looks at only where it was started with an option, which the spec's `server` does not have."""
    for key, option, written in _needed_options(placed, server or Server()):
        findings.advice(
            "TG174",
            (*placed.key, key),
            f"{key} needs an option of the server: {option}",
            consequence="without the option Triton loads the model and never looks at it",
            hint=f"write server: {written}, or start the server with it; or remove {key}",
        )


def _needed_options(placed: Placed, server: Server) -> Iterator[tuple[str, str, str]]:
    """(key, option, what to write in `server`)."""
    if placed.is_limited and server.rate_limit is None:
        yield "rate_limiter", "--rate-limit=execution_count", "{rate_limit: {}}"
    if placed.host_policy and placed.host_policy not in server.host_policies:
        option = f"--host-policy={placed.host_policy},numa-node=N or cpu-cores=N-M"
        yield "host_policy", option, f"{{host_policies: {{{yaml_scalar(placed.host_policy)}: {{numa_node: 0}}}}}}"
