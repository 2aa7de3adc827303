"""The sentence about what limits a model under load, and what to try: chosen by what was measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tritongen.load.serverside import ServerSide
from tritongen.load.verdict import LATE_US

_MANY = 0.01
"""Of the requests that were due: fewer that failed change no mean."""
_FULL = 0.8
_ALONE = 1.5
_SENDER = 0.5
_FEW = 0.5
"""Of a mean: where half of the requests took less in all, it is not that of every request, and no size or distance explains it."""
_LARGE_BYTES = 100_000
"""Above this, copying and sending a request takes a part of a millisecond: 100 kB are 0.8 ms at 1 Gbit/s."""


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model and its requests before the run.

    Attributes:
        max_batch: Triton's `max_batch_size`; 0 where the model does not batch.
        request_bytes: mean size of the input tensors of a request.
    """

    max_batch: int = 0
    request_bytes: float = 0.0


@dataclass(frozen=True)
class Measured:
    """What was measured of a model.

    Attributes:
        split: mean milliseconds of a request by where they went, as in `ModelResult.split`; empty where the server did not say.
        server: what the server counted; None where it did not say.
        facts: what was known before; None where it is not.
        protocol: `http` or `grpc`.
        late_ms: how late half of the requests were sent, or later. A mean may be that of a single hiccup.
        due: requests that were due.
        counts: those that were sent, by outcome.
        busy: a sender had no core left.
        median_ms: what half of the answered requests took, or less.
    """

    split: Mapping[str, float]
    server: ServerSide | None
    facts: ModelFacts | None
    protocol: str
    late_ms: float
    due: int
    counts: Mapping[str, int]
    busy: bool = False
    median_ms: float = math.inf


_FAILED = {
    "rejected": "the model's queue is full, they waited too long in it, or the server was ending: its words say which",
    "deadline": "no answer came in time: the server is too slow at this rate, or stands still",
    "connection": "the connection could not be made, or broke: look at the server's log",
    "never sent": "too many were under way without an answer, this machine was too slow, or a sender died",
    "gone": "the model was unloaded during the run, or the server was ending",
    "invalid": "the model does not take them: what is sent must be changed",
    "hollow": "what answers is not Triton, or names no output",
    "failed": "the server's log says more",
}
"""What each kind of failure means; what was under way when a run was broken off is none."""


def what_limits(found: Measured) -> str:
    """What failed, where that is much; a sentence with the figures, and one with what to try for the largest of them."""
    said = _failures(found)
    if not found.counts.get("ok"):
        return " ".join([*said, "Nothing was answered well, so that there is no time to be split."])
    if not found.split:
        return " ".join([*said, "The server did not say where its time went."])
    parts, words = _where_time_went(found.split)
    largest = max(parts, key=lambda name: parts[name])
    advice = {"queue": _queue(found), "compute": _compute(found), "outside": _outside(found, parts.get("outside", 0.0))}
    return " ".join([*said, words, advice[largest]])


def _where_time_went(split: Mapping[str, float]) -> tuple[Mapping[str, float], str]:
    """Milliseconds in the queue, in the model and, where that is known, outside of the server; and a sentence with them."""
    parts = {"queue": split["queue"], "compute": split["compute_input"] + split["compute_infer"] + split["compute_output"]}
    spent = f"{parts['queue']:.2f} are spent in the queue, {parts['compute']:.2f} in the model"
    if "outside" not in split:
        others = "which is more than the answers here took: the server counts requests that were given up, or that others sent, too"
        return parts, f"Of {sum(parts.values()):.2f} ms on average at the server, {spent}, {others}."
    parts["outside"] = split["outside"]
    return parts, f"Of {sum(parts.values()):.2f} ms on average, {spent}, {parts['outside']:.2f} in network and client."


def _failures(found: Measured) -> list[str]:
    """A sentence about the most frequent kinds of failure, where many requests failed: the time of the others matters less."""
    missed = found.due - sum(found.counts.values())
    kinds = {outcome: count for outcome, count in {**found.counts, "never sent": missed}.items() if outcome in _FAILED and count}
    if sum(kinds.values()) <= _MANY * found.due:
        return []
    said = [f"{count} {outcome} ({_FAILED[outcome]})" for outcome, count in sorted(kinds.items(), key=lambda kind: -kind[1])]
    return [f"{sum(kinds.values())} of {found.due} requests got no good answer: {'; '.join(said)}."]


def _batch(found: Measured) -> tuple[float, int, bool] | None:
    """The average batch, the largest, and whether each request ran alone; None where the model does not batch, or it is not known."""
    if found.server is None or found.facts is None or found.facts.max_batch < 2 or not found.server.executions:
        return None
    return found.server.average_batch, found.facts.max_batch, found.server.requests_together < _ALONE


def _queue(found: Measured) -> str:
    batch = _batch(found)
    if batch is not None and batch[0] >= _FULL * batch[1]:
        return f"Batches are full ({batch[0]:.1f} of {batch[1]} rows): more instances, or a larger batch, let fewer requests wait."
    if batch is not None and batch[2]:
        return (
            "Each request runs alone: where they wait for a free instance, let them share batches (dynamic_batching), or add instances; where they wait out a"
            " max_queue_delay in which none joins them, shorten it."
        )
    if batch is not None:
        return (
            f"Batches are not full ({batch[0]:.1f} of {batch[1]} rows): requests wait for a free instance, which more instances help, or for others to share"
            " a batch with, which a shorter max_queue_delay ends."
        )
    if found.facts is not None and not found.facts.max_batch:
        return "The model does not batch, so that requests wait for one another: let it batch, or add instances."
    return "More instances let fewer requests wait."


def _compute(found: Measured) -> str:
    batch = _batch(found)
    faster = "a faster precision or accelerator, or fewer threads fighting for cores"
    if batch is not None and batch[2] and batch[0] < _FULL * batch[1]:
        alone = f"with {batch[0]:.1f} rows at a time of {batch[1]}, each request alone"
        return f"The model itself takes most of it, {alone}: {faster}; for more throughput, let requests share batches."
    return f"The model itself takes most of it: {faster}."


def _outside(found: Measured, outside_ms: float) -> str:
    if found.late_ms > min(_SENDER * outside_ms, LATE_US / 1000):
        late = f"This machine sent half of the requests {found.late_ms:.2f} ms late or more, so that this says nothing about the network"
        return f"{late}: add --processes, or send from another machine."
    if found.busy:
        return "A sender of this machine had no core left, so that it was late itself: add --processes, or send from another machine."
    if found.median_ms < _FEW * outside_ms:
        few = f"Half of the requests took {found.median_ms:.2f} ms or less, so that it is the slow ones that make this mean"
        return f"{few}: the server, the network or this machine stood still at times, which latency over time shows (--html)."
    nearer = "a client nearer to the server, or with more CPU"
    if found.facts is None:
        return f"The way there and back over {found.protocol} and the work on both ends take most of it: {nearer}."
    size = found.facts.request_bytes
    if size >= _LARGE_BYTES:
        return f"Each request carries {size / 1e6:.2f} MB over {found.protocol}: smaller inputs (such as UINT8 for FP32), or {nearer}."
    return f"Requests carry {size:,.0f} bytes, so that it is the way there and back over {found.protocol} and the work on both ends: {nearer}."
