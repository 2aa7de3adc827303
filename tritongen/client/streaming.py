"""Requests that have any number of answers, as flows (see `flow`): checked, opened, and opened again where they failed before the first answer."""

from __future__ import annotations

from typing import NamedTuple

from tritongen.client.calls import CallFailed, Infer
from tritongen.client.core import Core
from tritongen.client.failures import Circumstances, too_late
from tritongen.client.flow import Flow
from tritongen.client.inference import call_for, described_for, needs_sequence, prepared_for, renewed_for
from tritongen.client.metadata import ModelMeta
from tritongen.client.options import Request
from tritongen.client.policy import Deadline
from tritongen.client.result import Result
from tritongen.client.splitting import too_many_rows
from tritongen.client.tracing import Span
from tritongen.errors import InvalidInput


class Opened(NamedTuple):
    """A stream that may be opened, for the time `attempts`; the servers that `refused` it had not got its model."""

    call: Infer
    about: Circumstances
    deadline: Deadline
    attempts: int
    span: Span | None
    refused: set[int]


def open_stream(core: Core, request: Request) -> Flow[Opened]:
    """A checked request for a stream of answers."""
    described = core.models.get((request.model, request.options.version)) or (yield from described_for(core, request))
    try:
        call, queue_timeout_s = _streamed(core, request, described.meta)
    except InvalidInput as error:
        renewed = yield from renewed_for(core, request, described, error)
        if renewed is None:
            raise error from None
        call, queue_timeout_s = _streamed(core, request, renewed.meta)
    index = yield from core.choose(request.deadline, call.model, call.version)
    return _opened(call, core.about(index, call, request.headers, queue_timeout_s), request.deadline, 1, request.span, set())


def _streamed(core: Core, request: Request, meta: ModelMeta) -> tuple[Infer, float]:
    """The call that opens a stream, as `call_for` makes it. Raises InvalidInput where the model does not take the request, or not at once."""
    if meta.is_stateful:
        hint = "no client of tritongen streams within a sequence" if meta.decoupled else "send it in a sequence() block"
        raise InvalidInput([needs_sequence(meta, hint)])
    prepared = prepared_for(request, meta)
    if prepared.rows is not None and prepared.rows > meta.max_batch_size:
        raise InvalidInput([too_many_rows(meta, prepared.rows)])
    return call_for(core, meta, prepared, request)


def reopen_stream(core: Core, opened: Opened, failure: CallFailed, *, begun: bool) -> Flow[Opened]:
    """Where to open a stream again that failed. Raises its error where it had answers (`begun`), or may have been executed."""
    yield from core.recover(failure, opened.about, opened.deadline, opened.attempts, idempotent=False, begun=begun, refused=opened.refused)
    index = yield from core.choose(opened.deadline, opened.call.model, opened.call.version, opened.refused)
    about = core.about(index, opened.call, opened.about.headers, opened.about.queue_timeout_s)
    return _opened(opened.call, about, opened.deadline, opened.attempts + 1, opened.span, opened.refused)


def answer_of(opened: Opened, result: Result) -> Result:
    """One of the stream's answers, with what only the stream knows of the time."""
    result.timings.total, result.timings.attempts = result.timings.wait, opened.attempts
    return result


def _opened(call: Infer, about: Circumstances, deadline: Deadline, attempts: int, span: Span | None, refused: set[int]) -> Opened:
    if span is not None:
        span.asks(about.endpoint)
    if deadline.left <= 0:
        raise too_late(about.endpoint, deadline)
    return Opened(call.within(deadline.left), about, deadline, attempts, span, refused)
