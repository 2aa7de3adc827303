"""One try at starting tritonserver: its command line, the wait until it is ready, and why it did not become so."""

from __future__ import annotations

import errno
import math
import os
import time
from dataclasses import dataclass

from tritongen.errors import ServerStartError
from tritongen.known_issues import find_issue
from tritongen.releases import find_release
from tritongen.server import http_probe, log, ports
from tritongen.server.environment import Environment
from tritongen.server.options import EMBEDDED_RELEASE, ServerOptions
from tritongen.server.ports import Ports
from tritongen.server.process import ServerProcess
from tritongen.server.runtime import Runtime
from tritongen.server.served_copy import Served
from tritongen.tritonserver import DEFAULT_CACHE_BYTES

_POLL_INTERVAL_S = 0.02
_LOG_INTERVAL_S = 0.25
_OK = 200
_SIGNAL_BASE = 128

_START_TIMEOUT_S, _BUILD_TIMEOUT_S = 120.0, 3600.0
_STUB_TIMEOUT_S = 30  # the Python backend's own default


@dataclass(frozen=True)
class Attempt:
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

    @property
    def start_timeout_s(self) -> float:
        """Seconds until every model must be loaded."""
        if self.options.start_timeout_s is not None:
            return self.options.start_timeout_s
        return _BUILD_TIMEOUT_S if self.served.builds_engines else _START_TIMEOUT_S

    def arguments(self) -> list[str]:
        """The command line of tritonserver."""
        options = self.options
        arguments = [
            str(self.environment.server),
            *(f"--model-repository={path.absolute()}" for path in self.served.repositories),
            f"--backend-directory={self.runtime.backends}",
            f"--cache-directory={self.environment.triton / 'caches'}",
            f"--backend-config=python,stub-timeout-seconds={max(_STUB_TIMEOUT_S, math.ceil(self.start_timeout_s))}",
            *(f"--{name}-address={options.host}" for name in ("http", "grpc", "metrics")),
            f"--http-port={self.ports.http}",
            f"--grpc-port={self.ports.grpc}",
            f"--metrics-port={self.ports.metrics}",
            f"--model-control-mode={options.model_control}",
            f"--exit-on-error={str(options.exit_on_error).lower()}",
            *(f"--load-model={name}" for name in options.load_models),
            *self._cache(),
            *(f"--backend-config=onnxruntime,{setting}" for setting in _stands_for(options)),
            *options.extra_args,
            # The last one holds: what a killed server leaves in shared memory is found by this prefix, whatever a spec's backend_config has for its deployment.
            f"--backend-config=python,shm-region-prefix-name={self.runtime.shm_prefix}",
        ]
        if options.disable_auto_complete:
            arguments.append("--disable-auto-complete-config")
        if options.model_control == "poll":
            arguments.append(f"--repository-poll-secs={options.poll_interval_s}")
        return arguments

    def _cache(self) -> list[str]:
        """The response cache, where one was ordered or is needed."""
        if self.options.cache_config is not None:
            return [f"--cache-config={self.options.cache_config}"]
        return [f"--cache-config=local,size={DEFAULT_CACHE_BYTES}"] if self.served.wants_cache else []


def _stands_for(options: ServerOptions) -> list[str]:
    """Settings that tell the backend which release's onnxruntime backend it stands for; see `release.py` beside it."""
    release = find_release(options.release or EMBEDDED_RELEASE)
    if release is None or release.onnxruntime is None:
        return []
    settings = [f"tritongen-release={release.name}", f"tritongen-onnxruntime={release.onnxruntime}"]
    if find_issue("no-bf16-tensors").holds_in(release):
        settings.append("tritongen-bf16=false")
    if not find_issue("no-external-data-outside").holds_in(release):
        settings.append("tritongen-reads-outside=true")
    if options.strict:
        settings.append("tritongen-strict=true")
    return settings


class PortTakenError(Exception):
    """A port that was free when chosen is not any more; `ports` are those that another attempt must avoid."""

    def __init__(self, ports: frozenset[int]) -> None:
        super().__init__(ports)
        self.ports = ports


def wait_until_ready(process: ServerProcess, attempt: Attempt, deadline: float) -> None:
    """Wait for HTTP (which Triton opens when loading is over) and for the metrics port, which it opens last.

    Raises ServerStartError where the server ends or the time is up, `PortTakenError` where it ended because of a port that was chosen freely.
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
            found = log.read(attempt.log())
            if found.stub_error is not None or found.taken_ports or (found.ending and found.reasons):
                # it would wait for a stub that never comes; or it ends by itself, but looks only once a second whether all models are unloaded
                process.stop(grace_s=0.0)
        time.sleep(_POLL_INTERVAL_S)
    raise _failure(status, attempt)


def _failure(status: int, attempt: Attempt) -> ServerStartError | PortTakenError:
    """Why tritonserver ended, as far as its log says."""
    text = attempt.log()
    found = log.read(text)
    if found.stub_error is not None:
        return _stub_failure(found.stub_error, text)
    freely = frozenset(getattr(attempt.ports, name) for name in attempt.ports.chosen_freely)
    if found.taken_ports & freely:
        return PortTakenError(found.taken_ports)
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


def _stub_failure(number: int, text: str) -> ServerStartError:
    """Triton executes `bash`, and that its stub; it does not look whether the first succeeds, and would wait until the time is up."""
    if number == errno.ENOENT:
        message, hint = "bash, through which Triton starts the processes that run models, is not on PATH", "install bash, or put its folder on PATH"
    else:
        message, hint = f"Triton cannot start the processes that run models: {os.strerror(number)}", "see the end of the log for the program's path"
    return ServerStartError(message, log_tail=log.tail(text), hint=hint)


def _timeout(attempt: Attempt) -> ServerStartError:
    """What was still missing when the time was up."""
    text = attempt.log()
    found = log.read(text)
    states = "\n".join(f"  {model}: {state}{' - ' + found.reasons[model] if model in found.reasons else ''}" for model, state in sorted(found.states.items()))
    return ServerStartError(
        f"Triton was not ready after {attempt.start_timeout_s:g} s; the models:\n{states or '  none has begun to load'}",
        reasons=found.reasons,
        log_tail=log.tail(text),
        hint="a large model or many of them need a longer start timeout; a warmup sample may be heavier than thought",
    )
