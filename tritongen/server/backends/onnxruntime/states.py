"""Implicit state (`sequence_batching.state`): what each sequence's last answer was, kept here until its next request.

Triton's Python interface gives a request its states as inputs and takes none back: what comes in is always the initial value. One process holds one instance,
and Triton sends all requests of a sequence to the same instance, so a dictionary here is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .errors import RefusedError
from .tensors import Array
from .verdicts import ortload

_DEFAULT_IDLE_US = 1_000_000  # of the sequence batcher, where the config says nothing
_PATIENCE_S = 60.0  # a request that came in time may still wait for its turn


class StateError(ValueError):
    """A request whose sequence has no state here."""


@dataclass
class _Sequence:
    values: dict[str, Array]
    used_s: float


class States:
    """The states of all sequences of one instance.

    Args:
        config: the model's config. A state without `initial_state` starts as zeros; NVIDIA's backend leaves it undefined.
        triton: the stub's `triton_python_backend_utils`.
        clock: seconds that only go forward.

    Raises RefusedError for states in growable memory, which only CUDA has.
    """

    def __init__(self, config: Mapping[str, Any], triton: Any, clock: Callable[[], float] = time.monotonic) -> None:
        entries = ortload.states(config)
        for entry in entries:
            if entry.get("use_growable_memory"):
                name = entry.get("input_name", "")
                raise RefusedError(f"state '{name}' is to be kept in growable memory (use_growable_memory), which NVIDIA's own backend has on GPUs only")
        self.outputs: Final = tuple(dict.fromkeys(entry.get("output_name", "") for entry in entries))
        self._outputs = {entry.get("input_name", ""): entry.get("output_name", "") for entry in entries}
        self._undefined = frozenset(entry.get("input_name", "") for entry in entries if not entry.get("initial_state"))
        self._start, self._end = triton.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, triton.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
        idle_us = int(config.get("sequence_batching", {}).get("max_sequence_idle_microseconds", 0)) or _DEFAULT_IDLE_US
        self._forget_after_s = 2 * idle_us / 1e6 + _PATIENCE_S
        self._clock = clock
        self._sequences: dict[int | str, _Sequence] = {}

    def __bool__(self) -> bool:
        return bool(self._outputs)

    @staticmethod
    def is_filler(request: Any) -> bool:
        """Whether Triton made the request to fill a slot whose sequence has none now: nobody waits for its answer."""
        return not request.correlation_id() and not request.requested_output_names()

    def fill(self, request: Any, feed: dict[str, Array]) -> None:
        """Put the sequence's states into the request's arrays, in place of the initial values that Triton gave. Raises StateError where there are none.

        A request without a sequence is one of a warmup: Triton gives it no states, and it fails for want of them.
        """
        number = request.correlation_id()
        if not number:
            return
        if request.flags() & self._start:
            feed.update({name: np.zeros_like(feed[name]) for name in self._undefined if name in feed})
        elif number in self._sequences:
            feed.update(self._sequences[number].values)
        else:
            raise StateError(f"the state of sequence {number!r} is not here: it has not been started, or it was idle for too long; start it anew")

    def keep(self, request: Any, part: Mapping[str, Array]) -> None:
        """Remember what the request's answer says of the states; forget the sequence after its last request."""
        number = request.correlation_id()
        if not number:
            return
        if request.flags() & self._end:
            self._sequences.pop(number, None)
            return
        now = self._clock()
        if request.flags() & self._start:
            self._sequences = {key: sequence for key, sequence in self._sequences.items() if now - sequence.used_s < self._forget_after_s}
        # copied: a part is a view of the whole batch's answer, which it would keep alive
        self._sequences[number] = _Sequence({name: part[output].copy() for name, output in self._outputs.items()}, now)


def port_entries(config: Mapping[str, Any], field: str, known: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The states' inputs or outputs (`field` is input_name or output_name) in the form of the config's own; those that the graph has."""
    return [
        {"name": entry[field], "data_type": entry["data_type"], "dims": entry.get("dims", [])} for entry in ortload.states(config) if entry.get(field) in known
    ]
