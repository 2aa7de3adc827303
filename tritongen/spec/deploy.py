"""How the server's container is run: what `tritongen render --deploy compose` writes into docker-compose.yml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator

from tritongen.spec.options import Address, Port, WholeSeconds
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import SomeSize, about_size
from tritongen.spec.values import PathText, describe, problem, raise_all

Ulimit = Annotated[int, Field(strict=True, ge=-1, le=2**63 - 1)]
"""A limit of the kernel's; -1 is none."""

_DEVICE = r"(?:GPU|MIG)-[0-9A-Za-z/-]{1,80}"
_USER = r"[0-9]{1,10}(?::[0-9]{1,10})?"
_MOST_USER = 2**31 - 1
"""The engine refuses larger numbers of users and groups."""
_NAME = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = (
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?(?::[0-9]{1,5})?/)?"
    rf"{_NAME}(?:/{_NAME})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{{32,128}})?"
)
"""A reference as registries read it (github.com/distribution/reference): a host, a path in small letters, a tag, a digest."""
_LEAST_MEMORY = 6 << 20
"""Docker refuses a container with less."""
_LEAST_SHM = 1 << 20
"""One copy of a Python model takes as much."""


def _check_gpus(value: object) -> object:
    """`all`, or devices by number or by the id that `nvidia-smi -L` prints."""
    if value == "all":
        return value
    if not isinstance(value, list | tuple) or not value:
        raise problem(f"expected all or a list of GPUs, got {describe(value) if value != [] else 'an empty list'}", code="TG010", hint="write gpus: [0, 1]")
    problems = []
    for item in value:
        is_number = isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1024
        if not is_number and not (isinstance(item, str) and re.fullmatch(_DEVICE, item)):
            message = f"a GPU is a number, or an id such as GPU-... or MIG-..., and this is {describe(item)}"
            problems.append(problem(message, hint="nvidia-smi -L prints both"))
    raise_all(problems, value)
    forms = {"a number" if isinstance(item, int) else "an id" for item in value}
    if len(forms) > 1:
        message = "some GPUs are named by number and others by id, so that nobody can tell whether one is named twice"
        raise problem(message, hint="name all by number, or all by id")
    texts = [str(item) for item in value]
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise problem(f"GPU {twice} is listed twice", hint=f"write gpus: {list(dict.fromkeys(value))}")
    return tuple(texts)


Gpus = Annotated[
    Literal["all"] | tuple[str, ...],
    BeforeValidator(_check_gpus),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["all"]},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 1023}, {"type": "string", "pattern": f"^{_DEVICE}$"}]},
                },
            ]
        }
    ),
]


def _matching(pattern: str, what: str, example: str) -> AfterValidator:
    """A check for a text of a form; `what` says which."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise problem(f"{value[:60]!r} is not {what}", hint=f"write one such as {example}")
        return value

    return AfterValidator(check)


def _from_number(value: object) -> object:
    """A plain number as the text that it stands for."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else value


def _check_user(value: str) -> str:
    for number in value.split(":"):
        if int(number) > _MOST_USER:
            consequence = f"the container engine knows numbers up to {_MOST_USER}"
            raise problem(f"{number} is no user or group", consequence=consequence, hint="`id -u` prints yours")
    return value


def _at_least(least: int, what: str) -> AfterValidator:
    """A check for a size in bytes; `what` says what happens to smaller ones."""

    def check(value: int) -> int:
        if value < least:
            raise problem(f"{about_size(value)} is too little", consequence=what, hint=f"write {least >> 20}MiB or more")
        return value

    return AfterValidator(check)


User = Annotated[
    str,
    BeforeValidator(_from_number),
    _matching(_USER, "a user's number with or without a group's", '"1000:1000"'),
    AfterValidator(_check_user),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": f"^{_USER}$"}, {"type": "integer", "minimum": 0, "maximum": _MOST_USER}], "examples": ["1000:1000"]}
    ),
]
Image = Annotated[
    str,
    _matching(_IMAGE, "the name of an image", "nvcr.io/nvidia/tritonserver:25.08-py3"),
    WithJsonSchema({"type": "string", "pattern": f"^{_IMAGE}$", "examples": ["nvcr.io/nvidia/tritonserver:25.08-py3"]}),
]


LONGEST_PROJECT = 63
"""Letters of a compose project's name, which begins the names of its containers and volumes."""
_PROJECT = rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST_PROJECT - 1}}}"
ProjectName = Annotated[
    str,
    _matching(_PROJECT, "the name of a compose project, which has small letters, digits, _ and -, the first a letter or digit", "text-recognizer"),
    WithJsonSchema({"type": "string", "pattern": f"^{_PROJECT}$", "examples": ["text-recognizer"]}),
]
"""What the compose specification allows."""


_MOST_FILES = 1 << 20


def _check_files(value: int) -> int:
    if not 1 <= value <= _MOST_FILES:
        consequence = f"the kernel knows no such limit (fs.nr_open, {_MOST_FILES} by default), and the container does not start"
        raise problem(f"{value} is no number of open files", consequence=consequence, hint="write one such as 65536")
    return value


Files = Annotated[int, Field(strict=True), AfterValidator(_check_files), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": _MOST_FILES})]


class Ulimits(Strict, json_schema_extra={"examples": [{"memlock": -1, "nofile": 65536}]}):
    """Limits of the kernel for the server's process; -1 is none, of memory and stack."""

    memlock: Ulimit = setting("Bytes of memory that cannot be swapped out.", default=-1, sets="ulimits.memlock", why="pinned memory counts as such")
    stack: Ulimit = setting("Bytes of a thread's stack.", default=67108864, sets="ulimits.stack", why="NVIDIA's images are run with 64 MiB")
    nofile: Files | None = setting("Open files and connections. Default: the container engine's.", sets="ulimits.nofile", why="for thousands of clients")


class Monitoring(Strict, json_schema_extra={"examples": [{"grafana_port": 3001, "admin_password": "secrets/grafana.txt"}]}):
    """Prometheus and Grafana, which `docker compose --profile monitoring up` starts too."""

    address: Address = setting(
        "Number of the network interface that both are reached at.", default="127.0.0.1", sets="published ports", why="to let others see"
    )
    prometheus_port: Port = setting("Port of Prometheus.", default=9090, sets="the published port", why="where 9090 is taken")
    grafana_port: Port = setting("Port of Grafana.", default=3000, sets="the published port", why="where 3000 is taken")
    retention: WholeSeconds | None = setting(
        "How long Prometheus remembers. Default: 360h, which are 15 days.", sets="--storage.tsdb.retention.time", why="for longer comparisons"
    )
    admin_password: PathText | None = setting(
        "File with the password of Grafana's user admin, relative to the spec's folder. Default: there is no such user; whoever reaches Grafana may look, and"
        " change nothing.",
        sets="a secret of the deployment",
        why="to change dashboards in the browser; the password itself stands in no file that is rendered",
    )
    prometheus_image: Image = setting("Prometheus's image.", default="prom/prometheus:v3.5.0", sets="image", why="for a mirror, or a newer one")
    grafana_image: Image = setting("Grafana's image.", default="grafana/grafana:12.1.1", sets="image", why="for a mirror, or a newer one")


class LoadGenerators(Strict, json_schema_extra={"examples": [{"port": 8090}]}):
    """Locust, which `docker compose --profile load up --scale locust-worker=4` starts too."""

    address: Address = setting(
        "Number of the network interface that its page is reached at.", default="127.0.0.1", sets="the published port", why="to let others in"
    )
    port: Port = setting("Port of its page.", default=8089, sets="the published port", why="where 8089 is taken")
    scenario: str | None = setting(
        "The scenario of `load.scenarios` that loadtests/scenario.py follows. Default: the first one; every model in equal parts where there is none.",
        sets="loadtests/scenario.py",
        why="to send what the service will get",
    )
    image: Image | None = setting(
        "An image with Locust and tritongen[load]. Default: one that is built from loadtests/Dockerfile.", sets="image", why="where nothing can be built"
    )


class Deploy(Strict, json_schema_extra={"examples": [{"gpus": [0, 1], "shm_size": "2GiB", "start_period": "30m", "restart": "unless-stopped"}]}):
    """How containers are run: for `tritongen render --deploy compose`."""

    folder: PathText = setting(
        "Folder to write docker-compose.yml to, relative to the spec's folder.",
        default=".",
        sets="where the deployment is written",
        why="to keep specs elsewhere",
    )
    name: ProjectName | None = setting(
        "Name of the compose project, which begins the names of its containers and volumes. Default: the name of the spec's file, or of the first model where"
        " that is just spec.yaml; with a hash of it where it has letters that such a name may not have, or is too long.",
        sets="name",
        why="two deployments of one name are one project to the container engine: each would replace the other's containers",
    )
    image: Image | None = setting(
        "The server's image. Default: nvcr.io/nvidia/tritonserver:<release>-py3.", sets="image", why="for a mirror, or an image with libraries of your own"
    )
    gpus: Gpus = setting(
        "all, or GPUs and MIG devices, all by number or all by id (`nvidia-smi -L`)."
        " Inside the container they are numbered from 0, as nvidia-smi lists them there: by their place on the bus, not by"
        " their place in this list.",
        default="all",
        sets="deploy.resources.reservations.devices",
        why="to leave the other GPUs to others; a MIG device is named by its id",
    )
    user: User = setting(
        "User and group that the server and the builder of plans run as: numbers of this machine, where the repository's files are theirs."
        ' "0:0" is root, who needs no owner.',
        default="1000:1000",
        sets="user",
        why="1000 is the image's own user triton-server, and the first user of most machines; `id -u` prints yours",
    )
    memory: Annotated[SomeSize, _at_least(_LEAST_MEMORY, "the container engine refuses to start a container with less")] | None = setting(
        "The most memory that the server may take. Default: no limit.", sets="deploy.resources.limits.memory", why="on shared hosts"
    )
    shm_size: Annotated[SomeSize, _at_least(_LEAST_SHM, "a model of the Python backend ends in a bus error")] | None = setting(
        "Shared memory: for models of the Python backend (1 MiB and more for each copy), and clients in the same container. Default: 1GiB.",
        sets="shm_size",
        why="the engine's 64 MiB end in a bus error",
    )
    ulimits: Ulimits = setting("Limits of the kernel.", default_factory=Ulimits, sets="ulimits", why="where the host says otherwise")
    start_period: WholeSeconds | None = setting(
        "Time in which a server that is not ready yet is not called unhealthy. Default: 2m, and 15m more for each model that builds TensorRT engines at the"
        " start.",
        sets="healthcheck.start_period",
        why="for large models; a healthy server is noticed at once all the same",
    )
    restart: Literal["no", "always", "on-failure", "unless-stopped"] = setting(
        "What happens when the server ends.", default="unless-stopped", sets="restart", why="no to look at why it ended"
    )
    environment: Mapping[str, str] = setting(
        "Variables for the server and the builder of plans, as texts.",
        default_factory=dict,
        sets="environment",
        why="for libraries; nothing secret, which belongs into a file",
    )
    monitoring: Monitoring = setting("Prometheus and Grafana.", default_factory=Monitoring, sets="services of the profile monitoring", why="to move ports")
    load: LoadGenerators = setting("Locust.", default_factory=LoadGenerators, sets="services of the profile load", why="to move its port")

    @field_validator("environment")
    @classmethod
    def _names(cls, variables: Mapping[str, str]) -> Mapping[str, str]:
        problems = []
        for name, value in variables.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                problems.append(problem(f"{name[:60]!r} is not the name of a variable", hint="write letters, digits and _, a digit not first"))
            if "\0" in value:
                problems.append(problem(f"the value of {name[:60]!r} holds a zero byte", hint="write it without"))
        raise_all(problems, variables)
        return variables
