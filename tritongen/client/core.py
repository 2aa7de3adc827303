"""What both clients do, as flows (see `flow`): everything but the waiting."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tritongen.client import calls
from tritongen.client.calls import Call, CallFailed, Infer, Reply
from tritongen.client.endpoint import Access, Endpoint, checked_headers
from tritongen.client.failures import Circumstances, explain, missing_model
from tritongen.client.flow import Flow, Pause, Send, Together
from tritongen.client.metadata import ModelMeta, model_meta
from tritongen.client.policy import Balancer, Budget, Deadline, pause_before
from tritongen.client.requests import Cast, Prepared, check_size, prepare
from tritongen.client.result import Result, Timings
from tritongen.diagnostics import Diagnostic
from tritongen.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    InferenceError,
    InvalidInput,
    ModelNotFound,
    NotTriton,
    PartialFailure,
    TritongenError,
    Unavailable,
    Unsupported,
)
from tritongen.samples import Array

log = logging.getLogger("tritongen.client")
"""Names, sizes and times; never a tensor's values, never a header."""

_POLL_S = 0.1
_RESERVED = ("sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output", "headers")


@dataclass(frozen=True)
class Settings:
    """What a client is made with, beside addresses and access; the arguments of `Client`."""

    deadline_s: float = 60.0
    retries: int = 3
    idempotent: bool = False
    compression: str | None = None
    window: int = 16


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


class Attempted(NamedTuple):
    """An answer, and how often it was asked for."""

    answer: Any
    attempts: int


class Opened(NamedTuple):
    """A stream that may be opened."""

    call: Infer
    about: Circumstances
    deadline: Deadline


class Core:
    """The state that a client's requests share: what is known of the servers and of their models."""

    def __init__(self, endpoints: Sequence[Endpoint], access: Access, settings: Settings) -> None:
        self.endpoints = tuple(endpoints)
        self.access = access
        self.settings = settings
        self.balancer = Balancer(len(self.endpoints))
        self._budget = Budget()
        self._models: dict[tuple[str, str], ModelMeta] = {}

    def deadline(self, seconds: float | None) -> Deadline:
        """The deadline of a call that starts now. Raises InputError (TG067)."""
        return Deadline(self.settings.deadline_s if seconds is None else seconds)

    # Questions

    def ask(self, call: Call, deadline: Deadline, *, model: str = "", version: str = "") -> Flow[Any]:
        """The answer to a question, which may be asked again. Raises InferenceError or InvalidInput."""
        return (
            yield from self._attempt(
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
                raise (yield from explain(failure, self._about(index), deadline)) from failure
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
        self._models[model, version] = meta
        return meta

    def forget(self, model: str) -> None:
        """Ask about the model again before its next request."""
        for known in [key for key in self._models if key[0] == model]:
            self._models.pop(known, None)

    # Requests

    def infer(
        self,
        model: str,
        inputs: Mapping[str, object],
        options: Options,
        carried: Mapping[str, str],
        *,
        sequence: Mapping[str, Any] | None = None,
        pinned: int = -1,
    ) -> Flow[Result]:
        """One request; cut and put together again where it has more rows than the model takes.

        `carried` are headers that go along; `sequence` the parameters of a request that belongs to one, and `pinned` the server that has the sequence.
        """
        started = time.perf_counter()
        deadline = self.deadline(options.deadline_s)
        meta = self._models.get((model, options.version))
        fresh = meta is None
        meta = meta or (yield from self.describe(model, options.version, deadline))
        try:
            reply, attempts = yield from self._checked(meta, inputs, options, carried, deadline, sequence, pinned)
        except (InvalidInput, ModelNotFound):
            if fresh:
                raise
            # The model may have been replaced since it was described.
            renewed = yield from self.describe(model, options.version, deadline)
            if renewed == meta:
                raise
            reply, attempts = yield from self._checked(renewed, inputs, options, carried, deadline, sequence, pinned)
        return _result(reply, time.perf_counter() - started, attempts)

    def open(self, model: str, inputs: Mapping[str, object], options: Options, carried: Mapping[str, str]) -> Flow[Opened]:
        """A checked request for a stream of answers."""
        deadline = self.deadline(options.deadline_s)
        meta = self._models.get((model, options.version)) or (yield from self.describe(model, options.version, deadline))
        prepared = prepare(meta, inputs, outputs=options.outputs, cast=options.cast, add_batch_axis=options.add_batch_axis)
        if prepared.rows is not None and prepared.rows > meta.max_batch_size:
            raise InvalidInput([_too_many_rows(meta, prepared.rows)])
        call, queue_timeout_s = self._call(meta, prepared, options, carried, deadline, None)
        index = self.balancer.pick()
        return Opened(call, replace(self._about(index), model=model, version=options.version, queue_timeout_s=queue_timeout_s), deadline)

    def _checked(
        self,
        meta: ModelMeta,
        inputs: Mapping[str, object],
        options: Options,
        carried: Mapping[str, str],
        deadline: Deadline,
        sequence: Mapping[str, Any] | None,
        pinned: int,
    ) -> Flow[tuple[Reply | list[Reply], int]]:
        if meta.decoupled:
            raise Unsupported(f"model '{meta.name}' is decoupled: it answers with any number of responses", hint="use stream(), over gRPC")
        prepared = prepare(meta, inputs, outputs=options.outputs, cast=options.cast, add_batch_axis=options.add_batch_axis)
        if prepared.rows is None or prepared.rows <= meta.max_batch_size:
            return (yield from self._exchange(meta, prepared, options, carried, deadline, sequence, pinned))
        if sequence is not None:
            raise InvalidInput([_too_many_rows(meta, prepared.rows)])
        parts = [_part(prepared, start, min(start + meta.max_batch_size, prepared.rows)) for start in range(0, prepared.rows, meta.max_batch_size)]
        flows = [self._exchange(meta, part, options, carried, deadline, None, -1) for part in parts]
        outcomes = yield Together(flows, self.settings.window)
        failures = {}
        start = 0
        for part, outcome in zip(parts, outcomes, strict=True):
            rows = part.rows or 0
            if isinstance(outcome, TritongenError):
                failures[start, start + rows] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
            start += rows
        if failures:
            raise _partial(meta, failures, len(parts))
        return [reply for reply, _ in outcomes], sum(attempts for _, attempts in outcomes)

    def _exchange(
        self,
        meta: ModelMeta,
        prepared: Prepared,
        options: Options,
        carried: Mapping[str, str],
        deadline: Deadline,
        sequence: Mapping[str, Any] | None,
        pinned: int,
    ) -> Flow[tuple[Reply, int]]:
        if self.endpoints[0].protocol == "grpc":
            check_size(prepared.nbytes, meta.name)
        call, queue_timeout_s = self._call(meta, prepared, options, carried, deadline, sequence)
        idempotent = self.settings.idempotent if options.idempotent is None else options.idempotent
        about = Circumstances(self.endpoints[0], 0, False, meta.name, options.version, queue_timeout_s=queue_timeout_s)
        found = yield from self._attempt(call, deadline, about, idempotent=idempotent and sequence is None, pinned=pinned)
        log.debug("%s version %s: %d bytes sent, answered in %.1f ms", meta.name, found.answer.version, prepared.nbytes, found.answer.wait_s * 1000)
        return found.answer, found.attempts

    def _call(
        self, meta: ModelMeta, prepared: Prepared, options: Options, carried: Mapping[str, str], deadline: Deadline, sequence: Mapping[str, Any] | None
    ) -> tuple[Infer, float]:
        """The call for a checked request, and how long it may wait in the model's queue, in seconds (0: no limit)."""
        parameters = _parameters(meta, options, sequence)
        policy = meta.queue_policies.get(options.priority or 0) or meta.queue_policies[0]
        limit_us = int(policy.get("default_timeout_microseconds") or 0)
        rejects = policy.get("timeout_action", "REJECT") in ("REJECT", 0)
        if limit_us and policy.get("allow_timeout_override"):
            # Triton takes a request's own limit only where it is shorter than the queue's (facts of core/scheduler_utils).
            own = max(int(deadline.left * 1e6), 1)
            if own < limit_us:
                parameters["timeout"] = limit_us = own
        inputs = tuple((meta.inputs_by_name[name], array) for name, array in prepared.arrays.items())
        headers = checked_headers({**(options.headers or {}), **carried}) if options.headers or carried else {}
        outputs = None if options.outputs is None else tuple(options.outputs)
        call = Infer(meta.name, options.version, inputs, outputs, options.request_id, parameters, headers)
        return call, limit_us / 1e6 if rejects else 0.0

    def _about(self, index: int) -> Circumstances:
        return Circumstances(self.endpoints[index], index, self.balancer.is_triton(index))

    def _attempt(self, call: Call, deadline: Deadline, about: Circumstances, *, idempotent: bool, pinned: int = -1) -> Flow[Attempted]:
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


def new_sequence_id() -> int:
    """A correlation id that nobody else has: 63 random bits, never 0, which means none."""
    return secrets.randbits(63) | 1


def _may_retry(error: TritongenError, idempotent: bool) -> bool:
    """Whether the request may be sent again: it was certainly not executed, or may be executed twice."""
    if isinstance(error, NotTriton):
        return False
    if isinstance(error, ConnectionFailed):
        return idempotent or not error.sent
    return isinstance(error, Unavailable)


def _parameters(meta: ModelMeta, options: Options, sequence: Mapping[str, Any] | None) -> dict[str, Any]:
    """The request's parameters. Raises InvalidInput (TG061) for names that the protocol keeps for itself, and values that it cannot carry."""
    given = dict(options.parameters or {})
    problems = [f"the parameter '{name}' belongs to the protocol" for name in given if name in _RESERVED or name.startswith("triton_")]
    problems += [
        f"the parameter '{name}' is {value!r:.40}"
        for name, value in given.items()
        if not isinstance(value, str | int | float | bool) or (isinstance(value, int) and not -(2**63) <= value < 2**63)
    ]
    if options.priority is not None and not 0 <= options.priority < 2**63:
        problems.append(f"the priority {options.priority} is no level of a queue")
    if problems:
        hint = "priority= and sequence() set their own; a value is a text, true/false, or a number (an integer of 64 bits)"
        raise InvalidInput([Diagnostic("TG061", problem, hint=hint, model=meta.name) for problem in problems])
    if options.priority is not None:
        given["priority"] = options.priority
    return {**given, **(sequence or {})}


def _too_many_rows(meta: ModelMeta, rows: int) -> Diagnostic:
    message = f"the request has {rows} rows, and the model takes {meta.max_batch_size} at most"
    return Diagnostic("TG061", message, consequence="Triton refuses the request", hint="only infer() cuts a request", model=meta.name)


def _part(prepared: Prepared, start: int, end: int) -> Prepared:
    share = prepared.nbytes * (end - start) // (prepared.rows or 1)
    return Prepared({name: array[start:end] for name, array in prepared.arrays.items()}, end - start, share)


def _partial(meta: ModelMeta, failures: dict[tuple[int, int], TritongenError], parts: int) -> TritongenError:
    """The one error of a request of which parts failed: their own where they all failed alike."""
    first = next(iter(failures.values()))
    if len(failures) == parts and len({type(error) for error in failures.values()}) == 1:
        return first
    rows = ", ".join(f"{start} to {end - 1}" for start, end in failures)
    message = f"model '{meta.name}': {len(failures)} of {parts} parts failed, with the rows {rows}; the first of them: {first}"
    return PartialFailure(message, failures=failures, hint="the parts that are not named were executed")


def _result(reply: Reply | list[Reply], total_s: float, attempts: int) -> Result:
    if isinstance(reply, Reply):
        timings = Timings(total_s, reply.serialise_s, reply.wait_s, reply.decode_s, attempts)
        return Result(
            reply.outputs,
            model=reply.model,
            version=reply.version,
            request_id=reply.request_id,
            parameters=reply.parameters,
            timings=timings,
            raw=reply.raw,
        )
    first = reply[0]
    outputs = {name: _joined(name, [part.outputs[name] for part in reply]) for name in first.outputs}
    timings = Timings(
        total_s,
        sum(part.serialise_s for part in reply),
        max(part.wait_s for part in reply),
        sum(part.decode_s for part in reply),
        attempts,
    )
    return Result(
        outputs,
        model=first.model,
        version=first.version,
        request_id=first.request_id,
        parameters=first.parameters,
        timings=timings,
        raw=[part.raw for part in reply],
    )


def result_of(reply: Reply) -> Result:
    """One response of a stream."""
    return _result(reply, reply.wait_s, 1)


def _joined(name: str, parts: Sequence[Array]) -> Array:
    try:
        return np.concatenate(parts)
    except ValueError as error:
        raise InferenceError(f"output '{name}' of a request that was split has parts of different shapes, which make no one array: {error}") from error
