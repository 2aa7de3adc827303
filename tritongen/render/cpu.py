"""The same spec for a server without a GPU: `tritongen render --cpu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tritongen.diagnostics import Diagnostic, Location
from tritongen.render.findings import Findings, Key
from tritongen.render.keys import is_stated, without
from tritongen.render.placement import is_overlaid, placed_groups
from tritongen.render.precision import is_converted
from tritongen.spec import ModelSpec, Spec
from tritongen.spec.instances import InstanceGroup
from tritongen.spec.server import Server

_FOR_GPUS: tuple[Key, ...] = (("precision",), ("conversion",), ("onnxruntime", "cuda"), ("onnxruntime", "tensorrt"), ("tensorrt",))
"""Keys of a model that speak of GPUs alone."""

_OF_CLIENTS: tuple[Key, ...] = (("precision",), ("conversion",))
"""Those of them that stay where clients send and take the types of the converted file, which must be the same on every device."""


def for_cpu(spec: Spec, locate: Callable[[Key], Location]) -> tuple[Spec, list[Diagnostic]]:
    """A spec whose models run on the CPU, and what is in the way (TG434): what `config` says of GPUs stands in Triton's own words, and is not guessed at.

    A plan's model is served by ONNX Runtime from its source, copies on GPUs become one copy on the CPU, and accelerators of GPUs are left out with what is
    said about them; copies that run on the CPU anyway stay as they are. Inputs and outputs stay what they are. `locate` gives the place of a key of the spec.
    """
    found: list[Diagnostic] = []
    for index, model in enumerate(spec.models):
        findings = Findings(model.name, lambda key, index=index: locate(("models", index, *key)), lambda key: False)  # type: ignore[misc]
        for key, what in _in_the_way(model):
            findings.error(
                "TG434",
                key,
                f"config: {what} is for GPUs, and the model is to be served without one",
                consequence="Triton refuses to load a model that asks for a GPU where there is none",
                hint=f"say it with a key of the spec, which --cpu leaves out, instead of config: {key[1]}",
            )
        found += findings.found
    target = spec.triton.model_copy(update={"gpu_memory": None})
    models = tuple(_model_for_cpu(model) for model in spec.models)
    return spec.model_copy(update={"models": models, "server": _server_for_cpu(spec.server), "triton": target}), found


def _server_for_cpu(server: Server) -> Server:
    """The server without what speaks of GPUs: their memory, their resources, and plans' backend.

    Nor has it host policies: they name cores and NUMA nodes of the machine with the GPUs, and a model whose cores are all missing does not load.
    """
    limit = server.rate_limit
    return server.model_copy(
        update={
            "memory": server.memory.model_copy(update={"gpus": ()}),
            "rate_limit": limit and limit.model_copy(update={"resources": tuple(each for each in limit.resources if each.gpu is None)}),
            "host_policies": {},
            "backend_config": {name: settings for name, settings in server.backend_config.items() if name != "tensorrt"},
        }
    )


def _in_the_way(model: ModelSpec) -> Iterator[tuple[Key, str]]:
    """(key, what it says) of an overlay that asks for GPUs."""
    if is_overlaid(model) and any(group.kind in ("gpu", "model") or group.gpus for group in placed_groups(model)):
        yield ("config", "instance_group"), "instance_group"
    optimization = model.config.get("optimization")
    if not isinstance(optimization, Mapping):
        return
    if "cuda" in optimization:
        yield ("config", "optimization", "cuda"), "optimization.cuda"
    accelerators = optimization.get("execution_accelerators")
    if isinstance(accelerators, Mapping) and "gpu_execution_accelerator" in accelerators:
        yield ("config", "optimization", "execution_accelerators"), "optimization.execution_accelerators.gpu_execution_accelerator"


def _model_for_cpu(model: ModelSpec) -> ModelSpec:
    # What the profiles of a plan say of sizes and values is true of the source, too.
    known = {"shapes": model.known_shapes, "samples": model.known_samples}
    changes: dict[str, object] = {key: value for key, value in known.items() if value != getattr(model, key)}
    is_seen = is_converted(model) and not model.conversion.keep_io_types
    for key in _FOR_GPUS:
        if not (is_seen and key in _OF_CLIENTS) and is_stated(model, key):
            model = without(model, key)
    if is_stated(model, ("onnxruntime",)) and not model.onnxruntime.model_fields_set:
        model = without(model, ("onnxruntime",))
    changes["backend"] = "onnxruntime"
    if not is_overlaid(model):
        changes["instances"] = tuple(_groups_for_cpu(model))
    if model.accelerator != "openvino":
        changes["accelerator"] = "none"
    return model.model_copy(update=changes)


def _groups_for_cpu(model: ModelSpec) -> Iterator[InstanceGroup]:
    """The groups that are on the CPU, and one copy in place of all others: copies that share the cores hinder each other."""
    groups = [group.model_copy(update={"host_policy": None}) for group in model.instances if group.kind == "cpu"]
    yield from groups
    if not groups:
        yield InstanceGroup(kind="cpu")
