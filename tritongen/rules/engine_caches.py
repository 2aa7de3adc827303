"""Rules: engine caches of the onnxruntime backend's `tensorrt` accelerator. Part of the family TG29x."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from tritongen.rules.context import ModelContext
from tritongen.rules.ortload import boolean
from tritongen.rules.placement import tensorrt_accelerators
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_ENABLE, _PATH, _PREFIX = "trt_engine_cache_enable", "trt_engine_cache_path", "trt_engine_cache_prefix"


def _caching(accelerator: Any) -> bool:
    return boolean(accelerator.parameters.get(_ENABLE, "0")) is True


def _off(context: ModelContext) -> Iterator[Finding]:
    for key, accelerator in tensorrt_accelerators(context):
        written = f'parameters {{ key: "{_ENABLE}" value: "1" }} parameters {{ key: "{_PATH}" value: "/engine-cache/{context.name}" }}'
        if boolean(accelerator.parameters.get(_ENABLE, "0")) is False:
            extra = f"; {_PATH} alone does nothing" if _PATH in accelerator.parameters else ""
            message = f"no engine cache: every start, and every instance, builds all TensorRT engines again{extra}"
            yield Finding(message, (*key, "name"), f"add {written}, on a volume that lasts")
        elif _caching(accelerator) and not accelerator.parameters.get(_PATH):
            message = f"{_ENABLE} without {_PATH}: engines go to the server's working directory, which a container loses when it ends"
            yield Finding(message, (*key, "parameters", _ENABLE), f'add parameters {{ key: "{_PATH}" value: "/engine-cache/{context.name}" }}')


def _inside(context: ModelContext) -> Iterator[Finding]:
    if context.folder is None:
        return
    model = PurePosixPath(context.folder.path.absolute().as_posix())
    versions = {f"{context.name}/{folder}" for folder in context.versions.loaded.values()} | {f"{model.parent.name}/{context.name}"}
    for key, accelerator in tensorrt_accelerators(context):
        for name in (_PATH, "trt_timing_cache_path", "trt_ep_context_file_path"):
            path = PurePosixPath(accelerator.parameters.get(name, ""))
            # In a container the repository lies elsewhere, but its folders keep their names.
            named = any("/".join(pair) in versions for pair in zip(path.parts, path.parts[1:], strict=False))
            if path.is_absolute() and ".." not in path.parts and (named or path.is_relative_to(model.parent)):
                message = (
                    f"{name} '{path}' lies inside the model repository: polling takes its changes for changes of the model, and read-only mounts refuse them"
                )
                yield Finding(message, (*key, "parameters", name), f'write value: "/engine-cache/{context.name}", on a volume of its own')


def _versions(context: ModelContext) -> Iterator[Finding]:
    loaded = sorted(context.versions.loaded)
    for key, accelerator in tensorrt_accelerators(context):
        if len(loaded) > 1 and _caching(accelerator):
            message = (
                f"versions {', '.join(map(str, loaded))} are loaded and share one engine cache: engines are found again by the names in the graph, so that"
                " networks that differ in their weights alone get each other's"
            )
            yield Finding(message, (*key, "parameters", _ENABLE), f'write value: "0" for {_ENABLE}, load one version only, or serve them as two models')


def _shared(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    used: dict[tuple[str, str], list[tuple[ModelContext, Key]]] = {}
    for context in contexts:
        for key, accelerator in tensorrt_accelerators(context):
            path = accelerator.parameters.get(_PATH, "")
            if _caching(accelerator) and path:
                place = (PurePosixPath(path).as_posix(), accelerator.parameters.get(_PREFIX, ""))
                used.setdefault(place, []).append((context, (*key, "parameters", _PATH)))
    for (path, _), users in used.items():
        if len({context.name for context, _ in users}) > 1:
            for context, key in users:
                others = ", ".join(f"'{other.name}'" for other, _ in users if other is not context)
                message = (
                    f"{_PATH} '{path}' is also that of {others}: engines are found again by the graph, so equal networks with other weights get each other's"
                )
                yield Finding(message, key, f'write value: "{path.rstrip("/")}/{context.name}"', location=context.locate(key), model=context.name)


def _example(parameters: str) -> str:
    accelerator = f'optimization {{ execution_accelerators {{ gpu_execution_accelerator [ {{ name: "tensorrt" {parameters} }} ] }} }}'
    return f'platform: "onnxruntime_onnx"\ninstance_group [ {{ kind: KIND_GPU }} ]\n{accelerator}'


def _cache(path: str) -> str:
    return f'parameters {{ key: "{_ENABLE}" value: "1" }} parameters {{ key: "{_PATH}" value: "{path}" }}'


RULES: tuple[Rule, ...] = (
    Rule(
        "TG297",
        "no-engine-cache",
        Consequence.SLOW,
        "Accelerator 'tensorrt' keeps its engines in a cache with a path of its own.",
        "ONNX Runtime builds engines when it first sees a shape, minutes each, and the cache is off unless it is switched on (ONNX Runtime's "
        "documentation of the TensorRT "
        "execution provider); each instance on each GPU pays again.",
        _example(""),
        _example(_cache("/engine-cache/resnet")),
        _off,
    ),
    Rule(
        "TG298",
        "engine-cache-in-the-repository",
        Consequence.FRAGILE,
        "Caches that ONNX Runtime writes lie outside the model repository.",
        "In polling mode Triton takes a changed file below a model's folder for a changed model and loads it again; repositories are often "
        "mounted read-only or shared.",
        _example(_cache("/models/resnet/1/cache")),
        _example(_cache("/engine-cache/resnet")),
        _inside,
        needs=frozenset({"config", "folder"}),
    ),
    Rule(
        "TG299",
        "shared-engine-cache",
        Consequence.MISBEHAVES,
        "No two models share an engine cache.",
        "ONNX Runtime names cached engines by a hash of the graph, not of the weights: the second model can answer with the first one's engine "
        "(microsoft/onnxruntime issue 6455; "
        "its maintainers' advice is a path for each model).",
        f"# both models\n{_example(_cache('/engine-cache'))}",
        f"# one of them\n{_example(_cache('/engine-cache/resnet'))}",
        check_all=_shared,
    ),
    Rule(
        "TG308",
        "engine-cache-of-several-versions",
        Consequence.MISBEHAVES,
        "A model of which several versions are loaded keeps no engines.",
        "All versions have one config, and so one cache. ONNX Runtime names engines by the file's name and the names in the graph, which are those of every "
        "version of a network, and not by its weights (`TRTGenerateId` of its TensorRT provider): the second version can answer with the first one's engine.",
        f"version_policy {{ all {{}} }}\n{_example(_cache('/engine-cache/resnet'))}",
        f"version_policy {{ latest {{ num_versions: 1 }} }}\n{_example(_cache('/engine-cache/resnet'))}",
        _versions,
        needs=frozenset({"config", "folder"}),
    ),
)
