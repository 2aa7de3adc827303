"""`instances` and `cpu_threads` of a model → `instance_group` of its config, and how many threads each copy gets on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.modelconfig import ModelInstanceGroup
from tritongen.render.findings import Findings
from tritongen.spec import ModelSpec
from tritongen.spec.instances import InstanceGroup
from tritongen.spec.target import Target

_KINDS = {"auto": "KIND_AUTO", "gpu": "KIND_GPU", "cpu": "KIND_CPU", "model": "KIND_MODEL"}
_THREADS = "intra_op_thread_count"


def add_instances(config: Any, model: ModelSpec, findings: Findings) -> None:
    """Write one group for each of the spec."""
    needs_gpu = model.backend == "tensorrt" or model.accelerator in ("tensorrt", "cuda")
    stated = "instances" in model.model_fields_set
    for index, group in enumerate(model.instances):
        # Nothing was said and only a GPU will do: say so to Triton too, which would else fall back to the CPU without a word.
        kind = "gpu" if needs_gpu and not stated else group.kind
        _check_kind(model, index, kind, findings, needs_gpu=needs_gpu)
        added = config.instance_group.add(kind=_KINDS[kind], count=group.count, gpus=group.gpus)
        added.profile.extend(str(profile) for profile in group.profiles)
        if group.host_policy is not None:
            added.host_policy = group.host_policy
        _add_dla(added, model, index, group, findings)
        _add_rate_limiter(added, group)
        _say_needed_options(index, group, findings)


def _check_kind(model: ModelSpec, index: int, kind: str, findings: Findings, *, needs_gpu: bool) -> None:
    """Say where a group runs on a device on which its backend or accelerator does not."""
    what = "backend: tensorrt" if model.backend == "tensorrt" else f"accelerator: {model.accelerator}"
    if needs_gpu and kind in ("cpu", "model"):
        consequence = "Triton refuses to load the model" if model.backend == "tensorrt" else "Triton ignores the accelerator without a word"
        findings.error(
            "TG107",
            ("instances", index),
            f"{what} needs instances of kind gpu, and this group is {kind}",
            consequence=consequence,
            hint="write kind: gpu, or remove the accelerator",
        )
    if model.accelerator == "openvino" and kind == "gpu":
        hint = "write kind: cpu"
        findings.error("TG107", ("instances", index), "accelerator: openvino runs on the CPU, and this group is of kind gpu", hint=hint)


def _add_dla(added: Any, model: ModelSpec, index: int, group: InstanceGroup, findings: Findings) -> None:
    if group.dla is None:
        return
    if model.backend == "tensorrt":
        added.secondary_devices.add(kind=ModelInstanceGroup.SecondaryDevice.KIND_NVDLA, device_id=group.dla)
        return
    findings.idle(
        ("instances", index, "dla"),
        f"dla has no effect with backend: {model.backend}",
        consequence="only the tensorrt backend reads secondary devices",
        hint="remove dla, or write backend: tensorrt",
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


def _say_needed_options(index: int, group: InstanceGroup, findings: Findings) -> None:
    """Keys that the server looks at only where it was started with an option."""
    for key, option in _needed_options(group):
        findings.advice(
            "TG174",
            ("instances", index, key),
            f"{key} needs an option of the server: {option}",
            consequence="without the option Triton loads the model and never looks at it",
            hint=f"start the server with it, or remove {key}",
        )


def _needed_options(group: InstanceGroup) -> Iterator[tuple[str, str]]:
    if group.rate_limiter is not None:
        yield "rate_limiter", "--rate-limit=execution_count"
    if group.host_policy is not None:
        yield "host_policy", f"--host-policy={group.host_policy},numa-node=N or cpu-cores=N-M"


def cpu_copies(config: Any) -> int:
    """How many copies of an ONNX model can run at once on a CPU; those of KIND_AUTO do so where there is no GPU.

    A count below 1 on the CPU means 2 to Triton for onnxruntime (core/src/model_config_utils.cc, NormalizeInstanceGroup).
    """
    return sum(group.count if group.count > 0 else 2 for group in config.instance_group if group.kind != ModelInstanceGroup.KIND_GPU)


def add_threads(config: Any, model: ModelSpec, target: Target, findings: Findings) -> tuple[str, ...]:
    """Write how many threads each copy of an ONNX model has inside one operator; the sentences are for the header of the config.

    `cpu_threads` wins. A single copy is left to ONNX Runtime, which takes all cores: several of them would each start as many threads as there are cores.
    Call it last: an overlay may have set the instances or the threads.
    """
    threads, copies = model.cpu_threads, cpu_copies(config)
    if model.backend != "onnxruntime":
        return ()
    if threads is not None:
        config.parameters[_THREADS].string_value = str(threads)
        _judge_threads(threads, copies, target, findings)
        return ()
    if copies < 2 or _THREADS in config.parameters:
        return ()
    if target.cpus is not None:
        threads = max(1, target.cpus // copies)
        config.parameters[_THREADS].string_value = str(threads)
        _judge_threads(threads, copies, target, findings)
        return (f"{threads} thread{'s' * (threads > 1)} for each of {copies} copies on the CPU: the server has {target.cpus} cores (triton.cpus).",)
    config.parameters[_THREADS].string_value = "1"
    findings.advice(
        "TG173",
        ("instances",),
        f"{copies} copies can run on the CPU, and how many cores there are is not known: each copy gets 1 thread",
        consequence="with as many threads as cores for each copy, which is ONNX Runtime's default, they would hinder each other; with 1, cores may be idle",
        hint="write triton: {cpus: 8} with the cores of the server's container, or cpu_threads: with the threads of one copy",
    )
    return (f"1 thread for each of {copies} copies on the CPU: the number of cores is not known (triton.cpus in the spec).",)


def _judge_threads(threads: int, copies: int, target: Target, findings: Findings) -> None:
    if target.cpus is not None and copies > 0 and threads * copies > target.cpus:
        findings.advice(
            "TG175",
            ("cpu_threads",) if threads > 1 else ("instances",),
            f"{copies} x {threads} threads (copies on the CPU x threads of each) are {threads * copies}, and triton.cpus is {target.cpus}",
            consequence="the threads wait for each other, and all copies together are slower than fewer of them",
            hint=f"write cpu_threads: {max(1, target.cpus // copies)}, or lower the count of instances to {max(1, target.cpus // threads)}",
        )
