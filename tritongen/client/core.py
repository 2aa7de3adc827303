"""The questions that both clients ask, as flows (see `flow`): where to send them, and when to send them again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tritongen.client import calls
from tritongen.client.arguments import check_settings
from tritongen.client.calls import Call, CallFailed
from tritongen.client.endpoint import Access, Endpoint, check_access
from tritongen.client.failures import Circumstances, explain, missing_model
from tritongen.client.flow import Flow, Pause, Send
from tritongen.client.metadata import ModelMeta, model_meta
from tritongen.client.policy import Balancer, Budget, Deadline, pause_before
from tritongen.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    NotTriton,
    TritongenError,
    Unavailable,
)

log = logging.getLogger("tritongen.client")
"""Names, sizes and times; never a tensor's values, never a header."""

_POLL_S = 0.1


@dataclass(frozen=True)
class Settings:
    """What a client is made with, beside addresses and access; the arguments of `Client`."""

    deadline_s: float = 60.0
    retries: int = 3
    idempotent: bool = False
    compression: str | None = None
    window: int = 16


class Attempted(NamedTuple):
    """An answer, and how often it was asked for."""

    answer: Any
    attempts: int


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
        self.models: dict[tuple[str, str], ModelMeta] = {}

    def deadline(self, seconds: float | None) -> Deadline:
        """The deadline of a call that starts now. Raises InputError (TG067)."""
        return Deadline(self.settings.deadline_s if seconds is None else seconds)

    def ask(self, call: Call, deadline: Deadline, *, model: str = "", version: str = "") -> Flow[Any]:
        """The answer to a question, which may be asked again. Raises InferenceError or InvalidInput."""
        return (
            yield from self.attempt(
                call,
                deadline,
                Circumstances(self.endpoints[0], 0, False, model, version, isinstance(call, calls.LoadModel | calls.UnloadModel)),
                idempotent=True,
            )
        ).answer

    def holds(self, call: Call, deadline: Deadline) -> Flow[bool]:
        """The answer to a question of yes or no, asked once: False where nobody answers."""
        index = self.balancer.pick()
        try:
            return bool((yield Send(call, index, max(deadline.left, 0.0))))
        except CallFailed as failure:
            if failure.word == "CLOSED":
                raise (yield from explain(failure, self.about(index), deadline)) from failure
            return False

    def wait_ready(self, model: str, version: str, deadline: Deadline) -> Flow[None]:
        """Ends when the model (or the server with all its models) is ready. Raises DeadlineExceeded with the server's reason."""
        call: Call = calls.ModelReady(model, version) if model else calls.ServerReady()
        while not (yield from self.holds(call, deadline)):
            if deadline.left <= _POLL_S:
                what = f"model '{model}'" if model else "the server"
                index = self.balancer.pick()
                try:
                    listed = yield Send(calls.RepositoryIndex(), index, _POLL_S)
                except CallFailed:
                    listed = ()
                reason = missing_model(model, version, listed) if model and listed else None
                why = f": {reason}" if reason else "" if listed else f": {self.endpoints[index].url} does not answer"
                raise DeadlineExceeded(f"{what} is not ready after {deadline.seconds:g} s{why}", hint=reason.hint if reason else "")
            yield Pause(_POLL_S)

    def describe(self, model: str, version: str, deadline: Deadline) -> Flow[ModelMeta]:
        """What the server says about a model, asked now."""
        metadata = yield from self.ask(calls.ModelMetadata(model, version), deadline, model=model, version=version)
        config = yield from self.ask(calls.ModelConfiguration(model, version), deadline, model=model, version=version)
        meta = model_meta(metadata, config)
        self.models[model, version] = meta
        return meta

    def forget(self, model: str) -> None:
        """Ask about the model again before its next request."""
        for known in [key for key in self.models if key[0] == model]:
            self.models.pop(known, None)

    def about(self, index: int) -> Circumstances:
        """What is known of the server with this index."""
        return Circumstances(self.endpoints[index], index, self.balancer.is_triton(index))

    def attempt(self, call: Call, deadline: Deadline, about: Circumstances, *, idempotent: bool, pinned: int = -1) -> Flow[Attempted]:
        """The answer to a call, tried again while that is safe, within the deadline and the budget."""
        attempts = 0
        while True:
            attempts += 1
            index = pinned if pinned >= 0 else self.balancer.pick()
            before = deadline.elapsed
            try:
                answer = yield Send(call, index, max(deadline.left, 0.0))
            except CallFailed as failure:
                here = replace(about, endpoint=self.endpoints[index], index=index, known=self.balancer.is_triton(index), waited_s=deadline.elapsed - before)
                error = yield from explain(failure, here, deadline)
                if isinstance(error, ConnectionFailed):
                    self.balancer.lost(index)
                elif failure.own:
                    self.balancer.answered(index)
                pause = pause_before(attempts)
                if attempts > self.settings.retries or not _may_retry(error, idempotent) or pause >= deadline.left or not self._budget.take():
                    raise error from failure
                log.info("%s: attempt %d failed (%s), again in %.0f ms", about.model or self.endpoints[index].url, attempts, type(error).__name__, pause * 1000)
                yield Pause(pause)
            else:
                self.balancer.answered(index)
                self._budget.earn()
                return Attempted(answer, attempts)


def _may_retry(error: TritongenError, idempotent: bool) -> bool:
    """Whether the request may be sent again: it was certainly not executed, or may be executed twice."""
    if isinstance(error, NotTriton):
        return False
    if isinstance(error, ConnectionFailed):
        return idempotent or not error.sent
    return isinstance(error, Unavailable)
