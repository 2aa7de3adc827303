"""The embedded server: a real Triton on this machine, from a folder of models to answered requests.

with start(Path("model_repository"), ServerOptions(http_port=0)) as server:
    print(server.http_url, server.models)
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import EnvironmentProblem, RepositoryError, ServerStartError
from tritongen.server import environment as environments
from tritongen.server import http_probe, log, ports, runtime, served_copy
from tritongen.server.environment import Environment
from tritongen.server.interpreter import clean_environment
from tritongen.server.options import ServerOptions
from tritongen.server.ports import Ports
from tritongen.server.process import STOP_GRACE_S, ServerProcess
from tritongen.server.runtime import Runtime
from tritongen.server.served_copy import Served

_PORT_RETRIES = 5
_POLL_INTERVAL_S = 0.02
_LOG_INTERVAL_S = 0.5
_FAILED_GRACE_S = 2.0
_OK = 200
_STUB_TIMEOUT_S = 30  # the Python backend's own default
_SIGNAL_BASE = 128


class EmbeddedServer:
    """A running Triton, made by `start`. Use it as a context manager, or call `stop`.

    Attributes:
        warnings: plain sentences about what is served differently from what the repository asks for.
        ready_s: seconds from the call of `start` until all models were loaded and all ports answered.
    """

    def __init__(self, attempt: _Attempt, process: ServerProcess, ready_s: float) -> None:
        self._attempt = attempt
        self._process = process
        self._host = http_probe.reachable(attempt.options.host)
        self._ports = attempt.ports
        self._last_log: str | None = None
        self._last_models: dict[str, str] = {}
        remarks = (f"model {model}: {text}" for model, text in log.read(attempt.log()).remarks)
        self.warnings = (*attempt.served.warnings, *remarks)
        self.ready_s = ready_s

    @property
    def http_url(self) -> str:
        """Where HTTP requests go, such as `http://127.0.0.1:8000`."""
        return f"http://{_bracketed(self._host)}:{self._ports.http}"

    @property
    def grpc_url(self) -> str:
        """Where gRPC requests go, such as `grpc://127.0.0.1:8001`."""
        return f"grpc://{_bracketed(self._host)}:{self._ports.grpc}"

    @property
    def metrics_url(self) -> str:
        """Where Prometheus metrics are served, such as `http://127.0.0.1:8002/metrics`."""
        return f"http://{_bracketed(self._host)}:{self._ports.metrics}/metrics"

    @property
    def pid(self) -> int:
        """Process id of tritonserver."""
        return self._process.pid

    @property
    def models(self) -> dict[str, str]:
        """Each model's state now, as Triton's repository index has it; after the end, the states seen last."""
        if self._process.poll() is None:
            known = log.read(self.log()).states
            index = {name: state for name, (state, _) in http_probe.index(self._host, self._ports.http).items()}
            self._last_models = {name: state for name, state in known.items() if state == "UNAVAILABLE"} | index
        return dict(sorted(self._last_models.items()))

    @property
    def reasons(self) -> dict[str, str]:
        """By model, why it did not load; only the log has it.

        Not empty only where the server was started with `exit_on_error=False`, or models were loaded later.
        """
        states = self.models
        return {name: reason for name, reason in log.read(self.log()).reasons.items() if states.get(name) != "READY"}

    def log(self) -> str:
        """All that tritonserver and its stubs have written so far; still there after the end."""
        return self._last_log if self._last_log is not None else self._attempt.log()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until the server ends by itself or is stopped elsewhere; its exit status, or None where `timeout_s` went by first."""
        return self._process.wait(timeout_s)

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Stop the server, its stubs and their shared memory, and remove its private folder. Stopping twice is fine.

        Requests in flight get `grace_s` seconds to finish.
        """
        if self._last_log is not None:
            return
        if not self._last_models:
            self._last_models = self.models
        self._process.stop(grace_s)
        self._last_log = self._attempt.log()
        self._attempt.runtime.remove()

    def __enter__(self) -> EmbeddedServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def start(repository: Path | Sequence[Path], options: ServerOptions | None = None, *, environment: Environment | None = None) -> EmbeddedServer:
    """Start a Triton on one or more model repositories and wait until it is ready.

    Args:
        repository: one folder of models, or several.
        options: ports, modes and timeouts.
        environment: the Python to run Triton's stubs with; by default the current one, or the private one where the current lacks something.

    Raises:
        RepositoryError: a repository is not a folder, or this machine cannot serve one of its models and `strict` (or a missing source ONNX) forbids a
        substitute. MissingExtra, EnvironmentProblem: this machine lacks something; `tritongen doctor` says what. ServerStartError: Triton ended, or was not
        ready in time; `reasons` has Triton's own reason for each model.
    """
    begin = time.perf_counter()
    options = options or ServerOptions()
    repositories = [repository] if isinstance(repository, Path) else list(repository)
    _check_repositories(repositories)
    environment = environment or environments.choose()
    machine = served_copy.this_machine()
    tried: frozenset[int] = frozenset()
    for _ in range(_PORT_RETRIES):
        chosen = ports.choose(options, avoid=tried)
        private = runtime.create(environment)
        try:
            served = served_copy.prepare(repositories, private.repository, machine, options)
            return _started(_Attempt(options, environment, chosen, private, served), begin)
        except _PortTakenError as taken:
            tried |= taken.ports
            private.remove()
        except BaseException:
            private.remove()
            raise
    raise EnvironmentProblem(f"other programs took {len(tried)} ports between their choice and Triton's start", hint="give free ports by number")


@dataclass(frozen=True)
class _Attempt:
    """One try at starting a server: everything that is decided before the process runs."""

    options: ServerOptions
    environment: Environment
    ports: Ports
    runtime: Runtime
    served: Served

    def log(self) -> str:
        """The log so far, with the paths of copies written as those of the repositories they were made from."""
        try:
            text = self.runtime.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        for copy, original in self.served.originals.items():
            text = text.replace(str(copy), str(original))
        return text

    def arguments(self) -> list[str]:
        """The command line of tritonserver."""
        options = self.options
        arguments = [
            str(self.environment.server),
            *(f"--model-repository={path.absolute()}" for path in self.served.repositories),
            f"--backend-directory={self.runtime.backends}",
            f"--cache-directory={self.environment.triton / 'caches'}",
            f"--backend-config=python,shm-region-prefix-name={self.runtime.shm_prefix}",
            f"--backend-config=python,stub-timeout-seconds={max(_STUB_TIMEOUT_S, math.ceil(options.start_timeout_s))}",
            *(f"--{name}-address={options.host}" for name in ("http", "grpc", "metrics")),
            f"--http-port={self.ports.http}",
            f"--grpc-port={self.ports.grpc}",
            f"--metrics-port={self.ports.metrics}",
            f"--model-control-mode={options.model_control}",
            f"--exit-on-error={str(options.exit_on_error).lower()}",
            *(f"--load-model={name}" for name in options.load_models),
            *options.extra_args,
        ]
        if options.disable_auto_complete:
            arguments.append("--disable-auto-complete-config")
        if options.model_control == "poll":
            arguments.append(f"--repository-poll-secs={options.poll_interval_s}")
        return arguments


class _PortTakenError(Exception):
    """A port that was free when chosen is not any more; `ports` are those that another attempt must avoid."""

    def __init__(self, ports: frozenset[int]) -> None:
        super().__init__(ports)
        self.ports = ports


def _check_repositories(repositories: list[Path]) -> None:
    """Refuse what is not a folder, all at once."""
    problems = [
        Diagnostic(
            "TG902",
            "the model repository is not a folder" if path.exists() else "the model repository does not exist",
            Location(str(path)),
            consequence="tritonserver would end at once",
            hint="give the folder that holds one sub-folder for each model; `tritongen render` makes one from a spec",
        )
        for path in repositories
        if not path.is_dir()
    ]
    if not repositories:
        problems.append(Diagnostic("TG902", "no model repository is given", hint="give at least one folder"))
    if problems:
        raise RepositoryError(problems)


def _started(attempt: _Attempt, begin: float) -> EmbeddedServer:
    """Run the attempt; a server that is ready."""
    process = ServerProcess(attempt.arguments(), runtime.variables(attempt.runtime, attempt.environment, clean_environment()), attempt.runtime)
    try:
        _wait_until_ready(process, attempt, begin + attempt.options.start_timeout_s)
        server = EmbeddedServer(attempt, process, time.perf_counter() - begin)
        if attempt.options.strict and server.warnings:
            raise ServerStartError(f"not everything can be served as asked: {'; '.join(server.warnings)}", hint="leave out --strict to serve it all the same")
    except BaseException:
        process.stop(grace_s=_FAILED_GRACE_S)
        raise
    return server


def _wait_until_ready(process: ServerProcess, attempt: _Attempt, deadline: float) -> None:
    """Wait for HTTP (which Triton opens when loading is over) and for the metrics port, which it opens last.

    Raises ServerStartError where the server ends or the time is up, `_PortTakenError` where it ended because of a port that was chosen freely.
    """
    host = http_probe.reachable(attempt.options.host)
    next_look = time.perf_counter() + _LOG_INTERVAL_S
    while (status := process.poll()) is None:
        if ports.listens(process.pid, attempt.ports.http):
            answer = http_probe.status(host, attempt.ports.http, "/v2/health/ready")
            over = answer == _OK or (answer is not None and not attempt.options.exit_on_error)
            if over and ports.listens(process.pid, attempt.ports.metrics):
                return
        now = time.perf_counter()
        if now > deadline:
            raise _timeout(attempt)
        if now > next_look:
            next_look = now + _LOG_INTERVAL_S
            if log.read(attempt.log()).taken_ports:  # tritonserver ends by itself, but only after it has unloaded all models at its leisure
                process.stop(grace_s=0.0)
        time.sleep(_POLL_INTERVAL_S)
    raise _failure(status, attempt)


def _failure(status: int, attempt: _Attempt) -> ServerStartError | _PortTakenError:
    """Why tritonserver ended, as far as its log says."""
    text = attempt.log()
    found = log.read(text)
    freely = frozenset(getattr(attempt.ports, name) for name in attempt.ports.chosen_freely)
    if found.taken_ports & freely:
        return _PortTakenError(found.taken_ports)
    if found.taken_ports:
        listed = ", ".join(str(port) for port in sorted(found.taken_ports))
        message = f"another program took port {listed} on {attempt.options.host} while the models were loaded"
        return ServerStartError(message, log_tail=log.tail(text), hint="give port 0 for any free one")
    if found.reasons:
        listed = "\n".join(f"  {model}: {reason}" for model, reason in sorted(found.reasons.items()))
        return ServerStartError(f"Triton did not load {len(found.reasons)} of the models:\n{listed}", reasons=found.reasons, log_tail=log.tail(text))
    ended = f"ended by signal {status - _SIGNAL_BASE}" if status > _SIGNAL_BASE else f"ended with status {status}"
    loading = [model for model, state in found.states.items() if state == "LOADING"]
    while_loading = f" while it loaded {', '.join(sorted(loading))}" if loading else ""
    return ServerStartError(f"tritonserver {ended}{while_loading}{': ' + found.fatal if found.fatal else ''}", log_tail=log.tail(text))


def _timeout(attempt: _Attempt) -> ServerStartError:
    """What was still missing when the time was up."""
    text = attempt.log()
    found = log.read(text)
    states = "\n".join(f"  {model}: {state}{' - ' + found.reasons[model] if model in found.reasons else ''}" for model, state in sorted(found.states.items()))
    return ServerStartError(
        f"Triton was not ready after {attempt.options.start_timeout_s:g} s; the models:\n{states or '  none has begun to load'}",
        reasons=found.reasons,
        log_tail=log.tail(text),
        hint="a large model or many of them need a longer start timeout; a warmup sample may be heavier than thought",
    )


def _bracketed(host: str) -> str:
    """The host as it stands in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host
