"""What the keys of `server` and `deploy` mean together with the models and the release: said once for the whole spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tritongen.diagnostics import Diagnostic, Location
from tritongen.releases import Release
from tritongen.render.backend_options import judge_backend_options
from tritongen.render.backend_settings import judge_backend_settings
from tritongen.render.caching import wants_cache
from tritongen.render.deploy_settings import is_mig, judge_deploy_settings
from tritongen.render.findings import Findings, Key
from tritongen.render.placement import Taken, placed_groups
from tritongen.spec import Spec
from tritongen.tritonserver import lacking


def judge_server(spec: Spec, release: Release | None, locate: Callable[[Key], Location], *, whole: bool = True) -> list[Diagnostic]:
    """Everything to say about `server` and `deploy`.

    Args:
        spec: the spec.
        release: what it is for; None where that is not known, and nothing is judged by it.
        locate: the place of a key of the spec.
        whole: whether the spec holds all of its models; where some were left out, nothing is said of what no model uses.
    """
    findings = Findings("", locate, lambda key: False)
    if release is not None:
        _judge_release(spec, release, findings)
    _judge_names(spec, whole, findings)
    _judge_resources(spec, findings)
    _judge_gpus(spec, findings)
    _judge_limited_gpus(spec, findings)
    judge_backend_options(spec, release, findings, whole=whole)
    judge_backend_settings(spec, findings)
    judge_deploy_settings(spec, findings, whole=whole)
    if whole:
        _judge_idle(spec, findings)
    return findings.found


def _judge_release(spec: Spec, release: Release, findings: Findings) -> None:
    for option, issue in lacking(spec.server, release):
        findings.error(
            "TG430",
            ("server", *option.key),
            f"{'.'.join(option.key)} needs {option.name}, and release {release.name} does not have it: {issue.text}",
            consequence="tritonserver refuses to start with an option that it does not know" if option.name != "--metrics-config" else "it has no effect",
            hint=issue.advice,
        )


def _judge_names(spec: Spec, whole: bool, findings: Findings) -> None:
    """Models to load at the start that are not there."""
    known = [model.name for model in spec.models]
    for index, name in enumerate(spec.server.load_models):
        if name != "*" and name not in known and whole:
            findings.error(
                "TG431",
                ("server", "load_models", index),
                f"there is no model '{name}' to load at the start",
                consequence="tritonserver refuses to start, or with exit_on_error: false is never ready",
                hint=f"the models are {', '.join(known)}",
            )


def _limited(spec: Spec) -> Iterator[tuple[str, Key, Taken]]:
    """(model, key of the spec, resource) of all that copies take."""
    for index, model in enumerate(spec.models):
        for group in placed_groups(model):
            yield from ((model.name, ("models", index, *taken.key), taken) for taken in group.resources)


def _judge_resources(spec: Spec, findings: Findings) -> None:
    """A resource of which one execution takes more than there is (core/src/rate_limiter.cc)."""
    for index, resource in enumerate(spec.server.rate_limit.resources if spec.server.rate_limit else ()):
        for model, key, taken in _limited(spec):
            if taken.name == resource.name and taken.count > resource.count:
                findings.error(
                    "TG432",
                    ("server", "rate_limit", "resources", index, "count"),
                    f"there is {resource.count} of '{resource.name}', and one execution of model '{model}' takes {taken.count} ({findings.locate(key)})",
                    consequence="Triton refuses to load the model: it could never run",
                    hint=f"write count: {taken.count} or more",
                )


def _judge_gpus(spec: Spec, findings: Findings) -> None:
    """GPUs of models that the container is not given: inside, devices are numbered from 0."""
    if spec.deploy.gpus == "all":
        return
    # CUDA shows a process one MIG device, however many there are.
    is_one = any(map(is_mig, spec.deploy.gpus))
    there = 1 if is_one else len(spec.deploy.gpus)
    given = "the server sees one MIG device" if is_one else f"the container gets {there}"
    named: list[tuple[str, Key, int]] = []
    for index, model in enumerate(spec.models):
        named += [(f"model '{model.name}'", ("models", index, *group.key), gpu) for group in placed_groups(model) for gpu in group.gpus]
    named += [("server.memory", ("server", "memory", "gpus", index), memory.gpu) for index, memory in enumerate(spec.server.memory.gpus)]
    for who, key, gpu in named:
        if gpu >= there:
            findings.error(
                "TG433",
                key,
                f"{who} names GPU {gpu}, and {given} (deploy.gpus, {findings.locate(('deploy', 'gpus'))}), numbered from 0",
                consequence="Triton refuses what names a GPU that is not there",
                hint=f"name a GPU from 0 to {there - 1}, or add one to deploy.gpus" if not is_one else "name GPU 0, or none",
            )


def _judge_limited_gpus(spec: Spec, findings: Findings) -> None:
    """Resources of GPUs that the container is not given."""
    there = None if spec.deploy.gpus == "all" else len(spec.deploy.gpus)
    for index, resource in enumerate(spec.server.rate_limit.resources if spec.server.rate_limit else ()):
        if there is not None and resource.gpu is not None and resource.gpu >= there:
            findings.idle(
                ("server", "rate_limit", "resources", index, "gpu"),
                f"GPU {resource.gpu} has no '{resource.name}': the container gets {there} (deploy.gpus), numbered from 0",
                hint=f"name a GPU from 0 to {there - 1}, or remove it",
            )


def _judge_idle(spec: Spec, findings: Findings) -> None:
    server = spec.server
    if server.cache is not None and not any(wants_cache(model) for model in spec.models):
        findings.idle(("server", "cache"), "server.cache has no effect: no model has response_cache: true", hint="remove it, or write response_cache: true")
    if server.metrics.summary_quantiles and not server.metrics.summary_latencies:
        hint = "write summary_latencies: true beside it, or remove it"
        findings.idle(("server", "metrics", "summary_quantiles"), "summary_quantiles has no effect: there are none without summary_latencies: true", hint=hint)
    if server.rate_limit is None:
        return
    limited = [group for model in spec.models for group in placed_groups(model) if group.is_limited]
    if not limited:
        message = "server.rate_limit has no effect: no model has instances with a rate_limiter"
        findings.idle(("server", "rate_limit"), message, hint="remove it, or add rate_limiter to instances")
        return
    taken = {taken.name for _, _, taken in _limited(spec)}
    for index, resource in enumerate(server.rate_limit.resources):
        if resource.name not in taken:
            key: Key = ("server", "rate_limit", "resources", index, "name")
            findings.idle(key, f"no model takes the resource '{resource.name}'", hint=f"remove it; models take {', '.join(sorted(taken)) or 'nothing'}")
