"""Requests, as flows (see `flow`): checked, cut where they are too long, sent, and put together again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate
from logging import DEBUG
from typing import TYPE_CHECKING, Any

from tritongen.client.arguments import check_options, merged
from tritongen.client.calls import Infer, Reply
from tritongen.client.core import Core, Described, log
from tritongen.client.flow import NO_HEADERS, NOT_BEGUN, Flow, Headers, Together
from tritongen.client.metadata import ModelMeta, QueuePolicy
from tritongen.client.policy import Deadline
from tritongen.client.requests import MAX_REQUEST_BYTES, Cast, Prepared, check_size, prepare
from tritongen.client.result import Result, check_outputs, check_request_id, result_of
from tritongen.client.splitting import joined, not_sent, partial_failure, parts_of, too_many_rows
from tritongen.client.tracing import Span, joined_headers
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InferenceError, InvalidInput, ModelNotFound, TritongenError, Unsupported

if TYPE_CHECKING:
    from tritongen.client.sequence import Step

_FRESH_S = 1.0
"""A description younger than this is not asked for again because a request does not fit it: wrong requests must not become load on the server."""
_CUT_FRESH_S = 60.0
"""A description older than this is asked for again before a request is cut, since nothing tells that the model takes more rows by now."""
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


_OPTIONS = frozenset(item.name for item in fields(Options))


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
        window: how many of its parts may be under way at once, where it is cut.
    """

    model: str
    inputs: Mapping[str, object]
    options: Options
    deadline: Deadline
    headers: Headers
    span: Span | None = None
    sequence: Step | None = None
    window: int = 1


def split_options(inputs: Mapping[str, object] | None, given: Mapping[str, Any]) -> tuple[Options, Mapping[str, object]]:
    """The keywords of an `infer` as its options and all its inputs. Raises InvalidInput (TG061) as `merged` does."""
    options = Options(**{name: value for name, value in given.items() if name in _OPTIONS})
    return options, merged(inputs, {name: value for name, value in given.items() if name not in _OPTIONS})


def common_options(model: str, given: Mapping[str, Any]) -> tuple[Options, Mapping[str, object]]:
    """The keywords of an `infer_many`: the options of each of its requests, and the inputs that each has. Raises InvalidInput (TG061, TG067)."""
    options, tensors = split_options(None, given)
    return check_options(model, options), tensors


def make_request(
    core: Core,
    model: str,
    inputs: Mapping[str, object],
    options: Options,
    span: Span | None,
    sequence: Step | None = None,
    window: int | None = None,
) -> Request:
    """A request, its deadline running; `window` None is the client's. Raises InvalidInput with everything that no request can have."""
    if not (_asks_for_nothing(options) and type(model) is str and (model, "") in core.models):
        options = check_options(model, options)
    headers = joined_headers(options.headers, span) if options.headers or span is not None else NO_HEADERS
    return Request(model, inputs, options, core.deadline(options.deadline_s), headers, span, sequence, window or core.settings.window)


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
    described = core.models.get((request.model, request.options.version)) or (yield from described_for(core, request))
    try:
        reply, attempts = yield from _checked(core, request, described)
    except (InvalidInput, ModelNotFound, Unsupported) as error:
        renewed = yield from renewed_for(core, request, described, error)
        if renewed is None:
            raise error from None
        reply, attempts = yield from _checked(core, request, renewed)
    return result_of(reply, time.perf_counter() - started, attempts)


def described_for(core: Core, request: Request) -> Flow[Described]:
    """The model, asked about now."""
    return (yield from core.describe(request.model, request.options.version, request.deadline, request.headers))


def renewed_for(core: Core, request: Request, described: Described, error: TritongenError) -> Flow[Described | None]:
    """The model as it is now, where it may have been replaced since it was described and was; None else, also where nobody says.

    `error`: what the request met. One that the server said tells that the description is wrong, however young it is.
    """
    is_fresh = time.monotonic() - described.at < _FRESH_S and not getattr(error, "status", "")
    return None if is_fresh else (yield from _replaced(core, request, described))


def _replaced(core: Core, request: Request, described: Described) -> Flow[Described | None]:
    """The model as it is now; None where it is as it was described, or where nobody says."""
    if request.deadline.left <= 0:
        return None
    try:
        renewed = yield from core.describe(request.model, request.options.version, Deadline(min(request.deadline.left, _RENEWAL_S)), request.headers)
    except (InferenceError, InvalidInput):
        return None
    return None if renewed.meta == described.meta else renewed


def prepared_for(request: Request, meta: ModelMeta) -> Prepared:
    """The request's inputs as the model takes them. Raises InvalidInput (TG061)."""
    options = request.options
    return prepare(meta, request.inputs, outputs=options.outputs, cast=options.cast, add_batch_axis=options.add_batch_axis)


def _checked(core: Core, request: Request, described: Described) -> Flow[tuple[Reply, int]]:
    """A request that its model takes: the answer, and how often something was sent. Raises where the model does not take it."""
    meta = described.meta
    if not meta.takes_plain_requests or request.sequence is not None:
        _check_kind(meta, request)
    prepared = prepared_for(request, meta)
    if prepared.rows is None or prepared.rows <= meta.max_batch_size:
        return _exchange(core, request, meta, prepared)
    if request.sequence is not None:
        raise InvalidInput([too_many_rows(meta, prepared.rows)])
    return _in_parts(core, request, described, prepared)


def _check_kind(meta: ModelMeta, request: Request) -> None:
    """Raise Unsupported or InvalidInput for a model that takes other kinds of requests."""
    if meta.decoupled:
        raise Unsupported(f"model '{meta.name}' is decoupled: it answers with any number of responses", hint="use stream() of the Python client, over gRPC")
    if request.sequence is None and meta.is_stateful:
        finding = needs_sequence(meta, "send it in a sequence() block")
    elif request.sequence is not None and not meta.may_know_sequences:
        message = "the model keeps no state (it has no sequence_batching), and the requests of a sequence would each be answered alone"
        finding = Diagnostic("TG061", message, hint="use infer(), or give the model sequence_batching", model=meta.name)
    else:
        return
    raise InvalidInput([finding])


def needs_sequence(meta: ModelMeta, hint: str) -> Diagnostic:
    """The finding for a request on its own to a stateful model."""
    message = "the model takes requests of a sequence only (sequence_batching), and this one belongs to none"
    return Diagnostic("TG061", message, consequence="Triton refuses the request", hint=hint, model=meta.name)


def _in_parts(core: Core, request: Request, described: Described, prepared: Prepared) -> Flow[tuple[Reply, int]]:
    """One answer from those of all parts, which are sent side by side."""
    if time.monotonic() - described.at > _CUT_FRESH_S:
        renewed = yield from _replaced(core, request, described)
        if renewed is not None:
            return (yield from _checked(core, request, renewed))
    parts = parts_of(prepared, described.meta.max_batch_size)
    outcomes = yield from _side_by_side(core, request, described.meta, parts)
    refused = next((outcome for outcome in outcomes if isinstance(outcome, InvalidInput | ModelNotFound)), None)
    if refused is not None and any(isinstance(outcome, tuple) for outcome in outcomes):
        # Others were executed, and are not sent again.
        renewed = yield from renewed_for(core, request, described, refused)
        if renewed is not None:
            parts, outcomes = yield from _cut_anew(core, request, renewed.meta, parts, outcomes)
    return _whole(request, described.meta, parts, outcomes)


def _cut_anew(core: Core, request: Request, meta: ModelMeta, parts: Sequence[Prepared], outcomes: Sequence[Any]) -> Flow[tuple[list[Prepared], list[Any]]]:
    """Parts with their outcomes, in which those that the server refused are cut and sent as the model wants them now, if it takes them."""
    try:
        whole = prepared_for(request, meta)
    except InvalidInput:
        return list(parts), list(outcomes)
    ends = list(accumulate(part.rows or 0 for part in parts))
    known: list[tuple[Prepared, Any]] = []
    for part, end, outcome in zip(parts, ends, outcomes, strict=True):
        is_refused = isinstance(outcome, InvalidInput | ModelNotFound) and whole.rows is not None
        again = parts_of(whole, meta.max_batch_size, end - (part.rows or 0), end) if is_refused else [part]
        known += [(piece, NOT_BEGUN if is_refused else outcome) for piece in again]
    to_send = [place for place, (_, outcome) in enumerate(known) if outcome is NOT_BEGUN]
    answered = dict(zip(to_send, (yield from _side_by_side(core, request, meta, [known[place][0] for place in to_send])), strict=True))
    return [part for part, _ in known], [answered.get(place, outcome) for place, (_, outcome) in enumerate(known)]


def _side_by_side(core: Core, request: Request, meta: ModelMeta, parts: Sequence[Prepared]) -> Flow[list[Any]]:
    """What became of each part. No more are under way than the model's queue has places, so that no part is refused for the others' sake."""
    places = _queue_policy(meta, request).max_size or len(parts)
    return (yield Together([_exchange(core, request, meta, part) for part in parts], min(request.window, places), request.deadline))  # type: ignore[no-any-return]


def _whole(request: Request, meta: ModelMeta, parts: Sequence[Prepared], outcomes: Sequence[Any]) -> tuple[Reply, int]:
    """The answer that the parts' make. Raises one error for those that failed."""
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
    call, queue_timeout_s = call_for(core, meta, prepared, request)
    pinned, step = -1, request.sequence
    if step is not None:
        chosen = step.server if step.server >= 0 else (yield from core.choose_for_all(meta.name, call.version, request.deadline))
        pinned = step.server = chosen
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
    if call.request_id and reply.request_id:
        check_request_id(meta.name, reply.request_id, call.request_id)
    if log.isEnabledFor(DEBUG):
        log.debug("%s version %s: %d bytes sent, answered in %.1f ms", meta.name, reply.version, prepared.nbytes, reply.wait_s * 1000)
    return reply, attempts


def _queue_policy(meta: ModelMeta, request: Request) -> QueuePolicy:
    return meta.queue_policies.get(request.options.priority or 0) or meta.queue_policies[0]


def call_for(core: Core, meta: ModelMeta, prepared: Prepared, request: Request) -> tuple[Infer, float]:
    """The call for a checked request, and how long it may wait in the model's queue, in seconds (0: no limit). Raises InvalidInput (TG066)."""
    if prepared.nbytes > MAX_REQUEST_BYTES and core.endpoints[0].protocol == "grpc":
        check_size(prepared.nbytes, meta.name)
    options = request.options
    parameters = _parameters(request) if options.priority is not None or options.parameters or request.sequence is not None else {}
    policy = _queue_policy(meta, request)
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
