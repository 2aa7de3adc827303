"""What a failed call means, in the errors that users see.

Decided by status, type and what the server says when it is asked: never by the text of a message, which changes from release to release. A flow (see `flow`),
since the server may have to be asked.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tritongen.client import calls
from tritongen.client.calls import CallFailed, Status
from tritongen.client.endpoint import DEFAULT_PORTS, Endpoint
from tritongen.client.flow import NO_HEADERS, Flow, Headers, Send
from tritongen.client.policy import PROBE_S, Deadline
from tritongen.client.redaction import cleanse
from tritongen.diagnostics import Diagnostic
from tritongen.errors import (
    AccessDenied,
    ConnectionFailed,
    DeadlineExceeded,
    InferenceError,
    InvalidInput,
    ModelNotFound,
    ModelNotReady,
    NotTriton,
    Overloaded,
    QueueTimeout,
    ServerError,
    TritongenError,
    Unavailable,
    Unsupported,
)

_MOST_NAMES = 20
_ACCESS = "give a token, headers or a certificate that the server takes: token=, headers=, tls= (--token-file, --header, --tls-cert and --tls-key)"
_MOVED = "something in front of the server sends requests elsewhere, and they do not follow: give the address that it names"
_TOO_MUCH = "the server, or a proxy in front of it, takes no more for now, or nothing of this size: send fewer requests at once, or fewer rows"
_HINTS = {
    **dict.fromkeys(("301", "302", "303", "307", "308"), _MOVED),
    "407": "a proxy in between wants credentials of its own; go around it, or give them as the header proxy-authorization",
    "408": "the request did not arrive in the time that the server, or a proxy in front of it, allows: send smaller requests, or let it wait longer",
    "429": _TOO_MUCH,
    "RESOURCE_EXHAUSTED": _TOO_MUCH,
    "413": "a proxy in front of the server takes no request of this size (nginx: client_max_body_size): send fewer rows, or use gRPC",
}
"""What to do about statuses that are mostly those of something in between."""
_SURE_HEADERS = 8192
"""Bytes of headers that gRPC's servers take: of more they refuse some at random, of 16 KiB all. Triton's HTTP closes the connection at a longer value."""
_HEADER = 32
"""Bytes that a header counts beside its name and value (RFC 7541, section 4.1)."""
_PROTOCOLS = {"grpc": "gRPC", "http": "HTTP"}


@dataclass(frozen=True)
class Circumstances:
    """What is known about a call that failed.

    Attributes:
        endpoint: the server's address; `index` is its place among the client's servers.
        known: a Triton has answered there before.
        model: the model it was about; empty for the server as a whole.
        version: the version that was asked for; empty where that was left to the server.
        is_control: the call was to load or unload the model.
        headers: what the request carried beside the client's own.
        general: what every request of the client carries.
        queue_timeout_s: seconds after which the model's queue gives a request up; 0 where it never does, or where that is not known.
        waited_s: seconds that this attempt took.
    """

    endpoint: Endpoint
    index: int
    known: bool
    model: str = ""
    version: str = ""
    is_control: bool = False
    headers: Headers = field(default_factory=lambda: NO_HEADERS, repr=False)
    general: Headers = field(default_factory=lambda: NO_HEADERS, repr=False)
    queue_timeout_s: float = 0.0
    waited_s: float = 0.0


def explain(failure: CallFailed, about: Circumstances, deadline: Deadline) -> Flow[TritongenError]:
    """The error for a failed call. Asks the server for at most two seconds, and never beyond the deadline."""
    where = about.endpoint.url
    cleanse(failure, about.general, about.headers)
    said = f"{where}: {failure.said}"
    if failure.word == "CLOSED":
        return InferenceError(f"the client of {where} is closed", status="CLOSED", hint="make a new one, or use it inside its `with` block")
    if failure.word == "EXPIRED":
        return too_late(about.endpoint, deadline)
    if failure.status is Status.DEADLINE:
        port = DEFAULT_PORTS[about.endpoint.protocol]
        protocol = _PROTOCOLS[about.endpoint.protocol]
        hint = f"wait longer (deadline_s; `infer --timeout`), or see whether this is Triton's {protocol} port, usually {port}"
        return DeadlineExceeded(f"{where}: no answer within {deadline.seconds:g} s", status=failure.word, hint="" if about.known else hint, sent=failure.sent)
    if failure.status is Status.CONNECTION:
        return (yield from _lost(failure, about, deadline))
    if failure.status is Status.DENIED:
        return AccessDenied(said, status=failure.word, hint=_HINTS.get(failure.word, _ACCESS))
    if failure.status is Status.STRANGER:
        return _stranger(failure, about)
    if failure.status is Status.UNAVAILABLE:
        return (yield from _unavailable(failure, about, deadline))
    if not failure.own and not (yield from _is_triton(about, deadline)):
        return _stranger(failure, about)
    if failure.status in (Status.INVALID, Status.NOT_FOUND):
        return (yield from _refused(failure, about, deadline))
    if about.is_control and (error := (yield from _missing(failure, about, deadline))) and isinstance(error, ModelNotFound):
        return error
    kind = Unsupported if failure.status is Status.UNSUPPORTED else ServerError
    return kind(said, status=failure.word, hint=_HINTS.get(failure.word, "the server's log says more" if about.is_control else ""))


def too_late(endpoint: Endpoint, deadline: Deadline) -> DeadlineExceeded:
    """The error of a request that is not sent any more."""
    return DeadlineExceeded(f"{endpoint.url}: no answer within {deadline.seconds:g} s, which were over before the request was sent", sent=False)


def _ask(call: calls.Call, about: Circumstances, deadline: Deadline) -> Flow[Any]:
    """The server's answer to a question of ours; None where there is none in time."""
    if deadline.left <= 0:
        return None
    try:
        return (yield Send(call, about.index, min(deadline.left, PROBE_S), about.headers))
    except CallFailed:
        return None


def _is_triton(about: Circumstances, deadline: Deadline) -> Flow[bool]:
    """Whether what answers there describes itself as a Triton does. With no time left to ask, it is given the benefit of the doubt."""
    if about.known or deadline.left <= 0:
        return True
    return (yield from _ask(calls.ServerMetadata(), about, deadline)) is not None


def _lost(failure: CallFailed, about: Circumstances, deadline: Deadline) -> Flow[TritongenError]:
    where, protocol = about.endpoint.url, _PROTOCOLS[about.endpoint.protocol]
    port = DEFAULT_PORTS[about.endpoint.protocol]
    # A server that wants a certificate of ours says so after the handshake (TLS 1.3), which may look like any connection that ends.
    unmet = about.endpoint.tls and not about.known and (not failure.sent or about.endpoint.protocol == "http")
    if failure.word == "TLS" or (unmet and failure.word not in ("502", "504")):
        plain = "grpc://" if about.endpoint.protocol == "grpc" else "http://"
        hint = f"is a server listening there, does it speak TLS, and does this machine trust its certificate (and it ours)? {plain} is without TLS"
        return ConnectionFailed(f"{where}: {failure.said}", status="UNAVAILABLE", hint=hint, sent=failure.sent)
    if failure.word in ("502", "504"):
        if about.known:
            return ConnectionFailed(f"{where}: {failure.said}", status=failure.word, hint="the proxy in front of the server does not reach it")
        return _stranger(failure, about)
    if about.endpoint.protocol == "grpc" and not about.known and (yield from _ask(calls.OtherProtocol(), about, deadline)):
        return _stranger(failure, about)
    if not failure.sent:
        hint = f"is a server listening at {where}? {port} is Triton's usual {protocol} port"
        return ConnectionFailed(f"{where}: {failure.said}", status="UNAVAILABLE", hint=hint, sent=False)
    hint = _long_headers(about) or ("the server went away; it may have executed the request" if about.known else "")
    if about.endpoint.protocol == "http" and not about.known:
        hint = f"the server crashed, or this is the port of another service: Triton's usual HTTP port is {port} (gRPC 8001)"
    said = f"the connection was closed without an answer ({failure.said})" if about.endpoint.protocol == "http" else failure.said
    return ConnectionFailed(f"{where}: {said}", status="UNAVAILABLE", hint=hint)


def _stranger(failure: CallFailed, about: Circumstances) -> TritongenError:
    """The error for a place where something answers that is no Triton, or not over this protocol."""
    protocol, other = _PROTOCOLS[about.endpoint.protocol], "http://" if about.endpoint.protocol == "grpc" else "grpc://"
    if about.known:
        hint = _HINTS.get(failure.word, "something between here and the server answered in its place")
        return ServerError(f"{about.endpoint.url}: {failure.said}", status=failure.word, hint=hint)
    usual = f"Triton's usual {protocol} port is {DEFAULT_PORTS[about.endpoint.protocol]}"
    hint = _HINTS.get(failure.word) or f"{usual}; for another protocol write {other} (HTTP 8000, gRPC 8001; 8002 has metrics only)"
    return NotTriton(f"{about.endpoint.url}: what answers there is no Triton {protocol} endpoint: {failure.said}", status=failure.word, hint=hint)


def _unavailable(failure: CallFailed, about: Circumstances, deadline: Deadline) -> Flow[TritongenError]:
    """Triton says the same of a full queue, of a request that waited too long, and of a model that is not there yet: the model's readiness tells."""
    said = f"{about.endpoint.url}: {failure.said}"
    if about.is_control:
        return Unsupported(said, status=failure.word, hint="start the server with --model-control-mode explicit")
    if not about.model:
        return Unavailable(said, status=failure.word)
    ready = yield from _ask(calls.ModelReady(about.model, about.version), about, deadline)
    if ready is None:
        hint = _long_headers(about) or _HINTS.get(failure.word, "")
        return Unavailable(said, status=failure.word, hint=hint) if failure.own or about.known or deadline.left <= 0 else _stranger(failure, about)
    if not ready:
        return (yield from _missing(failure, about, deadline)) or ModelNotReady(said, status=failure.word)
    if about.queue_timeout_s and about.waited_s >= about.queue_timeout_s:
        hint = "the model's queue gives requests up after that time; send fewer, or give the model more instances"
        return QueueTimeout(f"{said} (it waited for {about.waited_s:.3f} s)", status=failure.word, hint=hint)
    hint = "most likely its queue is full: send fewer requests at once, or give the model more instances (or the API is restricted, and wants a header)"
    return Overloaded(said, status=failure.word, hint=_long_headers(about) or _HINTS.get(failure.word, hint))


def _long_headers(about: Circumstances) -> str:
    """What to do where the request's headers are more than every server takes; empty where they are not."""
    size = sum(len(name) + len(value) + _HEADER for name, value in {**about.general, **about.headers}.items())
    if size <= _SURE_HEADERS:
        return ""
    return f"most likely its headers are too long: they take {size} bytes, and Triton surely takes {_SURE_HEADERS}; send shorter ones (a token, a trace)"


def _refused(failure: CallFailed, about: Circumstances, deadline: Deadline) -> Flow[TritongenError]:
    """A request that does not fit, or a model that is not there: Triton says INVALID_ARGUMENT or NOT_FOUND of either, by release and protocol."""
    said = f"{about.endpoint.url}: {failure.said}"
    if about.model and (error := (yield from _missing(failure, about, deadline))):
        return error
    if failure.status is Status.NOT_FOUND:
        return ModelNotFound(said, status=failure.word)
    return InvalidInput([Diagnostic("TG068", said, hint="the message is the server's own", model=about.model)], status=failure.word)


def _missing(failure: CallFailed, about: Circumstances, deadline: Deadline) -> Flow[TritongenError | None]:
    """Why the model cannot answer, said with the server's own list of models; None where the list does not explain it."""
    index = yield from _ask(calls.RepositoryIndex(), about, deadline)
    return None if index is None else missing_model(about.model, about.version, index, failure.word)


def missing_model(model: str, version: str, index: Sequence[Mapping[str, Any]], status: str = "") -> TritongenError | None:
    """What the server's list of models says about a model that did not answer; None where it is there and ready."""
    found = [item for item in index if item.get("name") == model]
    names = sorted({str(item.get("name", "")) for item in index})
    if not found:
        close = difflib.get_close_matches(model, names, n=1)
        have = f"it has {_listed(names)}" if names else "it has none at all"
        hint = f"did you mean '{close[0]}'?" if close else "name one of those" if names else "start it with a model repository"
        return ModelNotFound(f"the server has no model '{model}'; {have}", status=status, hint=hint)
    reasons = [f"version {item.get('version') or '?'}: {item['reason']}" for item in found if item.get("reason")]
    ready = [str(item.get("version", "")) for item in found if item.get("state", "READY") == "READY"]
    if version and ready and version not in ready:
        return ModelNotFound(f"model '{model}' has no version {version} that is ready", status=status, hint=f"ready: {', '.join(ready)}")
    if not ready:
        said = "; ".join(reasons) or "the server gives no reason"
        return ModelNotReady(f"model '{model}' is on the server and not loaded ({said})", status=status, hint="the server's log says more")
    return None


def add_to_message(error: TritongenError, text: str) -> None:
    """Say more in an error that is on its way."""
    if isinstance(error, InvalidInput):
        *others, last = error.diagnostics
        error.diagnostics = (*others, replace(last, message=f"{last.message}{text}"))
    error.args = (f"{error}{text}",)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown
