"""Requests, as flows (see `flow`): checked, cut where they are too long, sent, and put together again."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import accumulate
from logging import DEBUG
from operator import is_
from typing import TYPE_CHECKING, Any

from tritongen.client import tracing
from tritongen.client.calls import Infer, longest_wait_us
from tritongen.client.core import Answered, Core, Described, log
from tritongen.client.flow import NOT_BEGUN, Flow, Together
from tritongen.client.metadata import ModelMeta, QueuePolicy
from tritongen.client.options import Options, Request, make_request
from tritongen.client.policy import Deadline
from tritongen.client.requests import MAX_REQUEST_BYTES, Fit, Prepared, check_size, layout_of, prepare
from tritongen.client.result import Result, check_outputs, check_request_id
from tritongen.client.splitting import joined, not_sent, partial_failure, parts_of, too_many_rows
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InferenceError, InvalidInput, ModelNotFound, TritongenError, Unsupported

if TYPE_CHECKING:
    from tritongen.client.sequence import Step

_FRESH_S = 1.0
"""A description younger than this is not asked for again because a request does not fit it: wrong requests must not become load on the server."""
_CUT_FRESH_S = 60.0
"""A description older than this is asked for again before a request is cut, since nothing tells that the model takes more rows by now."""
_RENEWAL_S = 2.0


def infer(core: Core, model: str, inputs: Mapping[str, object], options: Options, *, sequence: Step | None = None, window: int | None = None) -> Flow[Result]:
    """One request; cut and put together again where it has more rows than the model takes. The arguments are those of `make_request`."""
    # Nobody can trace who has not imported it, and a plain request enters nothing that it does not need.
    if tracing.MODULE in sys.modules:
        return _traced(core, model, inputs, options, sequence, window)
    return _answered(core, make_request(core, model, inputs, options, None, sequence, window))


def _traced(core: Core, model: str, inputs: Mapping[str, object], options: Options, sequence: Step | None, window: int | None) -> Flow[Result]:
    """One request in a span of its own, where the application has set a provider of spans up."""
    with tracing.span(model) as span:
        return (yield from _answered(core, make_request(core, model, inputs, options, span, sequence, window)))


def _answered(core: Core, request: Request) -> Flow[Result]:
    started = time.perf_counter()
    result: Result
    described = core.models.get((request.model, request.options.version)) or (yield from described_for(core, request))
    try:
        result, attempts, _ = yield from _checked(core, request, described)
    except (InvalidInput, ModelNotFound, Unsupported) as error:
        renewed = yield from renewed_for(core, request, described, error)
        if renewed is None:
            raise error from None
        result, attempts, _ = yield from _checked(core, request, renewed)
    if not request.is_plain:
        _check_answer(request, result)
    result.timings.total, result.timings.attempts = time.perf_counter() - started, attempts
    if log.isEnabledFor(DEBUG):
        size = sum(output.nbytes for output in result.values())
        log.debug("%s version %s: %d bytes of outputs, answered in %.1f ms", request.model, result.version, size, result.timings.wait * 1000)
    return result


def described_for(core: Core, request: Request) -> Flow[Described]:
    """The model, asked about now."""
    return (yield from core.describe(request.model, request.options.version, request.deadline, request.headers, request.span))


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


def _checked(core: Core, request: Request, described: Described) -> Flow[Answered]:
    """The answer to a request that its model takes. Raises where the model does not take it."""
    meta, inputs = described.meta, request.inputs
    layout = layout_of(inputs) if request.is_plain else None
    if layout is not None and (fit := described.fits.get(layout)) is not None:
        arrays: Any = inputs.values()  # what has a layout
        call, queue_timeout_s = Infer(meta.name, "", fit.layout, tuple(arrays)), fit.queue_timeout_s
    else:
        prepared = _taken(request, meta)
        if prepared.rows is not None and prepared.rows > meta.max_batch_size:
            return _in_parts(core, request, described, prepared)
        call, queue_timeout_s = call_for(core, meta, prepared, request)
        # Another request of this layout is the same call with other arrays, where nothing of this one was converted or depends on the time that is left.
        if layout is not None and not call.parameters and all(map(is_, call.arrays, inputs.values())):
            described.remember(layout, Fit(call.layout, queue_timeout_s))
    if request.sequence is not None:
        return _sent_in_sequence(core, request, call, request.sequence, queue_timeout_s)
    return core.attempt(call, request.deadline, idempotent=request.idempotent, headers=request.headers, queue_timeout_s=queue_timeout_s, span=request.span)


def _taken(request: Request, meta: ModelMeta) -> Prepared:
    """The request's inputs, where the model takes requests of its kind. Raises Unsupported or InvalidInput where it does not."""
    if not meta.takes_plain_requests or request.sequence is not None:
        _check_kind(meta, request)
    prepared = prepared_for(request, meta)
    if request.sequence is not None and prepared.rows is not None and prepared.rows > meta.max_batch_size:
        raise InvalidInput([too_many_rows(meta, prepared.rows)])
    return prepared


def _sent_in_sequence(core: Core, request: Request, call: Infer, step: Step, queue_timeout_s: float) -> Flow[Answered]:
    """The answer of the server that has the sequence; it is chosen with the first request."""
    if step.server < 0:
        step.server = yield from core.choose_for_all(call.model, call.version, request.deadline)
    step.left = True
    server, headers, span = step.server, request.headers, request.span
    return (yield from core.attempt(call, request.deadline, idempotent=False, pinned=server, headers=headers, queue_timeout_s=queue_timeout_s, span=span))


def _check_answer(request: Request, result: Result) -> None:
    """Raise ServerError for an answer that is not the one to this request."""
    if request.options.outputs is not None:
        check_outputs(request.model, result.keys(), request.options.outputs)
    if request.options.request_id and result.request_id:
        check_request_id(request.model, result.request_id, request.options.request_id)


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


def _in_parts(core: Core, request: Request, described: Described, prepared: Prepared) -> Flow[Answered]:
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
    return (yield Together([_part(core, request, meta, part) for part in parts], min(request.window, places), request.deadline))  # type: ignore[no-any-return]


def _part(core: Core, request: Request, meta: ModelMeta, part: Prepared) -> Flow[Answered]:
    """The answer to one part; its call is made when its turn has come, since that may say how much time is left."""
    call, queue_timeout_s = call_for(core, meta, part, request)
    answered = yield from core.attempt(
        call, request.deadline, idempotent=request.idempotent, headers=request.headers, queue_timeout_s=queue_timeout_s, span=request.span
    )
    _check_answer(request, answered[0])
    return answered


def _whole(request: Request, meta: ModelMeta, parts: Sequence[Prepared], outcomes: Sequence[Any]) -> Answered:
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
    whole = joined([(part.rows or 0, result) for part, (result, _, _) in zip(parts, outcomes, strict=True)])
    return whole, sum(attempts for _, attempts, _ in outcomes), -1


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
        own = longest_wait_us(request.deadline.left)
        if own < limit_us:
            parameters["timeout"] = limit_us = own
    outputs = None if options.outputs is None else tuple(options.outputs)
    call = Infer.of(meta.name, options.version, prepared.inputs, outputs=outputs, request_id=options.request_id, parameters=parameters)
    return call, limit_us / 1e6 if policy.rejects else 0.0


def new_sequence_id() -> int:
    """A correlation id that nobody else has: 63 random bits, never 0, which means none."""
    return secrets.randbits(63) | 1


def _parameters(request: Request) -> dict[str, Any]:
    """The request's parameters: the caller's, and those of the protocol."""
    options, sequence = request.options, request.sequence
    priority = {} if options.priority is None else {"priority": options.priority}
    return {**(options.parameters or {}), **priority, **(sequence.parameters if sequence is not None else {})}
