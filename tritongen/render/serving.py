"""What the server of a deployment is, as its spec has it: its command, ports and healthcheck, and whether it has GPUs, plans, engines and metrics. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tritongen.render.backend_settings import needed_settings
from tritongen.render.caching import wants_cache
from tritongen.render.placement import placed_groups
from tritongen.render.promises import DEFAULT_QUANTILES, Exported, has_load_times
from tritongen.spec import Spec
from tritongen.tritonserver import DISABLE_AUTO_COMPLETE, server_arguments

MOUNT = PurePosixPath("/models")
"""Where containers see the repository; the artifacts, which Triton must not see, lie beside it."""

PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
"""Triton's own, inside the container, by key of `server.listen`."""

_START_US = 120_000_000
_ENGINES_US = 900_000_000
"""A TensorRT engine takes minutes to build, and a model may have one for each of its parts."""


def published_ports(spec: Spec) -> Mapping[str, int]:
    """By key of `server.listen`, the ports inside the container that are published."""
    return {name: port for name, port in PORTS.items() if name != "metrics" or has_metrics(spec)}


def command(spec: Spec) -> tuple[str, ...]:
    """The server and its options, inside the container."""
    options = server_arguments(spec.server, wants_cache=any(wants_cache(model) for model in spec.models), needed=needed_settings(spec.models))
    return ("tritonserver", f"--model-repository={MOUNT}", DISABLE_AUTO_COMPLETE, *options)


def artifacts_mount() -> PurePosixPath:
    """Where containers see the artifacts: beside the repository, as on disk."""
    return MOUNT.with_name(f"{MOUNT.name}.artifacts")


def needs_gpus(spec: Spec) -> bool:
    """Whether any copy of a model is to run on a GPU, or may."""
    return any(group.kind != "cpu" for model in spec.models for group in placed_groups(model))


def builds_plans(spec: Spec) -> bool:
    """Whether any model is served from a plan, which is built where it is served."""
    return any(model.backend == "tensorrt" for model in spec.models)


def keeps_engines(spec: Spec) -> bool:
    """Whether any model has TensorRT engines or times that are kept from one start to the next."""
    users = [model.onnxruntime.tensorrt for model in spec.models if model.backend == "onnxruntime" and model.accelerator == "tensorrt"]
    return any(options.engine_cache or options.timing_cache for options in users)


def has_metrics(spec: Spec) -> bool:
    """Whether the server shows metrics."""
    return spec.server.metrics.enabled is not False


def exported(spec: Spec) -> Exported:
    """What Prometheus is shown by the server."""
    metrics = spec.server.metrics
    quantiles = tuple(one.quantile for one in metrics.summary_quantiles) or DEFAULT_QUANTILES
    return Exported(
        counters=metrics.counter_latencies is not False,
        quantiles=quantiles if metrics.summary_latencies else (),
        load_times=has_load_times(spec.triton.release),
        gpus=needs_gpus(spec) and metrics.gpu is not False,
    )


def awaited_models(spec: Spec) -> tuple[str, ...]:
    """The models that are loaded at the start."""
    names = tuple(model.name for model in spec.models)
    if spec.server.model_control != "explicit" or "*" in spec.server.load_models:
        return names
    return tuple(name for name in names if name in spec.server.load_models)


def healthcheck(spec: Spec) -> Iterator[str]:
    """curl, which the images have (server/build.py), asking for the server and for each model by name: one that is not there at all is not ready either.

    A proxy that the container's variables name would be asked even for localhost.
    """
    yield from ("curl", "--noproxy", "*", "--fail", "--silent", "--show-error", "--fail-early", "--max-time", "5")
    yield "http://localhost:8000/v2/health/ready"
    if spec.server.strict_readiness is not False:
        yield from (f"http://localhost:8000/v2/models/{name}/ready" for name in awaited_models(spec))


def start_us(spec: Spec) -> int:
    """How long a first start may take, in microseconds."""
    if spec.deploy.start_period is not None:
        return spec.deploy.start_period
    awaited = awaited_models(spec)
    builders = [model for model in spec.models if model.name in awaited and model.backend == "onnxruntime" and model.accelerator == "tensorrt"]
    return _START_US + len(builders) * _ENGINES_US
