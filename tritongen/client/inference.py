"""Requests, as flows (see `flow`): checked, cut where they are too long, sent, and put together again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from logging import DEBUG
from typing import TYPE_CHECKING, Any, NamedTuple

from tritongen.client.arguments import check_options
from tritongen.client.calls import CallFailed, Infer, Reply
from tritongen.client.core import Core, Described, log
from tritongen.client.failures import Circumstances, too_late
from tritongen.client.flow import NO_HEADERS, NOT_BEGUN, Flow, Headers, Together
from tritongen.client.metadata import ModelMeta
from tritongen.client.policy import Deadline
from tritongen.client.requests import MAX_REQUEST_BYTES, Cast, Prepared, check_size, prepare
from tritongen.client.result import Result, check_outputs, result_of
from tritongen.client.splitting import joined, not_sent, partial_failure, parts_of, too_many_rows
from tritongen.client.tracing import Span, joined_headers
from tritongen.errors import InferenceError, InvalidInput, ModelNotFound, PartialFailure, TritongenError, Unsupported

if TYPE_CHECKING:
    from tritongen.client.sequence import Step

_FRESH_S = 1.0
"""A description younger than this is not asked for again because a request does not fit it: wrong requests must not become load on the server."""
_RENEWAL_S = 2.0


@dataclass(slots=True)
class Options:
    """The arguments of one `Client.infer` beside model and inputs."""

    version: str = ""
    outputs: Sequence[str] | None = None
    priority: int | None = None
    deadline_s: float | None = None
    request_id: str = ""
    parameters: Mapping[str, str | int | float | bool] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    cast: Cast = "exact"
    add_batch_axis: bool = False
    idempotent: bool | None = None


class Opened(NamedTuple):
    """A stream that may be opened, for the time `attempts`."""

    call: Infer
    about: Circumstances
    deadline: Deadline
    attempts: int
    span: Span | None


@dataclass(slots=True)
class Request:
    """One call of `infer` on its way.

    Attributes:
        model: the model's name.
        inputs: what the caller gave.
        options: likewise.
        deadline: when it must be over.
        headers: of this request: the caller's, and those of its span.
        span: what is told to whom the request goes; None where nobody traces.
        sequence: what it is in its sequence; None for a request that belongs to none.
    """

    model: str
    inputs: Mapping[str, object]
    options: Options
    deadline: Deadline
    headers: Headers
    span: Span | None = None
    sequence: Step | None = None


def make_request(
    core: Core,
    model: str,
    inputs: Mapping[str, object],
    options: Options,
    span: Span | None,
    sequence: Step | None = None,
) -> Request:
    """A request, its deadline running. Raises InvalidInput with everything that no request can have."""
    if not (_asks_for_nothing(options) and type(model) is str and (model, "") in core.models):
        options = check_options(model, options)
    headers = joined_headers(options.headers, span) if options.headers or span is not None else NO_HEADERS
    return Request(model, inputs, options, core.deadline(options.deadline_s), headers, span, sequence)


def _asks_for_nothing(options: Options) -> bool:
    """Whether every option has its default, as in most requests: then there is nothing to check."""
    # By identity and type: what a caller gives may compare in ways of its own, as arrays do.
    return (
        options.outputs is None
        and options.priority is None
        and options.deadline_s is None
        and options.parameters is None
        and options.headers is None
        and options.idempotent is None
        and options.add_batch_axis is False
        and type(options.version) is type(options.request_id) is type(options.cast) is str
        and not options.version
        and not options.request_id
        and options.cast == "exact"
    )


def infer(core: Core, request: Request) -> Flow[Result]:
    """One request; cut and put together again where it has more rows than the model takes."""
    started = time.perf_counter()
    described = core.models.get((request.model, request.options.version)) or (yield from _described(core, request))
    try:
        reply, attempts = yield from _checked(core, request, described.meta)
    except PartialFailure as error:
        if any(isinstance(part, InvalidInput | ModelNotFound) for part in error.failures.values()):
            core.forget(request.model)  # other parts were executed: it is for the caller to send it again
        raise
    except (InvalidInput, ModelNotFound, Unsupported) as error:
        renewed = yield from _renewed(core, request, described)
        if renewed is None:
            raise error from None
        reply, attempts = yield from _checked(core, request, renewed)
    return result_of(reply, time.perf_counter() - started, attempts)


def open_stream(core: Core, request: Request) -> Flow[Opened]:
    """A checked request for a stream of answers."""
    described = core.models.get((request.model, request.options.version)) or (yield from _described(core, request))
    meta = described.meta
    try:
        prepared = _prepared(request, meta)
    except InvalidInput as error:
        renewed = yield from _renewed(core, request, described)
        if renewed is None:
            raise error from None
        meta = renewed
        prepared = _prepared(request, meta)
    if prepared.rows is not None and prepared.rows > meta.max_batch_size:
        raise InvalidInput([too_many_rows(meta, prepared.rows)])
    call, queue_timeout_s = _call(meta, prepared, request)
    index = yield from core.choose(request.deadline)
    return _opened(call, core.about(index, call, request.headers, queue_timeout_s), request.deadline, 1, request.span)


def reopen_stream(core: Core, opened: Opened, failure: CallFailed, *, begun: bool) -> Flow[Opened]:
    """Where to open a stream again that failed. Raises its error where it had answers (`begun`), or may have been executed."""
    yield from core.recover(failure, opened.about, opened.deadline, opened.attempts, idempotent=False, begun=begun)
    index = yield from core.choose(opened.deadline)
    about = core.about(index, opened.call, opened.about.headers, opened.about.queue_timeout_s)
    return _opened(opened.call, about, opened.deadline, opened.attempts + 1, opened.span)


def _opened(call: Infer, about: Circumstances, deadline: Deadline, attempts: int, span: Span | None) -> Opened:
    if span is not None:
        span.asks(about.endpoint)
    if deadline.left <= 0:
        raise too_late(about.endpoint, deadline)
    return Opened(call, about, deadline, attempts, span)


def _described(core: Core, request: Request) -> Flow[Described]:
    """The model, asked about now."""
    return (yield from core.describe(request.model, request.options.version, request.deadline, request.headers))


def _renewed(core: Core, request: Request, described: Described) -> Flow[ModelMeta | None]:
    """The model as it is now, where it may have been replaced since it was described and was; None else, also where nobody says."""
    if time.monotonic() - described.at < _FRESH_S or request.deadline.left <= 0:
        return None
    try:
        renewed = yield from core.describe(request.model, request.options.version, Deadline(min(request.deadline.left, _RENEWAL_S)), request.headers)
    except (InferenceError, InvalidInput):
        return None
    return None if renewed.meta == described.meta else renewed.meta


def _prepared(request: Request, meta: ModelMeta) -> Prepared:
    options = request.options
    return prepare(meta, request.inputs, outputs=options.outputs, cast=options.cast, add_batch_axis=options.add_batch_axis)


def _checked(core: Core, request: Request, meta: ModelMeta) -> Flow[tuple[Reply, int]]:
    """The flow of a request that its model takes: brings the answer, and how often something was sent. Raises where the model does not take it."""
    if meta.decoupled:
        raise Unsupported(f"model '{meta.name}' is decoupled: it answers with any number of responses", hint="use stream() of the Python client, over gRPC")
    prepared = _prepared(request, meta)
    if prepared.rows is None or prepared.rows <= meta.max_batch_size:
        return _exchange(core, request, meta, prepared)
    if request.sequence is not None:
        raise InvalidInput([too_many_rows(meta, prepared.rows)])
    return _in_parts(core, request, meta, parts_of(prepared, prepared.rows, meta.max_batch_size))


def _in_parts(core: Core, request: Request, meta: ModelMeta, parts: Sequence[Prepared]) -> Flow[tuple[Reply, int]]:
    """One answer from those of all parts, which are sent side by side."""
    outcomes = yield Together([_exchange(core, request, meta, part) for part in parts], core.settings.window, request.deadline)
    failures: dict[tuple[int, int], TritongenError] = {}
    late = not_sent(meta, request.deadline)
    start = 0
    for part, outcome in zip(parts, outcomes, strict=True):
        rows = part.rows or 0
        if outcome is NOT_BEGUN:
            failures[start, start + rows] = late
        elif isinstance(outcome, TritongenError):
            failures[start, start + rows] = outcome
        elif isinstance(outcome, BaseException):
            raise outcome
        start += rows
    if failures:
        raise partial_failure(meta, failures, len(parts))
    return joined([(part.rows or 0, reply) for part, (reply, _) in zip(parts, outcomes, strict=True)]), sum(attempts for _, attempts in outcomes)


def _exchange(core: Core, request: Request, meta: ModelMeta, prepared: Prepared) -> Flow[tuple[Reply, int]]:
    if prepared.nbytes > MAX_REQUEST_BYTES and core.endpoints[0].protocol == "grpc":
        check_size(prepared.nbytes, meta.name)
    call, queue_timeout_s = _call(meta, prepared, request)
    pinned, step = -1, request.sequence
    if step is not None:
        pinned = step.server = step.server if step.server >= 0 else (yield from core.choose(request.deadline))
        step.left = True
    may_repeat = core.settings.idempotent if request.options.idempotent is None else request.options.idempotent
    reply, attempts, _ = yield from core.attempt(
        call,
        request.deadline,
        idempotent=may_repeat and step is None,
        pinned=pinned,
        headers=request.headers,
        queue_timeout_s=queue_timeout_s,
        span=request.span,
    )
    if call.outputs is not None:
        check_outputs(meta.name, reply.outputs, call.outputs)
    if log.isEnabledFor(DEBUG):
        log.debug("%s version %s: %d bytes sent, answered in %.1f ms", meta.name, reply.version, prepared.nbytes, reply.wait_s * 1000)
    return reply, attempts


def _call(meta: ModelMeta, prepared: Prepared, request: Request) -> tuple[Infer, float]:
    """The call for a checked request, and how long it may wait in the model's queue, in seconds (0: no limit)."""
    options = request.options
    parameters = _parameters(request) if options.priority is not None or options.parameters or request.sequence is not None else {}
    policy = meta.queue_policies.get(options.priority or 0) or meta.queue_policies[0]
    limit_us = policy.timeout_us
    if limit_us and policy.may_be_shortened:
        # Triton takes a request's own limit only where it is shorter than the queue's (facts of core/scheduler_utils).
        own = max(int(request.deadline.left * 1e6), 1)
        if own < limit_us:
            parameters["timeout"] = limit_us = own
    outputs = None if options.outputs is None else tuple(options.outputs)
    return Infer(meta.name, options.version, prepared.inputs, outputs, options.request_id, parameters), limit_us / 1e6 if policy.rejects else 0.0


def new_sequence_id() -> int:
    """A correlation id that nobody else has: 63 random bits, never 0, which means none."""
    return secrets.randbits(63) | 1


def _parameters(request: Request) -> dict[str, Any]:
    """The request's parameters: the caller's, and those of the protocol."""
    options, sequence = request.options, request.sequence
    priority = {} if options.priority is None else {"priority": options.priority}
    return {**(options.parameters or {}), **priority, **(sequence.parameters if sequence is not None else {})}
