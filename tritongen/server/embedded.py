"""The embedded server: a real Triton on this machine, from a folder of models to answered requests.

with start(Path("model_repository"), ServerOptions(http_port=0)) as server:
    print(server.http_url, server.models)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import EnvironmentProblem, RepositoryError, ServerStartError
from tritongen.server import environment as environments
from tritongen.server import http_probe, log, ports, runtime, served_copy
from tritongen.server.attempt import Attempt, PortTakenError, wait_until_ready
from tritongen.server.environment import Environment
from tritongen.server.interpreter import clean_environment
from tritongen.server.options import ServerOptions
from tritongen.server.process import STOP_GRACE_S, ServerProcess

_PORT_RETRIES = 5
_FAILED_GRACE_S = 2.0


class EmbeddedServer:
    """A running Triton, made by `start`. Use it as a context manager, or call `stop`.

    Attributes:
        differences: plain sentences about what is served differently from what the repository asks for.
        warnings: these, and what else is to be known: default ports that were taken, a release that is not known.
        ready_s: seconds from the call of `start` until all models were loaded and all ports answered.
    """

    def __init__(self, attempt: Attempt, process: ServerProcess, ready_s: float) -> None:
        self._attempt = attempt
        self._process = process
        self._host = http_probe.reachable(attempt.options.host)
        self._ports = attempt.ports
        self._last_log: str | None = None
        self._last_models: dict[str, str] = {}
        remarks = (f"model {model}: {text}" for model, text in log.read(attempt.log()).remarks)
        self.differences = (*attempt.served.warnings, *remarks)
        self.warnings = (*self.differences, *attempt.ports.warnings(), *attempt.options.warnings())
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
        """Where Prometheus metrics are served, under `/metrics`: such as `http://127.0.0.1:8002`."""
        return f"http://{_bracketed(self._host)}:{self._ports.metrics}"

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
            substitute.
        MissingExtra, EnvironmentProblem: this machine lacks something; `tritongen doctor` says what.
        ServerStartError: Triton ended, or was not ready in time; `reasons` has Triton's own reason for each model.
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
            return _started(Attempt(options, environment, chosen, private, served), begin)
        except PortTakenError as taken:
            tried |= taken.ports
            private.remove()
        except BaseException:
            private.remove()
            raise
    raise EnvironmentProblem(f"other programs took {len(tried)} ports between their choice and Triton's start", hint="give free ports by number")


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


def _started(attempt: Attempt, begin: float) -> EmbeddedServer:
    """Run the attempt; a server that is ready."""
    process = ServerProcess(attempt.arguments(), runtime.variables(attempt.runtime, attempt.environment, clean_environment()), attempt.runtime)
    try:
        wait_until_ready(process, attempt, begin + attempt.start_timeout_s)
        process.note_ready()
        server = EmbeddedServer(attempt, process, time.perf_counter() - begin)
        if attempt.options.strict and server.differences:
            raise ServerStartError(
                f"not everything can be served as asked: {'; '.join(server.differences)}", hint="leave out --strict to serve it all the same"
            )
    except BaseException:
        process.stop(grace_s=_FAILED_GRACE_S)
        raise
    return server


def _bracketed(host: str) -> str:
    """The host as it stands in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host
