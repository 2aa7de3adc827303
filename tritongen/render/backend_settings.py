"""Settings of whole backends without which a server does not load a model: what `tensorrt.build` asks of `--backend-config`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tritongen.render.findings import Findings, Key
from tritongen.spec import ModelSpec, Spec
from tritongen.spec.plans import PlanBuild
from tritongen.spec.server import Server

BACKEND = "tensorrt"
_BETWEEN = ";"


def asked_settings(build: PlanBuild) -> Iterator[tuple[str, str, Sequence[str]]]:
    """(key of `tensorrt.build`, setting, its values) of all that a plan asks for. Source: tensorrt_backend/src/tensorrt.cc."""
    if build.version_compatible:
        yield "version_compatible", "version-compatible", ("true",)
    if build.plugins:
        yield "plugins", "plugins", build.plugins


def needed_settings(models: Sequence[ModelSpec]) -> Mapping[str, Mapping[str, str]]:
    """By backend and setting, what all models together ask for, each library once."""
    needed: dict[str, dict[str, None]] = {}
    for model in _planned(models):
        for _, setting, values in asked_settings(model.tensorrt.build):
            needed.setdefault(setting, {}).update(dict.fromkeys(values))
    return {BACKEND: {setting: _BETWEEN.join(values) for setting, values in needed.items()}} if needed else {}


def judge_backend_settings(spec: Spec, findings: Findings) -> None:
    """Settings of `server.backend_config` with which a plan is not loaded (TG443). `findings`: for keys of the whole spec."""
    for index, model in enumerate(spec.models):
        for key, setting, values in asked_settings(model.tensorrt.build) if model.backend == BACKEND else ():
            stated = _stated(spec.server, setting)
            if stated is None or not (lacking := [value for value in values if value not in stated.split(_BETWEEN)]):
                continue
            place: Key = ("models", index, "tensorrt", "build", key)
            findings.error(
                "TG443",
                ("server", "backend_config", BACKEND, setting),
                f"server.backend_config.{BACKEND}.{setting} is {stated!r}, and model '{model.name}' asks for {', '.join(lacking)} with tensorrt.build.{key}"
                f" ({findings.locate(place)})",
                consequence="Triton refuses to load the model",
                hint=f"remove {setting}, which a deployment has by itself where a model needs it; or remove {key} from the model",
            )


def say_needed_settings(build: PlanBuild, server: Server | None, findings: Findings) -> None:
    """What a server must be started with, where the spec's own `server` does not say it (TG174)."""
    for key, setting, values in asked_settings(build):
        if server is not None and _stated(server, setting) is not None:
            continue
        option = f"{setting}={_BETWEEN.join(values)}"
        findings.advice(
            "TG174",
            ("tensorrt", "build", key),
            f"{key} needs an option of the server: --backend-config={BACKEND},{option}",
            consequence="without the option Triton refuses to load the model",
            hint=f"a rendered deployment has it; start any other tritonserver with it, or remove {key}",
        )


def _planned(models: Sequence[ModelSpec]) -> Iterator[ModelSpec]:
    return (model for model in models if model.backend == BACKEND)


def _stated(server: Server, setting: str) -> str | None:
    return server.backend_config.get(BACKEND, {}).get(setting)
