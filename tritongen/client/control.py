"""Loading and unloading of models, as flows (see `flow`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritongen.client import calls
from tritongen.client.core import Core
from tritongen.client.failures import add_to_message, too_late
from tritongen.client.flow import NOT_BEGUN, Flow, Together
from tritongen.client.policy import Deadline
from tritongen.client.requests import check_size
from tritongen.errors import TritongenError


def control(core: Core, call: calls.LoadModel | calls.UnloadModel, deadline: Deadline) -> Flow[None]:
    """Load or unload a model on every server, side by side. Done once on each: what fails to load fails again.

    One error has all that failed, and says which servers did it.
    """
    if isinstance(call, calls.LoadModel) and core.endpoints[0].protocol == "grpc":
        size = len(call.config) + sum(map(len, call.files.values()))
        check_size(size, call.model, "files", "put the model into the server's repository, and load it from there")
    core.forget(call.model)
    flows = [core.attempt(call, deadline, idempotent=False, pinned=index) for index in range(len(core.endpoints))]
    outcomes = yield Together(flows, len(flows), deadline)
    core.balancer.found(call.model)
    failed: dict[str, TritongenError] = {}
    for endpoint, outcome in zip(core.endpoints, outcomes, strict=True):
        if outcome is NOT_BEGUN or isinstance(outcome, TritongenError):
            failed[endpoint.url] = too_late(endpoint, deadline) if outcome is NOT_BEGUN else outcome
        elif isinstance(outcome, BaseException):
            raise outcome
    if failed:
        raise _failed_on(call, [endpoint.url for endpoint in core.endpoints], failed)


def _failed_on(call: calls.LoadModel | calls.UnloadModel, urls: Sequence[str], failed: Mapping[str, TritongenError]) -> TritongenError:
    """The one error of a load or unload: the first that failed, which among several servers says what became of it on the others."""
    error, *_ = failed.values()
    if len(urls) == 1:
        return error
    what = "loaded" if isinstance(call, calls.LoadModel) else "unloaded"
    others = "".join(f"; {url} failed too: {other}" for url, other in list(failed.items())[1:])
    done = ", ".join(url for url in urls if url not in failed) or "no server"
    add_to_message(error, f"{others}; model '{call.model}' was {what} by {done}")
    return error
