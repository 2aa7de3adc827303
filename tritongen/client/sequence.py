"""Which request of a sequence comes next: what blocking and asyncio sequences share."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritongen.client.arguments import bound_to, check_flag, check_model, check_sequence_id
from tritongen.client.options import Options, split_options
from tritongen.diagnostics import Diagnostic
from tritongen.errors import AccessDenied, ConnectionFailed, DeadlineExceeded, InvalidInput, ModelNotFound, ModelNotReady, NotTriton, TritongenError

_END_S = 2.0


@dataclass(slots=True)
class Step:
    """A request of a sequence on its way.

    Attributes:
        inputs: what the caller gave.
        options: likewise.
        parameters: those by which Triton knows the sequence.
        server: the index of the one that has the sequence; -1 where it is still to be chosen.
        left: the request was handed over to be sent. Before that it was checked, and its model was asked about.
        alone: no other request of the sequence is under way until it is over.
    """

    inputs: Mapping[str, object]
    options: Options
    parameters: Mapping[str, int | str | bool]
    server: int = -1
    left: bool = False
    alone: bool = True

    def may_be_executed(self, error: BaseException) -> bool:
        """Whether the server may have taken the request that ended with this error: everything but what was certainly refused, or never arrived."""
        if not self.left or isinstance(error, ModelNotFound | ModelNotReady | AccessDenied | NotTriton):
            return False
        if isinstance(error, ConnectionFailed | DeadlineExceeded):
            return error.sent
        return not isinstance(error, InvalidInput) or bool(error.status)


class SequenceState:
    """A sequence's id, the server that has it, and whether it has begun and ended.

    Triton wants START with a sequence's first request, END with its last, and the same id with each (docs: sequence extension of the protocol).
    """

    def __init__(self, model: str, version: str, sequence_id: int | str) -> None:
        """Raises InvalidInput (TG061) for a name, version or id that Triton does not take."""
        self.model, self._version = check_model(model, version)
        self.sequence_id = check_sequence_id(sequence_id, model)
        self._server = -1
        self._last: Step | None = None
        self._ended = False
        self._entered = False
        self._inside = False
        self._under_way = threading.Lock()

    def enter(self) -> None:
        """The `with` block begins. Raises InvalidInput (TG061) for a second one."""
        if self._entered:
            raise self._refusal("had its `with` block already", "begin another one with client.sequence()")
        self._entered = self._inside = True

    def next(self, inputs: Mapping[str, object] | None, given: Mapping[str, Any], end: bool) -> Step:
        """The next request; `given` holds options of `Client.infer` and inputs by name.

        Raises InvalidInput (TG061), as outside the block, after the end, and while another request is under way: which comes first decides what the model's
        state becomes, and two at once would both begin the sequence.
        """
        if not self._inside:
            raise self._refusal("is used outside its `with` block", "write `with client.sequence(...) as sequence:` (`async with` in asyncio)")
        if self._ended:
            raise self._refusal("has ended", "begin another one with client.sequence()")
        if given.get("idempotent") is True:
            raise self._refusal("has requests that are never sent twice, and idempotent=True asks for that", "leave it out")
        given = bound_to(self._version, given)
        options, values = split_options(inputs, given)
        is_last = check_flag("end", end, self.model)
        if not self._under_way.acquire(blocking=False):
            raise self._refusal("has a request under way, and takes one after another", "wait for the answer before the next request")
        return self._step(values, options, end=is_last)

    def leave(self, default_deadline_s: float) -> Step | None:
        """The block ends. The request that ends the sequence is the last one once more, as it was sent, within two seconds; None where nothing is to end."""
        self._inside = False
        if self._ended or self._last is None:
            return None
        options = self._last.options
        options = dataclasses.replace(options, deadline_s=min(options.deadline_s or default_deadline_s, _END_S), request_id="")
        step = self._step(self._last.inputs, options, end=True)
        step.alone = self._under_way.acquire(blocking=False)
        return step

    @contextlib.contextmanager
    def sending(self, step: Step) -> Iterator[None]:
        """Around the sending of a request: it is one of the sequence whatever becomes of it, but for one that the server certainly did not take."""
        try:
            yield
        except BaseException as error:
            if step.may_be_executed(error):
                self._sent(step)
            raise
        else:
            self._sent(step)
        finally:
            if step.alone:
                self._under_way.release()

    def _step(self, values: Mapping[str, object], options: Options, *, end: bool) -> Step:
        parameters = {"sequence_id": self.sequence_id, "sequence_start": self._last is None, "sequence_end": end}
        return Step(values, options, parameters, self._server)

    def _sent(self, step: Step) -> None:
        self._last, self._server = step, step.server
        self._ended = self._ended or bool(step.parameters["sequence_end"])

    def _refusal(self, what: str, hint: str) -> TritongenError:
        return InvalidInput([Diagnostic("TG061", f"the sequence {self.sequence_id} {what}", hint=hint, model=self.model)])
