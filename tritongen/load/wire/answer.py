"""What a load test sends and what it gets back: prepared requests, answers, outcomes. Knows neither protocol."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from tritongen.client.calls import CallFailed, Status


class Outcome(str, enum.Enum):
    """What became of a request, in one vocabulary for both protocols. `HOLLOW` is what a load test makes of a good answer without outputs,
    and `UNFINISHED` a request that was under way when the test was broken off. `GONE`: the server does not know the model, which it knew when the test
    began: it was unloaded, or the server is ending. `REJECTED`: a full queue, or a server that is ending and says so: they share a status.
    """

    OK = "ok"
    REJECTED = "rejected"
    INVALID = "invalid"
    GONE = "gone"
    FAILED = "failed"
    DEADLINE = "deadline"
    CONNECTION = "connection"
    HOLLOW = "hollow"
    UNFINISHED = "unfinished"


OUTCOMES: Mapping[Status, Outcome] = {
    Status.INVALID: Outcome.INVALID,
    Status.NOT_FOUND: Outcome.GONE,
    Status.UNSUPPORTED: Outcome.INVALID,
    Status.DENIED: Outcome.INVALID,
    Status.UNAVAILABLE: Outcome.REJECTED,
    Status.FAILED: Outcome.FAILED,
    Status.DEADLINE: Outcome.DEADLINE,
    Status.CONNECTION: Outcome.CONNECTION,
    Status.STRANGER: Outcome.CONNECTION,
}
"""What the client's statuses mean for a load test: everything that the request itself must be changed for is `invalid`, and what a server turns away,
for its full queue or since it is ending, is `rejected`.

A model that is not there from the beginning is refused before anything is sent; one that is not found later has gone.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as bytes, made once and sent often.

    Attributes:
        head: HTTP: request line and headers, followed by the body; gRPC: the block of headers, encoded by HPACK.
        body: HTTP: empty; gRPC: the message with its length before it.
    """

    head: bytes = field(repr=False)
    body: bytes = field(repr=False, default=b"")


class Answer(NamedTuple):
    """What became of one request.

    Attributes:
        outcome: see `Outcome`.
        status: the protocol's own word (`"200"`, `"UNAVAILABLE"`); empty where there was none.
        size: bytes of the answer: the HTTP body, or the gRPC message.
        error: what the server, or the connection, says about a request that is not `ok`.
        sent: False where the request certainly never reached the server.
        sent_s, received_s: `time.perf_counter` when the request went to its connection (0 where it never did) and when the last byte of the answer reached this
            machine. Of a request without an answer, when it was given up.
        unread_s: seconds from then until a good answer was read; None for any other, and where the system does not tell it: then `received_s` is the reading.
        payload: the answer itself, where it was asked for.
        headers: HTTP's headers in lower case, where the payload was asked for.
        hollow: the protocol says that all is well, and the answer names no output: it is no answer of Triton's to an inference.
    """

    outcome: Outcome
    status: str
    size: int
    error: str = ""
    sent: bool = True
    sent_s: float = 0.0
    received_s: float = 0.0
    unread_s: float | None = None
    payload: bytes | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    hollow: bool = False

    @property
    def judged(self) -> tuple[Outcome, str]:
        """The outcome for a load test, to which an answer without outputs is an error, and its words."""
        return (Outcome.HOLLOW, f"the answer ({self.status}) holds no outputs") if self.hollow else (self.outcome, self.error)

    def judged_within(self, latency_s: float, deadline_s: float) -> tuple[Outcome, str]:
        """The same, where a good answer that came after `deadline_s` is too late: whoever asked had given up by then."""
        outcome, error = self.judged
        if outcome is Outcome.OK and latency_s > deadline_s:
            return Outcome.DEADLINE, f"the answer came after the deadline of {deadline_s:g} s"
        return outcome, error


def failed(failure: CallFailed, *, size: int = 0, sent_s: float = 0.0, received_s: float = 0.0) -> Answer:
    """The answer that a failed call is."""
    return Answer(OUTCOMES[failure.status], failure.word, size, failure.said, failure.sent, sent_s, received_s)
