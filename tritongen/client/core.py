"""The questions that both clients ask, as flows (see `flow`): where to send them, and when to send them again."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tritongen.client import calls
from tritongen.client.arguments import check_model, check_settings
from tritongen.client.calls import Call, CallFailed, Status
from tritongen.client.endpoint import Access, Endpoint, check_access
from tritongen.client.failures import Circumstances, explain, too_late
from tritongen.client.flow import NO_HEADERS, Flow, Headers, Pause, Send
from tritongen.client.metadata import ModelMeta, model_meta
from tritongen.client.policy import PROBE_S, Balancer, Budget, Deadline, pause_before
from tritongen.client.requests import Fit, Layout
from tritongen.client.tracing import Span
from tritongen.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    InputError,
    InvalidInput,
    ModelNotFound,
    ModelNotReady,
    NotTriton,
    ServerError,
    TritongenError,
    Unavailable,
)

log = logging.getLogger("tritongen.client")
"""Names, sizes and times; never a tensor's values, never a header."""
_MOST_LAYOUTS = 1024


@dataclass(frozen=True)
class Settings:
    """What a client is made with, beside addresses and access; the arguments of `Client`."""

    deadline_s: float = 60.0
    retries: int = 3
    idempotent: bool = False
    compression: str | None = None
    window: int = 16


class Described(NamedTuple):
    """What a server says about a model.

    Attributes:
        meta: the description.
        at: when it was given, on `time.monotonic`.
        fits: layouts of requests that fitted it: another of the same layout needs no look.
    """

    meta: ModelMeta
    at: float
    fits: dict[Layout, Fit]

    def remember(self, layout: Layout, fit: Fit) -> None:
        """Keep what is known of a layout; of very many, the latest."""
        if len(self.fits) >= _MOST_LAYOUTS:
            self.fits.clear()
        self.fits[layout] = fit


Answered = tuple[Any, int, int]
"""The answer to a call, how often it was sent, and the index of the server that gave it (of a request that was cut: -1)."""


class Core:
    """The state that a client's requests share: what is known of the servers and of their models."""

    def __init__(self, endpoints: Sequence[Endpoint], access: Access, settings: Settings) -> None:
        check_settings(settings)
        check_access(endpoints, access)
        self.endpoints = tuple(endpoints)
        self.access = access
        self.settings = settings
        self.balancer = Balancer(len(self.endpoints))
        self._budget = Budget()
        self.models: dict[tuple[str, str], Described] = {}

    def deadline(self, seconds: float | None) -> Deadline:
        """The deadline of a call that starts now. Raises InvalidInput (TG067)."""
        if seconds is None:
            return Deadline(self.settings.deadline_s)
        try:
            return Deadline(seconds)
        except InputError as error:
            raise InvalidInput(error.diagnostics) from None

    def window_beside(self, others: int) -> int:
        """How many parts of a request may be under way at once, where up to so many requests are: together no more than the client's window."""
        return max(self.settings.window // others, 1)

    def ask(self, call: Call, deadline: Deadline) -> Flow[Any]:
        """The answer to a question, which may be asked again. Raises InferenceError or InvalidInput."""
        answer, _, _ = yield from self.attempt(call, deadline, idempotent=True)
        return answer

    def describe(self, model: str, version: str, deadline: Deadline, headers: Headers = NO_HEADERS, span: Span | None = None) -> Flow[Described]:
        """What a server says about a model, asked now. `span` is told which server is asked."""
        model, version = check_model(model, version)
        metadata, _, server = yield from self.attempt(calls.ModelMetadata(model, version), deadline, idempotent=True, headers=headers, span=span)
        of_it = calls.ModelConfiguration(model, version)
        config, _, _ = yield from self.attempt(of_it, deadline, idempotent=True, pinned=server, headers=headers, span=span)
        try:
            meta = model_meta(metadata, config)
        except ValueError as error:
            message = f"{self.endpoints[server].url}: what it says about model '{model}' cannot be read: {error}"
            raise ServerError(message, hint="is this a Triton, or a server of the same protocol?") from error
        described = self.models[model, version] = Described(meta, time.monotonic(), {})
        return described

    def forget(self, model: str) -> None:
        """Ask about the model again before its next request."""
        for known in [key for key in list(self.models) if key[0] == model]:  # threads add to them meanwhile
            self.models.pop(known, None)

    def about(self, index: int, call: Call, headers: Headers = NO_HEADERS, queue_timeout_s: float = 0.0) -> Circumstances:
        """What is known of a call to the server with this index."""
        return Circumstances(
            self.endpoints[index],
            index,
            self.balancer.is_triton(index),
            *_model_of(call),
            is_control=isinstance(call, calls.LoadModel | calls.UnloadModel),
            headers=headers,
            general=self.access.headers,
            queue_timeout_s=queue_timeout_s,
        )

    def choose(self, deadline: Deadline, model: str = "", version: str = "", refused: Collection[int] = ()) -> Flow[int]:
        """The server to ask next, about a model. Among several, one that answered the last time, or that answers now: one that is gone costs a probe only.

        `refused`: the servers that had not got it for this request.
        """
        count = len(self.endpoints)
        if count == 1:
            return 0
        tried = set(refused)
        while len(tried) < count:
            index = self.balancer.pick(model, version, tried)
            left = deadline.left
            if self.balancer.trusted[index] or left <= 0:
                return index
            limit = min(left / (count - len(tried) + 1), PROBE_S)
            try:
                yield Send(calls.ServerLive(), index, limit, NO_HEADERS)
                is_out = not (yield from self.is_triton(index, limit))
            except CallFailed as failure:
                is_out = _is_out(failure)
            if not is_out:
                self.balancer.answered(index)
                return index
            self.balancer.lost(index)
            tried.add(index)
        return self.balancer.pick(model, version, refused)

    def is_triton(self, index: int, limit_s: float) -> Flow[bool]:
        """Whether what said yes to a question about health describes itself as a Triton does; asked until it has done so once.

        Triton's page of metrics says yes to everything over HTTP, without a body, as its yes is.
        """
        if self.balancer.is_triton(index) or self.endpoints[index].protocol == "grpc":
            return True
        try:
            yield Send(calls.ServerMetadata(), index, limit_s, NO_HEADERS)
        except CallFailed as failure:
            return not _is_out(failure)
        return True

    def choose_for_all(self, model: str, version: str, deadline: Deadline) -> Flow[int]:
        """The server that takes all requests of a sequence. Among several, one that has the model ready now."""
        refused: set[int] = set()
        while True:
            index = yield from self.choose(deadline, model, version, refused)
            left, others = deadline.left, len(self.endpoints) - len(refused) - 1
            if others <= 0 or left <= 0:
                return index
            try:
                if (yield Send(calls.ModelReady(model, version), index, min(left / (others + 2), PROBE_S), NO_HEADERS)):
                    return index
            except CallFailed as failure:
                if _is_out(failure):
                    self.balancer.lost(index)
            refused.add(index)

    def attempt(
        self,
        call: Call,
        deadline: Deadline,
        *,
        idempotent: bool,
        pinned: int = -1,
        headers: Headers = NO_HEADERS,
        queue_timeout_s: float = 0.0,
        span: Span | None = None,
    ) -> Flow[Answered]:
        """The answer to a call, sent again while that is safe, within the deadline and the budget.

        `pinned`: the server to ask, -1 for any. `queue_timeout_s`: seconds after which the model's queue gives the request up; 0 where it never does.
        `span`: is told which server is asked.
        """
        attempts = 0
        refused: set[int] = set()
        while True:
            attempts += 1
            index = pinned if pinned >= 0 else 0 if len(self.endpoints) == 1 else (yield from self.choose(deadline, *_model_of(call), refused))
            if span is not None:
                span.asks(self.endpoints[index])
            left = deadline.end - time.monotonic()  # its `left`, without a call: every request passes here
            if left <= 0:
                raise too_late(self.endpoints[index], deadline)
            if attempts > 1 and isinstance(call, calls.Infer):
                call = call.within(left)
            try:
                answer = yield Send(call, index, left, headers)
            except CallFailed as failure:
                about = replace(self.about(index, call, headers, queue_timeout_s), waited_s=left - deadline.left_at(failure.at))
                yield from self.recover(failure, about, deadline, attempts, idempotent=idempotent, pinned=pinned, refused=refused)
            else:
                if not (self.balancer.trusted[index] and self._budget.is_full):  # nearly always neither has anything to learn
                    self.answered(index)
                return answer, attempts, index

    def answered(self, index: int) -> None:
        """A server gave an answer, which pays for retries to come."""
        self.balancer.answered(index)
        self._budget.earn()

    def recover(
        self,
        failure: CallFailed,
        about: Circumstances,
        deadline: Deadline,
        attempts: int,
        *,
        idempotent: bool,
        refused: set[int],
        pinned: int = -1,
        begun: bool = False,
    ) -> Flow[None]:
        """Ends when what failed for the time `attempts` may be sent again, after a pause. Raises its error where it may not be.

        `begun`: a part of its answer was there already, and nobody gets it twice. `refused`: the servers that had not got its model; this one is added.
        """
        error = yield from explain(failure, about, deadline)
        self._note(about, failure, error, refused)
        # Another server may take what never reached this one, or its model, at once and at no cost.
        untried = pinned < 0 and about.index in refused and len(refused) < len(self.endpoints)
        elsewhere = untried or (pinned < 0 and len(self.endpoints) > 1 and _never_arrived(error))
        pause = 0.0 if elsewhere else pause_before(attempts)
        is_left = untried or attempts <= self.settings.retries
        may = not begun and is_left and (elsewhere or _may_retry(error, idempotent, about.is_control)) and pause < deadline.left
        if not may or not (elsewhere or self._budget.take()):
            raise error from failure
        what = about.model or about.endpoint.url
        log.info("%s: attempt %d failed (%s), again in %.0f ms", what, attempts, type(error).__name__, pause * 1000)
        yield Pause(pause)

    def _note(self, about: Circumstances, failure: CallFailed, error: TritongenError, refused: set[int]) -> None:
        if isinstance(error, ConnectionFailed):
            self.balancer.lost(about.index)
        elif isinstance(error, DeadlineExceeded) or type(error) is Unavailable:  # nobody could say whether the model is ready
            self.balancer.doubt(about.index)
        elif failure.own:
            self.balancer.answered(about.index)
        if isinstance(error, ModelNotFound | ModelNotReady) and not about.is_control:
            self.balancer.lacks(about.index, about.model, about.version)
            refused.add(about.index)


def _model_of(call: Call) -> tuple[str, str]:
    """The model and version that a call is about; empty for the server as a whole."""
    return getattr(call, "model", ""), getattr(call, "version", "")


def _is_out(failure: CallFailed) -> bool:
    """Whether a question about health that failed in this way found no Triton: nobody, or only what stands in front of one. Who denies access is there."""
    return failure.status in (Status.CONNECTION, Status.DEADLINE, Status.STRANGER) or not (failure.own or failure.status is Status.DENIED)


def _never_arrived(error: TritongenError) -> bool:
    return isinstance(error, ConnectionFailed) and not isinstance(error, NotTriton) and not error.sent


def _may_retry(error: TritongenError, idempotent: bool, is_control: bool) -> bool:
    """Whether the request may be sent again: it was certainly not executed, or may be executed twice.

    A model that is not ready executes nothing. UNAVAILABLE of one that is ready is nearly always its full queue, but a model of one's own, or a proxy, may say
    the same after the work was done.
    """
    if isinstance(error, NotTriton):
        return False
    if isinstance(error, ConnectionFailed):
        return not error.sent or idempotent
    return not is_control and isinstance(error, Unavailable) and (idempotent or isinstance(error, ModelNotReady))
