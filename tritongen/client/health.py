"""Whether servers live and models are ready, as flows (see `flow`)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tritongen.client import calls
from tritongen.client.calls import Call, CallFailed, Status
from tritongen.client.core import Core
from tritongen.client.failures import explain, missing_model
from tritongen.client.flow import NO_HEADERS, Flow, Pause, Send
from tritongen.client.policy import PROBE_S, Deadline
from tritongen.client.redaction import cleanse
from tritongen.errors import DeadlineExceeded

_POLL_S = 0.1


class Health(NamedTuple):
    """Whether a server runs, and whether it is ready with all its models."""

    live: bool
    ready: bool


def holds(core: Core, call: Call, deadline: Deadline) -> Flow[bool]:
    """The answer to a question of yes or no: whether it is yes of any server. False where nobody answers; raises AccessDenied."""
    return (yield from _judge(core, call, deadline, PROBE_S if len(core.endpoints) > 1 else deadline.left))[0]


def health(core: Core, deadline: Deadline) -> Flow[Health]:
    """Whether any server lives, and whether one is ready, within one deadline. Raises AccessDenied."""
    is_live = yield from holds(core, calls.ServerLive(), deadline)
    return Health(is_live, is_live and (yield from holds(core, calls.ServerReady(), deadline)))


def _judge(core: Core, call: Call, deadline: Deadline, most_s: float) -> Flow[tuple[bool, str]]:
    """Whether any server says yes within `most_s` seconds, and else what the last one said that said nothing useful."""
    said = ""
    asked: set[int] = set()
    while len(asked) < len(core.endpoints) and deadline.left > 0:
        index = core.balancer.pick(refused=asked)
        limit = min(deadline.left / (len(core.endpoints) - len(asked)), most_s)
        asked.add(index)
        try:
            answer = bool((yield Send(call, index, limit, NO_HEADERS)))
            if answer and not (yield from core.is_triton(index, limit)):
                raise CallFailed(Status.STRANGER, "200", "it says yes to everything, and is no Triton", own=False)
        except CallFailed as failure:
            cleanse(failure, core.access.headers)
            if failure.word == "CLOSED" or failure.status is Status.DENIED:
                raise (yield from explain(failure, core.about(index, call), deadline)) from failure
            core.balancer.lost(index)
            said = f"{core.endpoints[index].url}: {failure.said or 'no answer in time'}"
        else:
            core.balancer.answered(index)
            if answer:
                return True, ""
    return False, said


def wait_ready(core: Core, model: str, version: str, deadline: Deadline) -> Flow[None]:
    """Ends when the model (or the server with all its models) is ready. Raises DeadlineExceeded with the server's reason."""
    call = calls.readiness(model, version)
    said = ""
    while True:
        ready, now = yield from _judge(core, call, deadline, PROBE_S)
        if ready:
            return
        said = now if deadline.left > 0 else now or said
        if deadline.left <= _POLL_S:
            break
        yield Pause(_POLL_S)
    what = f"model '{model}'" if model else "the server"
    listed: Sequence[Mapping[str, Any]] = ()
    if not said and deadline.left > 0:
        with contextlib.suppress(CallFailed):
            listed = yield Send(calls.RepositoryIndex(), core.balancer.pick(), min(deadline.left, PROBE_S), NO_HEADERS)
    reason = missing_model(model, version, listed) if model and listed else None
    why = f": {reason or said}" if reason or said else ""
    raise DeadlineExceeded(f"{what} is not ready after {deadline.seconds:g} s{why}", hint=reason.hint if reason else "")
