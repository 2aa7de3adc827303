"""A spec → the files with which `docker compose up tritonserver` serves it: pure text, by path below the folder of the deployment."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tritongen.diagnostics import Severity
from tritongen.recipe import SCRIPT
from tritongen.render.containers import PASSWORD_CHECK, grafana_user, is_root, project_name
from tritongen.render.cpu import for_cpu
from tritongen.render.findings import Findings
from tritongen.render.images import server_image
from tritongen.render.monitoring import judge_promises, monitoring_files
from tritongen.render.published import judge_ports
from tritongen.render.scenario import judge_locust, locust_run, locustfile
from tritongen.render.serving import (
    MOUNT,
    artifacts_mount,
    awaited_models,
    builds_plans,
    command,
    exported,
    has_metrics,
    healthcheck,
    keeps_engines,
    needs_gpus,
    published_ports,
    start_us,
)
from tritongen.spec import LoadedSpec, Spec
from tritongen.spec.units import duration_text
from tritongen.templating import LOCUSTFILES, comment, environment, shipped_locustfile

LEAD = PurePosixPath("docker-compose.yml")
"""The file whose stamp knows the others."""
CPU_FILE = PurePosixPath("docker-compose.cpu.yml")
MONITORING = PurePosixPath("deploy/monitoring")
LOADTESTS = PurePosixPath("loadtests")
SCENARIO = LOADTESTS / "scenario.py"
DOCKERFILE = LOADTESTS / "Dockerfile"

_NUMBERED = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Without it CUDA gives the fastest GPU the number 0, whatever nvidia-smi says."""

_SHM_BYTES = 1 << 30
_RETENTION_US = 360 * 3_600_000_000
_EXIT_TIMEOUT_US = 30_000_000
_GRACE_US = 10_000_000


@dataclass(frozen=True)
class Places:
    """Paths of this machine as compose files state them: absolute, or relative to the deployment's folder and then beginning with `./` or `../`.

    Attributes:
        spec: the spec file, for people to read.
        repository: the repository that `render` writes.
        artifacts: what belongs to it and Triton must not see.
        cpu_repository: the one that `render --cpu` writes.
        password_file: the file with Grafana's password; None for none.
    """

    spec: str
    repository: str
    artifacts: str
    cpu_repository: str
    password_file: str | None = None


@dataclass(frozen=True)
class DeploymentText:
    """The text of the leading file, header apart, and of all others."""

    header: str
    body: str
    others: Mapping[PurePosixPath, str]


def deployment(loaded: LoadedSpec, places: Places, *, tritongen_version: str) -> DeploymentText:
    """All files of a deployment. The same spec and version give the same bytes on any machine."""
    spec = loaded.spec
    cpu_spec, in_the_way = for_cpu(spec, loaded.locate)
    has_cpu = not in_the_way
    header = _header(LEAD, places, tritongen_version, has_cpu=has_cpu)
    others = {
        DOCKERFILE: environment().get_template("locust.dockerfile.j2").render(requirement=_load_requirement(tritongen_version)),
        SCENARIO: locustfile(spec, spec_name=places.spec, loaded_models=awaited_models(spec)),
        **{LOADTESTS / name: shipped_locustfile(name) for name in LOCUSTFILES},
    }
    if has_metrics(spec):
        files = monitoring_files(spec, exported(spec), ready=awaited_models(spec), start_us=start_us(spec))
        others |= {MONITORING / path: text for path, text in files.items()}
    if has_cpu:
        cpu_header = _header(CPU_FILE, places, tritongen_version, has_cpu=has_cpu)
        others[CPU_FILE] = cpu_header + _compose(cpu_spec, places, tritongen_version, cpu=True, has_cpu=has_cpu)
    return DeploymentText(header, _compose(spec, places, tritongen_version, cpu=False, has_cpu=has_cpu), others)


def judge_deployment(loaded: LoadedSpec, places: Places) -> Findings:
    """What is wrong with a spec as a deployment (TG435): paths that a compose file cannot state, or that containers have for something else.

    What is promised and not watched is said, too (TG437).
    """
    findings = Findings("", loaded.locate, lambda key: False)
    cache = PurePosixPath(loaded.spec.triton.engine_cache)
    taken = next(
        (path for path in (MOUNT, artifacts_mount(), PurePosixPath("/opt/tritonserver")) if cache.is_relative_to(path) or path.is_relative_to(cache)), None
    )
    if taken is not None and keeps_engines(loaded.spec):
        findings.error(
            "TG435",
            ("triton", "engine_cache"),
            f"engines cannot be kept in {cache}: the container has {taken} for something else",
            consequence="a volume there would hide it",
            hint="write engine_cache: /engine-cache",
        )
    judge_ports(loaded.spec, published_ports(loaded.spec), findings, monitored=has_metrics(loaded.spec))
    for key, path in (("repository", places.repository), ("deploy", places.password_file or "")):
        if not is_unicode(path):
            findings.error(
                "TG435",
                (key,),
                f"the path {path!r} is no Unicode text, which a compose file is made of",
                consequence="the container engine would look for another path",
                hint="rename the folder",
            )
    judge_locust(loaded.spec, awaited_models(loaded.spec), findings)
    _say_no_cpu_form(loaded, findings)
    if has_metrics(loaded.spec):
        judge_promises(loaded.spec.models, exported(loaded.spec), findings)
    return findings


def _say_no_cpu_form(loaded: LoadedSpec, findings: Findings) -> None:
    """What stands against docker-compose.cpu.yml, as advice: nobody may want it."""
    for reason in for_cpu(loaded.spec, loaded.locate)[1]:
        what = dataclasses.replace(reason, message=f"no {CPU_FILE} is written: {reason.message}", severity=Severity.ADVICE, consequence="")
        findings.found.append(what)


def is_unicode(text: str) -> bool:
    """Whether a path is text: names of files may hold bytes that are none."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _header(path: PurePosixPath, places: Places, tritongen_version: str, *, has_cpu: bool) -> str:
    template = environment().get_template("docker-compose.header.j2")
    return template.render(spec=places.spec, tritongen_version=tritongen_version, cpu=path == CPU_FILE, has_cpu=has_cpu)


def _compose(spec: Spec, places: Places, tritongen_version: str, *, cpu: bool, has_cpu: bool) -> str:
    context = {
        **_server_context(spec, places, cpu=cpu),
        "gpu_check": _gpu_check(places.spec, has_cpu=has_cpu),
        "load": spec.deploy.load,
        "load_image": spec.deploy.load.image or f"tritongen-load:{tritongen_version}",
        "load_requirement": _load_requirement(tritongen_version),
        "locust": locust_run(spec),
        "metrics": has_metrics(spec),
        "monitoring": spec.deploy.monitoring,
        "password_check": PASSWORD_CHECK,
        "password_file": places.password_file,
        "project": project_name(spec, places.spec),
        "retention": duration_text(spec.deploy.monitoring.retention or _RETENTION_US),
    }
    return environment().get_template("docker-compose.yml.j2").render(context)


def _load_requirement(tritongen_version: str) -> str:
    """What pip installs into Locust's image."""
    return f"tritongen[load]=={tritongen_version}"


def _gpu_check(spec: str, *, has_cpu: bool) -> str:
    """A shell script that says what to do where there is no NVIDIA driver, and ends with exit code 3 then. WSL has no /proc/driver/nvidia.

    `has_cpu`: whether the models can be served without a GPU.
    """
    said = (
        "This machine has no NVIDIA GPU, or no driver for it: there is no /proc/driver/nvidia/version.",
        f"Serve the models on the CPU: tritongen render --cpu {comment(shlex.quote(spec))}, then docker compose -f {CPU_FILE} up tritonserver"
        if has_cpu
        else "These models cannot be served without one: their spec says in config that they are for GPUs.",
    )
    # Not echo, which some shells have read backslashes.
    words = " ".join(map(shlex.quote, said))
    return f"test -e /proc/driver/nvidia/version || grep -qi microsoft /proc/version || {{ printf '%s\\n' {words} >&2; exit 3; }}"


def _server_context(spec: Spec, places: Places, *, cpu: bool) -> Mapping[str, Any]:
    deploy, listen = spec.deploy, spec.server.listen
    gpus = deploy.gpus if not cpu and needs_gpus(spec) else None
    engines = keeps_engines(spec)
    plans = builds_plans(spec)
    keeps_for_user = engines and not is_root(deploy.user)
    awaited = [name for name, there in (("nvidia-gpu", gpus is not None), ("engine-cache", keeps_for_user), ("plan-builder", plans)) if there]
    return {
        "address": listen.address,
        "artifacts": places.artifacts,
        "artifacts_mount": artifacts_mount(),
        "awaited": awaited,
        "build_script": artifacts_mount() / SCRIPT,
        "builds_plans": plans,
        "command": command(spec),
        # The engine refuses to give more cores than there are, and those of a laptop are other ones.
        "cpus": None if cpu else spec.triton.cpus,
        "engine_cache": spec.triton.engine_cache if engines else None,
        "environment_variables": {**({} if gpus is None else _NUMBERED), **deploy.environment},
        "gpus": gpus,
        "grafana_user": grafana_user(spec),
        "healthcheck": list(healthcheck(spec)),
        "image": server_image(spec),
        "is_root": is_root(deploy.user),
        "memory": deploy.memory,
        "mount": MOUNT,
        "ports": [(port, getattr(listen, name)) for name, port in published_ports(spec).items()],
        "repository": places.cpu_repository if cpu else places.repository,
        "restart": deploy.restart,
        "shm_size": deploy.shm_size or _SHM_BYTES,
        "start_period": duration_text(start_us(spec)),
        "stop_grace_period": duration_text((spec.server.exit_timeout or _EXIT_TIMEOUT_US) + _GRACE_US),
        "ulimits": deploy.ulimits,
        "user": deploy.user,
    }
