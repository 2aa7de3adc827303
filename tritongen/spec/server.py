"""How tritonserver is started: what its command line says, whatever the models are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import InitErrorDetails

from tritongen.spec.instances import GpuNumber, PolicyName, ResourceName
from tritongen.spec.observing import Log, Metrics
from tritongen.spec.options import BackendKey, BackendValue, CpuCores, Seconds
from tritongen.spec.protocols import Grpc, Http, Listen
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import Size
from tritongen.spec.values import Count32, Flag, ModelName, PositiveInt, Size32, problem, raise_all, twice

ModelControl = Literal["none", "poll", "explicit"]
"""`--model-control-mode` of tritonserver: load all at the start, follow changes on disk, or load on request."""

SMALLEST_CACHE_BYTES = 1 << 10
"""tritonserver refuses smaller response caches (tried on 24.10)."""


class Cache(Strict, json_schema_extra={"examples": [{"size": "256MiB"}]}):
    """The response cache of the server, in its memory. Models use it with `response_cache: true`."""

    size: Size = setting("Memory that it takes, all at the start.", default=..., sets="--cache-config=local,size=...", why="to hold as many answers as repeat")

    @field_validator("size")
    @classmethod
    def _is_large_enough(cls, size: int) -> int:
        if size < SMALLEST_CACHE_BYTES:
            consequence = "tritonserver refuses to start with a cache that has no room for itself"
            raise problem(f"a cache of {size} bytes is too small", consequence=consequence, hint="write 1MiB or more")
        return size


class LimitedResource(Strict, json_schema_extra={"examples": [{"name": "gpu_memory", "count": 8, "gpu": 0}]}):
    """How much there is of a resource that `instances.rate_limiter` takes from."""

    name: ResourceName = setting("Its name, as models write it.", default=..., sets="--rate-limit-resource", why="the server counts what runs by this name")
    count: Count32 = setting("How much of it there is.", default=..., sets="--rate-limit-resource", why="it bounds what runs at the same time")
    gpu: GpuNumber | None = setting(
        "Number of the GPU that has so much of it. Default: every device has, or all together where the resource is global.",
        sets="--rate-limit-resource",
        why="for GPUs of different sizes",
    )


class RateLimit(Strict, json_schema_extra={"examples": [{"resources": [{"name": "gpu_memory", "count": 8}]}]}):
    """Turns the rate limiter on: executions wait for what `instances.rate_limiter` says that they take, and have their turn by priority."""

    resources: tuple[LimitedResource, ...] = setting(
        "How much there is of what. Default: as much as the copy that takes most.",
        default=(),
        sets="--rate-limit-resource",
        why="to let more than one such copy run at the same time",
    )

    @field_validator("resources")
    @classmethod
    def _each_once(cls, resources: tuple[LimitedResource, ...]) -> tuple[LimitedResource, ...]:
        shown = [f"resource '{each.name}'{'' if each.gpu is None else f' of GPU {each.gpu}'}" for each in resources]
        raise_all(twice(shown, consequence="the rate limiter takes one of the counts"), resources)
        return resources


class GpuMemory(Strict, json_schema_extra={"examples": [{"gpu": 0, "pool": "256MiB", "load_limit": 0.9}]}):
    """The server's own use of one GPU's memory."""

    gpu: GpuNumber = setting("The GPU's number inside the container.", default=..., sets="--cuda-memory-pool-byte-size", why="each GPU has its own pool")
    pool: Size | None = setting(
        "Memory for inputs and outputs on the GPU, all taken at the start. Default: 64MiB.",
        sets="--cuda-memory-pool-byte-size",
        why="what does not fit goes through the host; as many bytes as the inputs and outputs of what runs at the same time",
    )
    load_limit: Annotated[float, Field(gt=0, le=1)] | None = setting(
        "Share of the GPU's memory above which no further model is loaded. Default: none.",
        sets="--model-load-gpu-limit",
        why="to keep room for what models take while they run",
    )


class Memory(Strict, json_schema_extra={"examples": [{"pinned": "512MiB", "gpus": [{"gpu": 0, "pool": "256MiB"}]}]}):
    """Memory that the server takes for inputs and outputs."""

    pinned: Size | None = setting(
        "Pinned memory of the host, through which data goes to GPUs and back. Default: 256MiB.",
        sets="--pinned-memory-pool-byte-size",
        why="where the log says that it is exhausted: data then goes a slower way",
    )
    gpus: tuple[GpuMemory, ...] = setting(
        "By GPU. Default: 64MiB on each.", default=(), sets="--cuda-memory-pool-byte-size", why="for large inputs and outputs"
    )

    @field_validator("gpus")
    @classmethod
    def _each_once(cls, gpus: tuple[GpuMemory, ...]) -> tuple[GpuMemory, ...]:
        raise_all(twice([f"GPU {each.gpu}" for each in gpus], consequence="the server takes one of the pools"), gpus)
        return gpus


class HostPolicy(Strict, json_schema_extra={"examples": [{"numa_node": 0, "cpu_cores": "0-15"}]}):
    """Where the threads of copies with this `instances.host_policy` run."""

    numa_node: Size32 | None = setting("Number of the NUMA node.", sets="--host-policy=<name>,numa-node=...", why="the one that the GPU is at")
    cpu_cores: CpuCores | None = setting("CPU cores, such as 0-15.", sets="--host-policy=<name>,cpu-cores=...", why="those of that node")

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if value == {}:
            raise problem("it states no node and no cores", code="TG009", hint="write {numa_node: 0}, or cpu_cores")
        return value


class Loading(Strict, json_schema_extra={"examples": [{"threads": 8, "retries": 1}]}):
    """How models are loaded."""

    threads: PositiveInt | None = setting("Models that load at the same time. Default: 4.", sets="--model-load-thread-count", why="for many small models")
    retries: Size32 | None = setting("How often a model that failed is tried again. Default: 0.", sets="--model-load-retry-count", why="for slow network disks")


class Server(
    Strict,
    json_schema_extra={
        "examples": [{"cache": {"size": "256MiB"}, "metrics": {"summary_latencies": True}, "log": {"format": "ISO8601"}, "exit_timeout": "60s"}]
    },
):
    """How tritonserver is started, by a deployment that is rendered from the spec and by `tritongen serve`. What is left out is as Triton has it."""

    model_control: ModelControl | None = setting(
        "none: load all models at the start. poll: follow changes of the repository. explicit: load on request, and `load_models` at the start. Default: none.",
        sets="--model-control-mode",
        why="explicit to update a model without a restart; poll reads half-copied files, and is not for production",
    )
    poll_interval: Seconds | None = setting(
        "Time between two looks at the repository. Default: 15s.", sets="--repository-poll-secs", why="to see changes sooner"
    )
    load_models: tuple[ModelName | Literal["*"], ...] = setting(
        "Models to load at the start, or ['*'] for all, with model_control: explicit. Default: none.",
        default=(),
        sets="--load-model",
        why="a server that is ready with no model answers nobody",
    )
    cache: Cache | None = setting(
        "The response cache. Default: 64MiB where a model has response_cache, else none.", sets="--cache-config", why="to hold more answers"
    )
    rate_limit: RateLimit | None = setting(
        "The rate limiter, which looks at instances.rate_limiter. Default: off.",
        sets="--rate-limit",
        why="to keep models that share a GPU out of each other's way",
    )
    metrics: Metrics = setting("What Prometheus is shown.", default_factory=Metrics, sets="--metrics-config and the options beside it", why="to see p99")
    listen: Listen = setting("Where clients reach it.", default_factory=Listen, sets="addresses and ports", why="to let other machines in, or to move ports")
    log: Log = setting("What it writes.", default_factory=Log, sets="--log-verbose and the options beside it", why="to find a mistake, or for log readers")
    http: Http = setting("Requests over HTTP.", default_factory=Http, sets="--http-thread-count and the options beside it", why="for large requests")
    grpc: Grpc = setting("Requests over gRPC.", default_factory=Grpc, sets="the options that begin with --grpc", why="for proxies, and for many requests")
    memory: Memory = setting(
        "Its pools of memory.", default_factory=Memory, sets="--pinned-memory-pool-byte-size and others", why="for large inputs and outputs"
    )
    host_policies: Mapping[PolicyName, HostPolicy] = setting(
        "NUMA nodes and CPU cores by name, which instances.host_policy has.", default_factory=dict, sets="--host-policy", why="on hosts with several sockets"
    )
    backend_config: Mapping[BackendKey, Mapping[BackendKey, BackendValue]] = setting(
        "Settings of whole backends by the backend's name, such as tensorrt: {coalesce-request-input: true}. Those of onnxruntime, tensorrt and python are"
        " compared with what these backends read; sizes are bytes and times are seconds there, as plain numbers.",
        default_factory=dict,
        sets="--backend-config",
        why="what a model cannot say",
    )
    loading: Loading = setting("How models are loaded.", default_factory=Loading, sets="--model-load-thread-count and others", why="for many models")
    exit_on_error: Flag | None = setting(
        "Whether the server ends where a model does not load. Default: true.", sets="--exit-on-error", why="false to serve the others; it is not ready then"
    )
    strict_readiness: Flag | None = setting(
        "Whether the server is ready only when every model is. Default: true.", sets="--strict-readiness", why="false to be ready with some"
    )
    exit_timeout: Seconds | None = setting(
        "Time that requests have to finish when the server ends. Default: 30s.", sets="--exit-timeout-secs", why="as long as the longest request takes"
    )
    client_shared_memory: Flag | None = setting(
        "Whether clients may pass data in shared memory. Default: true up to release 26.03, false from 26.04 on.",
        sets="--allow-client-shm",
        why="for clients on the same machine that you trust",
    )

    @field_validator("poll_interval", "load_models")
    @classmethod
    def _of_its_mode(cls, value: Any, info: ValidationInfo) -> Any:
        mode = "poll" if info.field_name == "poll_interval" else "explicit"
        found = info.data.get("model_control", mode) or "none"
        if value and found != mode:
            raise problem(
                f"{info.field_name} is for model_control: {mode}, and it is {found}",
                code="TG015",
                consequence="tritonserver refuses to start" if mode == "explicit" else "tritonserver looks at the repository only once",
                hint=f"write model_control: {mode}, or remove {info.field_name}",
                beside=("model_control",),
            )
        return value

    @field_validator("listen")
    @classmethod
    def _ports_differ(cls, listen: Listen, info: ValidationInfo) -> Listen:
        """A port that two protocols would share; the one of metrics is free where there are none."""
        metrics = info.data.get("metrics")
        served = [name for name in ("http", "grpc", "metrics") if name != "metrics" or (metrics is not None and metrics.enabled is not False)]
        owners: dict[int, str] = {}
        problems: list[InitErrorDetails] = []
        # Those that were written come last: one of them is to be changed, and not a default.
        for name in sorted(served, key=lambda name: name in listen.model_fields_set):
            port = getattr(listen, name)
            twin = owners.setdefault(port, name)
            if twin != name:
                message = f"{name} has port {port}, which {twin} has{'' if twin in listen.model_fields_set else ' by default'}"
                consequence, hint = "tritonserver refuses to start with two protocols on one port", "give each protocol a port of its own"
                fault = problem(message, code="TG015", consequence=consequence, hint=hint, beside=(twin,))
                problems.append(InitErrorDetails(type=fault, loc=(name,), input=port))
        if problems:
            raise ValidationError.from_exception_data("listen", problems)
        return listen

    @field_validator("load_models")
    @classmethod
    def _all_or_some(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if "*" in names and len(names) > 1:
            raise problem("'*' stands for all models, and others are named beside it", consequence="tritonserver refuses to start", hint="write ['*'] alone")
        return names
