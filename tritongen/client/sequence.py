"""Which request of a sequence comes next: what blocking and asyncio sequences share."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tritongen.client.inference import Options
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InvalidInput

_END_S = 2.0
_OPTIONS = frozenset(item.name for item in dataclasses.fields(Options)) - {"version"}


class Next(NamedTuple):
    """A request of a sequence."""

    inputs: Mapping[str, object]
    options: Options
    parameters: Mapping[str, int | str | bool]


class SequenceState:
    """A sequence's id, and whether it has begun and ended.

    Triton wants START with a sequence's first request, END with its last, and the same id with each (docs: sequence extension of the protocol).
    """

    def __init__(self, model: str, version: str, sequence_id: int | str) -> None:
        """Raises InvalidInput (TG061) for an id that Triton does not take: 0 and the empty text mean none."""
        is_number = isinstance(sequence_id, int) and not isinstance(sequence_id, bool) and 0 < sequence_id < 2**63
        if not is_number and not (isinstance(sequence_id, str) and sequence_id):
            message = f"{sequence_id!r:.40} cannot be the id of a sequence"
            raise InvalidInput([Diagnostic("TG061", message, hint="give a number from 1 to 2**63 - 1, a text, or none for a new one", model=model)])
        self.sequence_id = sequence_id
        self._model = model
        self._version = version
        self._last: tuple[Mapping[str, object], Options] | None = None
        self._ended = False

    def next(self, inputs: Mapping[str, object] | None, given: Mapping[str, Any], end: bool) -> Next:
        """The next request; `given` holds options of `Client.infer` and inputs by name. Raises InvalidInput (TG061) after the end."""
        if self._ended:
            hint = "begin another one with client.sequence()"
            raise InvalidInput([Diagnostic("TG061", f"the sequence {self.sequence_id} has ended", hint=hint, model=self._model)])
        values = {**(inputs or {}), **{name: value for name, value in given.items() if name not in _OPTIONS}}
        options = Options(version=self._version, **{name: value for name, value in given.items() if name in _OPTIONS})
        parameters = {"sequence_id": self.sequence_id, "sequence_start": self._last is None, "sequence_end": end}
        return Next(values, options, parameters)

    def end(self, default_deadline_s: float) -> Next | None:
        """The request that ends the sequence: the last one once more, as it was sent, within two seconds. None where there is nothing to end."""
        if self._ended or self._last is None:
            return None
        values, options = self._last
        options = dataclasses.replace(options, deadline_s=min(options.deadline_s or default_deadline_s, _END_S), request_id="")
        return Next(values, options, {"sequence_id": self.sequence_id, "sequence_start": False, "sequence_end": True})

    @contextlib.contextmanager
    def sending(self, request: Next) -> Iterator[None]:
        """Around the sending of a request: it counts as sent whatever becomes of it, but for one that was refused before."""
        try:
            yield
        except InvalidInput as error:
            if error.status:
                self._sent(request)
            raise
        except BaseException:
            self._sent(request)
            raise
        self._sent(request)

    def _sent(self, request: Next) -> None:
        self._last = (request.inputs, request.options)
        self._ended = self._ended or bool(request.parameters["sequence_end"])
