"""A request with more rows than its model takes: cut into parts, and their answers put together again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tritongen.client.metadata import ModelMeta
from tritongen.client.policy import Deadline
from tritongen.client.requests import Prepared
from tritongen.client.result import Result, Timings
from tritongen.diagnostics import Diagnostic
from tritongen.errors import DeadlineExceeded, InferenceError, PartialFailure, TritongenError, Unavailable
from tritongen.samples import Array

_MOST_RANGES = 5
_WHOLE = "send no more rows than the model takes at once"


def too_many_rows(meta: ModelMeta, rows: int) -> Diagnostic:
    """The finding for a request that is not cut."""
    message = f"the request has {rows} rows, and the model takes {meta.max_batch_size} at most"
    return Diagnostic("TG061", message, consequence="Triton refuses the request", hint="only infer() cuts a request", model=meta.name)


def parts_of(prepared: Prepared, most: int, start: int = 0, end: int | None = None) -> list[Prepared]:
    """A request's rows from `start` to before `end` as requests of at most `most`, in their order."""
    end = (prepared.rows or 0) if end is None else end
    return [_part_of(prepared, first, min(first + most, end)) for first in range(start, end, most)]


def _part_of(prepared: Prepared, start: int, end: int) -> Prepared:
    """The rows from `start` to before `end`; shape tensors, which have no rows, go with every part."""
    share = prepared.nbytes * (end - start) // (prepared.rows or 1)
    inputs = tuple((tensor, array if tensor.is_shape_tensor else array[start:end]) for tensor, array in prepared.inputs)
    return Prepared(inputs, end - start, share)


def not_sent(meta: ModelMeta, deadline: Deadline) -> DeadlineExceeded:
    """The error of the parts whose turn did not come in time."""
    return DeadlineExceeded(f"model '{meta.name}': not sent, the {deadline.seconds:g} s were over", sent=False)


def partial_failure(meta: ModelMeta, failures: dict[tuple[int, int], TritongenError], parts: int) -> TritongenError:
    """The one error of a request of which parts failed.

    Where no part succeeded, it is their own error if all failed alike, and DeadlineExceeded if the time ended what the server had no room for until then.
    """
    first = next(iter(failures.values()))
    late = next((error for error in failures.values() if isinstance(error, DeadlineExceeded)), None)
    if len(failures) == parts:
        if len({type(error) for error in failures.values()}) == 1:
            return first
        if late is not None and all(isinstance(error, DeadlineExceeded | Unavailable) for error in failures.values()):
            return late
    unsent = sum(isinstance(error, DeadlineExceeded) and not error.sent for error in failures.values())
    why = f"{unsent} of them were not sent in time; the first that failed" if unsent else "the first of them"
    message = f"model '{meta.name}': {len(failures)} of {parts} parts failed, with the rows {_rows(failures)}; {why}: {first}"
    executed = "" if len(failures) == parts else "the parts that are not named were executed; "
    return PartialFailure(message, failures=failures, hint=f"{executed}`failures` has each part that failed")


def _rows(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges of rows in words, those side by side as one, and no more than a few."""
    runs: list[tuple[int, int]] = []
    for start, end in ranges:
        runs.append((runs.pop()[0] if runs and runs[-1][1] == start else start, end))
    shown = ", ".join(f"{start} to {end - 1}" for start, end in runs[:_MOST_RANGES])
    return f"{shown} and {len(runs) - _MOST_RANGES} more ranges" if len(runs) > _MOST_RANGES else shown


def joined(replies: Sequence[tuple[int, Result]]) -> Result:
    """One answer from those of all parts, each with its number of rows; it took as long as the slowest. Raises InferenceError where they make no whole."""
    parts = [part for _, part in replies]
    if any(part.keys() != parts[0].keys() for part in parts):
        answers = " and ".join(sorted({str(sorted(part)) for part in parts}))
        raise InferenceError(f"parts of a request that was cut have the outputs {answers}, which make no one answer", hint=_WHOLE)
    first, times = parts[0], [part.timings for part in parts]
    return Result(
        {name: _joined(name, [(rows, part[name]) for rows, part in replies]) for name in first},
        model=first.model,
        version=first.version,
        request_id=first.request_id,
        parameters=first.parameters,
        timings=Timings(0.0, sum(one.serialise for one in times), max(one.wait for one in times), sum(one.decode for one in times)),
        raw=[part.raw for part in parts],
    )


def _joined(name: str, parts: Sequence[tuple[int, Array]]) -> Array:
    """One output of all parts. Raises InferenceError where its first axis is not the batch: the parts put together would be another answer than the whole's."""
    for rows, array in parts:
        if array.ndim == 0 or array.shape[0] != rows:
            message = f"output '{name}' has the shape {list(array.shape)} for {rows} rows: its first axis is not the batch, and parts cannot be joined"
            raise InferenceError(message, hint="send no more rows than the model takes at once, or leave that output out (outputs=)")
    try:
        return np.concatenate([array for _, array in parts])
    except ValueError as error:
        message = f"output '{name}' of a request that was cut has parts of different shapes, which make no one array: {error}"
        raise InferenceError(message, hint=_WHOLE) from error
