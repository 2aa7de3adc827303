"""Requests, as flows (see `flow`): checked, cut where they are too long, sent, and put together again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tritongen.client.arguments import check_options
from tritongen.client.calls import Infer, Reply
from tritongen.client.core import Core, log
from tritongen.client.endpoint import checked_headers
from tritongen.client.failures import Circumstances
from tritongen.client.flow import Flow, Together
from tritongen.client.metadata import ModelMeta
from tritongen.client.policy import Deadline
from tritongen.client.requests import Cast, Prepared, check_size, prepare
from tritongen.client.result import Result, Timings, check_outputs
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InferenceError, InvalidInput, ModelNotFound, PartialFailure, TritongenError, Unsupported
from tritongen.samples import Array


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
    """A stream that may be opened."""

    call: Infer
    about: Circumstances
    deadline: Deadline


def infer(
    core: Core,
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
    options = check_options(model, options)
    deadline = core.deadline(options.deadline_s)
    meta = core.models.get((model, options.version))
    fresh = meta is None
    meta = meta or (yield from core.describe(model, options.version, deadline))
    try:
        reply, attempts = yield from _checked(core, meta, inputs, options, carried, deadline, sequence, pinned)
    except (InvalidInput, ModelNotFound):
        if fresh:
            raise
        # The model may have been replaced since it was described.
        renewed = yield from core.describe(model, options.version, deadline)
        if renewed == meta:
            raise
        reply, attempts = yield from _checked(core, renewed, inputs, options, carried, deadline, sequence, pinned)
    return _result(reply, time.perf_counter() - started, attempts)


def open_stream(core: Core, model: str, inputs: Mapping[str, object], options: Options, carried: Mapping[str, str]) -> Flow[Opened]:
    """A checked request for a stream of answers."""
    options = check_options(model, options)
    deadline = core.deadline(options.deadline_s)
    meta = core.models.get((model, options.version)) or (yield from core.describe(model, options.version, deadline))
    prepared = prepare(meta, inputs, outputs=options.outputs, cast=options.cast, add_batch_axis=options.add_batch_axis)
    if prepared.rows is not None and prepared.rows > meta.max_batch_size:
        raise InvalidInput([_too_many_rows(meta, prepared.rows)])
    call, queue_timeout_s = _call(meta, prepared, options, carried, deadline, None)
    index = core.balancer.pick()
    return Opened(call, replace(core.about(index), model=model, version=options.version, queue_timeout_s=queue_timeout_s), deadline)


def _checked(
    core: Core,
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
        return (yield from _exchange(core, meta, prepared, options, carried, deadline, sequence, pinned))
    if sequence is not None:
        raise InvalidInput([_too_many_rows(meta, prepared.rows)])
    parts = [_part(prepared, start, min(start + meta.max_batch_size, prepared.rows)) for start in range(0, prepared.rows, meta.max_batch_size)]
    flows = [_exchange(core, meta, part, options, carried, deadline, None, -1) for part in parts]
    outcomes = yield Together(flows, core.settings.window)
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
    core: Core,
    meta: ModelMeta,
    prepared: Prepared,
    options: Options,
    carried: Mapping[str, str],
    deadline: Deadline,
    sequence: Mapping[str, Any] | None,
    pinned: int,
) -> Flow[tuple[Reply, int]]:
    if core.endpoints[0].protocol == "grpc":
        check_size(prepared.nbytes, meta.name)
    call, queue_timeout_s = _call(meta, prepared, options, carried, deadline, sequence)
    idempotent = core.settings.idempotent if options.idempotent is None else options.idempotent
    about = Circumstances(core.endpoints[0], 0, False, meta.name, options.version, queue_timeout_s=queue_timeout_s)
    found = yield from core.attempt(call, deadline, about, idempotent=idempotent and sequence is None, pinned=pinned)
    check_outputs(meta.name, found.answer.outputs, call.outputs)
    log.debug("%s version %s: %d bytes sent, answered in %.1f ms", meta.name, found.answer.version, prepared.nbytes, found.answer.wait_s * 1000)
    return found.answer, found.attempts


def _call(
    meta: ModelMeta, prepared: Prepared, options: Options, carried: Mapping[str, str], deadline: Deadline, sequence: Mapping[str, Any] | None
) -> tuple[Infer, float]:
    """The call for a checked request, and how long it may wait in the model's queue, in seconds (0: no limit)."""
    parameters = _parameters(options, sequence)
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


def new_sequence_id() -> int:
    """A correlation id that nobody else has: 63 random bits, never 0, which means none."""
    return secrets.randbits(63) | 1


def _parameters(options: Options, sequence: Mapping[str, Any] | None) -> dict[str, Any]:
    """The request's parameters: the caller's, and those of the protocol."""
    priority = {} if options.priority is None else {"priority": options.priority}
    return {**(options.parameters or {}), **priority, **(sequence or {})}


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
