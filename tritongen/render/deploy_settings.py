"""What the keys of `deploy` cannot mean together, or beside `server` and `load`: said once for the whole spec, whether or not a deployment is rendered."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from tritongen.render.caching import wants_cache
from tritongen.render.findings import Findings, Key
from tritongen.render.images import judge_image
from tritongen.spec import Spec
from tritongen.spec.units import about_size, duration_text
from tritongen.tritonserver import DEFAULT_CACHE_BYTES

_LONGEST_WINDOW_US = 72 * 3_600_000_000
"""Of the alerts on promises (templates/monitoring/alerts.yml.j2)."""

_HIDING = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""Variables that choose GPUs, too: the one by CUDA, the other by NVIDIA's container toolkit."""


_ORDER = "CUDA_DEVICE_ORDER"


def is_mig(gpu: str) -> bool:
    """Whether an entry of `deploy.gpus` is a MIG device."""
    return gpu.startswith("MIG-")


def judge_deploy_settings(spec: Spec, findings: Findings, *, whole: bool) -> None:
    """Everything to say. `findings`: for keys of the whole spec; `whole`: whether the spec holds all of its models."""
    judge_image(spec, findings)
    _judge_scenario(spec, findings)
    _judge_memory(spec, findings)
    _judge_visible_gpus(spec, findings)
    _judge_order(spec, findings)
    _judge_shared_memory(spec, findings)
    _judge_control(spec, findings)
    _judge_retention(spec, findings)
    if whole:
        _judge_without_metrics(spec, findings)


def _judge_scenario(spec: Spec, findings: Findings) -> None:
    wanted, known = spec.deploy.load.scenario, list(spec.load.scenarios) if spec.load else []
    if wanted is not None and wanted not in known:
        findings.error(
            "TG447",
            ("deploy", "load", "scenario"),
            f"there is no scenario {wanted[:60]!r}",
            consequence="Locust would have nothing to send",
            hint=f"its scenarios are {', '.join(known)}" if known else "add load: {scenarios: {steady: {rate: 200, duration: 60s}}}, or leave the key out",
        )


def _judge_memory(spec: Spec, findings: Findings) -> None:
    """A limit that what the server is told to take alone uses up."""
    limit, cache = spec.deploy.memory, spec.server.cache
    cached = cache.size if cache is not None else DEFAULT_CACHE_BYTES if any(map(wants_cache, spec.models)) else 0
    taken = cached + (spec.server.memory.pinned or 0)
    if limit is not None and taken >= limit:
        findings.error(
            "TG448",
            ("deploy", "memory"),
            f"the server may take {about_size(limit)}, and its response cache and pinned memory alone take {about_size(taken)}",
            consequence="the kernel ends it (exit code 137) once they are in use",
            hint="raise deploy.memory, or lower server.cache.size or server.memory.pinned",
        )


def _judge_visible_gpus(spec: Spec, findings: Findings) -> None:
    gpus = spec.deploy.gpus
    for name in [name for name in _HIDING if name in spec.deploy.environment]:
        findings.error(
            "TG448",
            ("deploy", "environment", name),
            f"{name} chooses GPUs, and so does deploy.gpus",
            consequence="the server may see other GPUs than it is given, under other numbers than instances.gpus has",
            hint="remove it, and name the GPUs in deploy.gpus",
        )
    if gpus != "all" and any(map(is_mig, gpus)) and len(gpus) > 1:
        findings.warning(
            "TG448",
            ("deploy", "gpus"),
            f"the server gets {len(gpus)} devices, and uses one: CUDA shows a process a single MIG device",
            consequence="the others stand idle",
            hint="name one MIG device, and render a spec for each server",
        )


def _judge_order(spec: Spec, findings: Findings) -> None:
    order = spec.deploy.environment.get(_ORDER)
    if order is not None and order != "PCI_BUS_ID":
        findings.warning(
            "TG448",
            ("deploy", "environment", _ORDER),
            f"{_ORDER} is {order[:60]!r}, and a deployment numbers GPUs by PCI_BUS_ID",
            consequence="instances.gpus may mean other GPUs than nvidia-smi shows under these numbers, and plans are built for others",
            hint="remove it",
        )


def _judge_shared_memory(spec: Spec, findings: Findings) -> None:
    shared, limit = spec.deploy.shm_size, spec.deploy.memory
    if shared is not None and limit is not None and shared > limit:
        findings.warning(
            "TG448",
            ("deploy", "shm_size"),
            f"{about_size(shared)} may be shared memory, and the server may take {about_size(limit)} of all memory (deploy.memory)",
            consequence="what is used of it counts: the kernel ends the server (exit code 137) before it is full",
            hint="lower shm_size, or raise deploy.memory",
        )


def _judge_control(spec: Spec, findings: Findings) -> None:
    if spec.server.model_control == "explicit" and not spec.server.load_models:
        findings.advice(
            "TG448",
            ("server", "model_control"),
            "the server starts without a model: model_control is explicit, and there are no load_models",
            consequence="it is ready at once and answers nobody until somebody loads a model; no healthcheck and no alert looks at models",
            hint=f"write load_models: ['*'], or load them later: curl -X POST localhost:{spec.server.listen.http}/v2/repository/models/NAME/load",
        )
    if spec.server.model_control == "poll" and (planned := [model.name for model in spec.models if model.backend == "tensorrt"]):
        findings.warning(
            "TG448",
            ("server", "model_control"),
            f"with model_control: poll Triton loads model '{planned[0]}' at the next look, when its config is new and its plan is not built yet",
            consequence="it loads the old plan with the new config, or none",
            hint="write model_control: explicit, and load it once plan-builder has built the plan",
        )


def _judge_retention(spec: Spec, findings: Findings) -> None:
    retention = spec.deploy.monitoring.retention
    if retention is not None and retention < _LONGEST_WINDOW_US and any(model.slo is not None for model in spec.models):
        findings.warning(
            "TG448",
            ("deploy", "monitoring", "retention"),
            f"Prometheus forgets after {duration_text(retention)}, and the alert TritonSloBurnsSteadily looks back {duration_text(_LONGEST_WINDOW_US)}",
            consequence="it takes the short time that is left for the long one",
            hint=f"write {duration_text(_LONGEST_WINDOW_US)} or more",
        )


def _judge_without_metrics(spec: Spec, findings: Findings) -> None:
    """Keys about metrics where there are none."""
    if spec.server.metrics.enabled is not False:
        return
    written = [*_stated(spec.server.metrics, ("server", "metrics")), *_stated(spec.deploy.monitoring, ("deploy", "monitoring"))]
    if "metrics" in spec.server.listen.model_fields_set:
        written.append(("server", "listen", "metrics"))
    for key in written:
        if key[-1] != "enabled":
            findings.idle(key, f"{'.'.join(map(str, key))} has no effect: metrics.enabled is false", hint="remove it, or metrics.enabled: false")


def _stated(settings: BaseModel, here: Key) -> Iterator[Key]:
    """The keys of a mapping that were written."""
    return ((*here, name) for name in type(settings).model_fields if name in settings.model_fields_set)
