"""Where the copies of a model run, and how many there are: what `instances` says, or `config: instance_group` in its place.

The one owner of that fact: threads, limits of queues and what has an effect on which device are all derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritongen.modelconfig import ModelConfig, ModelInstanceGroup, merge_overlay
from tritongen.render.findings import Key
from tritongen.spec import ModelSpec
from tritongen.spec.instances import InstanceGroup

KINDS = {"auto": "KIND_AUTO", "gpu": "KIND_GPU", "cpu": "KIND_CPU", "model": "KIND_MODEL"}
"""Words of the spec → Triton's."""

_WORDS = {getattr(ModelInstanceGroup, name): word for word, name in KINDS.items()}
_OVERLAY = "instance_group"


@dataclass(frozen=True)
class Taken:
    """A resource of the rate limiter that a group takes: its name, how much of it, whether all devices share it, and where the spec says so."""

    name: str
    count: int
    is_global: bool
    key: Key


@dataclass(frozen=True)
class Placed:
    """One group of copies.

    Attributes:
        key: where the spec says so.
        kind: `auto`, `gpu`, `cpu` or `model`.
        count: copies on each device.
        gpus: the GPUs that are listed; none stands for every GPU.
        is_passive: whether no request ever gets to them.
        host_policy: the name of a policy that the server knows; empty for none.
        is_limited: whether the rate limiter is told of them.
        resources: what the rate limiter counts for them.
        dla: the deep learning accelerator that they use; None for none.
    """

    key: Key
    kind: str
    count: int
    gpus: tuple[int, ...] = ()
    is_passive: bool = False
    host_policy: str = ""
    is_limited: bool = False
    resources: tuple[Taken, ...] = ()
    dla: int | None = None

    @property
    def dla_key(self) -> Key:
        """Where the spec names their deep learning accelerator."""
        return (*self.key, "secondary_devices" if self.key[0] == "config" else "dla")

    @property
    def copies(self) -> int:
        """How many can run at once; on one GPU, where no GPUs are listed."""
        return 0 if self.is_passive else self.count * (len(self.gpus) or 1)


def needs_gpu(model: ModelSpec) -> bool:
    """Whether the model's backend or accelerator runs on GPUs only."""
    return model.backend == "tensorrt" or model.accelerator in ("tensorrt", "cuda")


def is_overlaid(model: ModelSpec) -> bool:
    """Whether `config: instance_group` takes the place of `instances`."""
    return _OVERLAY in model.config


def placed_groups(model: ModelSpec) -> tuple[Placed, ...]:
    """Every group that Triton will be told of; what is wrong in an overlay is reported where that is merged."""
    if is_overlaid(model):
        return _overlaid(model)
    return tuple(_typed(model, index, group) for index, group in enumerate(model.instances))


def _typed(model: ModelSpec, index: int, group: InstanceGroup) -> Placed:
    key: Key = ("instances", index)
    # Nothing was said and only a GPU will do: say so to Triton too, which would else fall back to the CPU without a word.
    kind = "gpu" if needs_gpu(model) and "instances" not in model.model_fields_set else group.kind
    limiter = group.rate_limiter
    return Placed(
        key,
        kind,
        group.count,
        group.gpus,
        host_policy=group.host_policy or "",
        is_limited=limiter is not None,
        resources=tuple(
            Taken(resource.name, resource.count, resource.is_global, (*key, "rate_limiter", "resources", number))
            for number, resource in enumerate(limiter.resources if limiter else ())
        ),
        dla=group.dla,
    )


def _overlaid(model: ModelSpec) -> tuple[Placed, ...]:
    config = ModelConfig()
    merge_overlay(config, {_OVERLAY: model.config[_OVERLAY]})
    if not config.instance_group:
        # An empty list is none, and Triton then has a group of its own.
        return (Placed(("config", _OVERLAY), "auto", _count(model, "auto", 0)),)
    return tuple(_read(model, ("config", _OVERLAY, index), group) for index, group in enumerate(config.instance_group))


def _read(model: ModelSpec, key: Key, group: Any) -> Placed:
    kind = _WORDS[group.kind]
    return Placed(
        key,
        kind,
        _count(model, kind, group.count),
        tuple(group.gpus),
        group.passive,
        group.host_policy,
        group.HasField("rate_limiter"),
        tuple(
            Taken(resource.name, resource.count, getattr(resource, "global"), (*key, "rate_limiter", "resources", number))
            for number, resource in enumerate(group.rate_limiter.resources)
        ),
        next((device.device_id for device in group.secondary_devices), None),
    )


def _count(model: ModelSpec, kind: str, count: int) -> int:
    """A count below 1 on the CPU means 2 to Triton for onnxruntime, else 1 (core/src/model_config_utils.cc, NormalizeInstanceGroup)."""
    return count if count > 0 else 2 if model.backend == "onnxruntime" and kind in ("cpu", "auto") else 1
