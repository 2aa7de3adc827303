"""`prove_batch`: does a model treat the rows of a batch one by one, as its variable axis 0 says?

A declared batch axis can be a lie: a mean over the batch, a size written into the graph, a Softmax over axis 0. ONNX Runtime runs the model at several sizes,
with rows that differ, and each row of each answer must equal that of the row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.proof import DEFAULT_LIMIT_BYTES, RuntimeErrors, open_session, reason_of, run, why_not_provable
from tritongen.rewrite.blame import failing_node, mixing_node
from tritongen.rewrite.document import problem
from tritongen.rewrite.facts import Array
from tritongen.rewrite.running import DISTINCT_ROWS, Rows, allowed, candidate_rows, deviation, first_that_runs, largest
from tritongen.signature import Signature, read_onnx

if TYPE_CHECKING:
    import onnxruntime

TOLERANCE = 1e-5
"""Largest difference between a row in a batch and the row alone, as a part of the answer's largest value."""

_WRONG = "Triton batches requests of different clients: each would get an answer that depends on the others', or the server fails"
_HINT = "serve it with `batching: none`, or export it in evaluation mode with a dynamic batch axis"


@dataclass(frozen=True)
class BatchFailure:
    """One thing that a proof found wrong.

    Attributes:
        code: TG158 other answers than the original, TG160 a size that does not run, TG161 not a row for each row, TG162 rows that depend on each other.
        size: the batch size.
        reason: what happened, in one sentence.
        output: the output concerned; empty where the run failed.
        row: the first row that is wrong, from 0; None where it is not about one.
        node: the node to blame, described; empty where it cannot be told.
    """

    code: str
    size: int
    reason: str
    output: str = ""
    row: int | None = None
    node: str = ""


@dataclass(frozen=True)
class BatchProof:
    """What came of a proof.

    Attributes:
        path: the model.
        sizes: the batch sizes that were run.
        skipped: why nothing was run; empty where something was.
        failures: what is wrong; at most one for each output and size.
        deviation: the largest difference that was seen between a row in a batch and the row alone, as a part of the answer's largest value.
    """

    path: Path
    sizes: tuple[int, ...] = ()
    skipped: str = ""
    failures: tuple[BatchFailure, ...] = ()
    deviation: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether the model ran at every size and every row came out right."""
        return not self.skipped and not self.failures

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The failures as findings about the model file; a skipped proof is advice (TG163)."""
        if self.skipped:
            what = problem("TG163", self.path, f"the batch axis is not proven: {self.skipped}", "", "a batch axis can be a lie that only a run shows")
            return (Diagnostic(what.code, what.message, what.location, what.consequence, severity=Severity.ADVICE),)
        return tuple(problem(failure.code, self.path, _sentence(failure), _HINT, _WRONG) for failure in self.failures)


def _sentence(failure: BatchFailure) -> str:
    blame = f"; the cause is {failure.node}" if failure.node else ""
    return f"with a batch of {failure.size}, {failure.reason}{blame}"


def prove_batch(
    path: Path,
    *,
    sizes: Sequence[int] = (1, 2, 3),
    shapes: Mapping[str, Sequence[int]] | None = None,
    samples: Mapping[str, object] | None = None,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    original: Path | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> BatchProof:
    """Runs the model at each of `sizes` on seeded inputs, and compares each row with the answer to that row alone.

    Args:
        path: an ONNX model whose inputs have their batch on axis 0.
        sizes: batch sizes to run.
        shapes: sizes of an item's variable dimensions by input, without the batch. Where none is given, some usual lengths are tried.
        samples: values for inputs that cannot be guessed, by input: one item, or several along a first axis.
        tolerance: the largest difference allowed between floats, as a part of the answer's largest value; 16-bit floats get at least what they can resolve.
            Integers, truth values and text must be equal, and NaN stands where NaN stood.
        seed: of the random inputs.
        original: the model that `path` was rewritten from, with a fixed batch: its answers at its own size must be the same.
        limit_bytes: models above this size (with external data) are not run.

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG151 for shapes or samples that fit no input.
    """
    signature = read_onnx(path)
    external = sorted({data.location for data in signature.external_data})
    skipped = why_not_provable(path, limit_bytes=limit_bytes, external=external)
    if not signature.inputs:
        skipped = skipped or "the model has no inputs"
    if skipped:
        return BatchProof(path, skipped=skipped)
    count = max(1, min(DISTINCT_ROWS, max(sizes)))
    candidates = candidate_rows(path, signature, count, shapes or {}, samples or {}, seed)
    unfit = tuple(_unfit(signature, sizes))
    if unfit:
        return BatchProof(path, failures=unfit)
    try:
        session = open_session(path)
    except RuntimeErrors() as error:
        return BatchProof(path, failures=(BatchFailure("TG160", 1, f"ONNX Runtime does not load the model: {reason_of(error)}"),))
    rows, reason = first_that_runs(session, candidates)
    if rows is None:
        first = next(candidate_rows(path, signature, count, shapes or {}, samples or {}, seed))
        failure = BatchFailure("TG160", 1, f"the model fails: {reason}", node=failing_node(path, first.single(0)))
        return BatchProof(path, (1,), failures=(failure,))
    failures, worst = _compare_all(path, session, rows, sizes, tolerance)
    if original is not None and not failures:
        failures += _against_original(original, session, rows, tolerance)
    return BatchProof(path, tuple(sizes), failures=tuple(failures), deviation=worst)


def _unfit(signature: Signature, sizes: Sequence[int]) -> Iterator[BatchFailure]:
    """What the file itself says against a batch on axis 0, before anything is run."""
    for tensor in signature.inputs:
        if tensor.shape == ():
            yield BatchFailure("TG160", max(sizes), f"input '{tensor.name}' is a scalar, which cannot have a row for each request")
        elif tensor.shape and isinstance(tensor.shape[0], int):
            wrong = next((size for size in sizes if size != tensor.shape[0]), None)
            if wrong is not None:
                yield BatchFailure("TG160", wrong, f"axis 0 of input '{tensor.name}' is fixed to {tensor.shape[0]} in the file ({tensor.describe()})")


def _compare_all(path: Path, session: onnxruntime.InferenceSession, rows: Rows, sizes: Sequence[int], tolerance: float) -> tuple[list[BatchFailure], float]:
    failures: list[BatchFailure] = []
    count = len(next(iter(rows.arrays.values())))
    try:
        singles = [run(session, rows.single(row)) for row in range(count)]
    except RuntimeErrors() as error:
        return [BatchFailure("TG160", 1, f"the model fails on some rows: {reason_of(error)}")], 0.0
    worst = 0.0
    for size in sizes:
        try:
            whole = run(session, rows.batch(size))
        except RuntimeErrors() as error:
            failures.append(BatchFailure("TG160", size, f"the model fails: {reason_of(error)}", node=failing_node(path, rows.batch(size))))
            continue
        for output, array in whole.items():
            failure, seen = _judge(output, array, [single[output] for single in singles], size, tolerance)
            worst = max(worst, seen)
            if failure is not None:
                failures.append(failure)
    return _blamed(path, rows, failures, tolerance), worst


def _blamed(path: Path, rows: Rows, failures: Sequence[BatchFailure], tolerance: float) -> list[BatchFailure]:
    """The failures, with the node that mixes the rows; it is looked for once, at the first size that shows it."""
    size = min((failure.size for failure in failures if failure.code != "TG160" and failure.size > 1), default=0)
    node = mixing_node(path, rows, size, tolerance) if size else ""
    return [
        failure if failure.code == "TG160" else BatchFailure(failure.code, failure.size, failure.reason, failure.output, failure.row, node)
        for failure in failures
    ]


def _judge(output: str, array: Any, singles: Sequence[Any], size: int, tolerance: float) -> tuple[BatchFailure | None, float]:
    """What is wrong with one output of a batch, and how far its worst row is from the row alone."""
    if not isinstance(array, np.ndarray):
        return BatchFailure("TG161", size, f"output '{output}' is a {type(array).__name__} and not a tensor with a row for each row", output), 0.0
    for which, each, expected in (("", array, size), (" for a single row", singles[0], 1)):
        if not each.ndim or each.shape[0] != expected:
            return BatchFailure(
                "TG161", size, f"output '{output}' has the shape {list(each.shape)}{which} and not {expected} row{'s' * (expected > 1)}", output
            ), 0.0
    magnitude = max(largest(single) for single in singles)
    worst = 0.0
    for row in range(size):
        alone = singles[row % len(singles)]
        if alone.shape[1:] != array.shape[1:]:
            reason = f"a row of output '{output}' has the shape {list(array.shape[1:])}, and row {row} alone has {list(alone.shape[1:])}"
            return BatchFailure("TG162", size, reason, output, row), worst
        found = deviation(alone[0], array[row], magnitude)
        if found > allowed(tolerance, array):
            other = "the answer to that row alone" if size > 1 else "its answer in another run: the model does not answer the same twice"
            reason = f"row {row} of output '{output}' {_difference(found, array, tolerance)} from {other}"
            return BatchFailure("TG162", size, reason, output, row), found
        worst = max(worst, found)
    return None, worst


def _difference(found: float, array: Array, tolerance: float) -> str:
    if not np.isfinite(found):
        return "differs"
    return f"differs by {found:.2g} of its largest value (allowed: {allowed(tolerance, array):.2g})"


def _against_original(original: Path, session: onnxruntime.InferenceSession, rows: Rows, tolerance: float) -> list[BatchFailure]:
    """Run the original at the size it has, and the rewritten model on the same rows."""
    size = _fixed_size(read_onnx(original))
    try:
        want = run(open_session(original), rows.batch(size))
        got = run(session, rows.batch(size))
    except RuntimeErrors() as error:
        return [BatchFailure("TG158", size, f"the answers cannot be compared with those of {original.name}: {reason_of(error)}")]
    failures = []
    for output, array in want.items():
        found = deviation(array, got[output], largest(array)) if output in got else float("inf")
        if found > allowed(tolerance, array):
            reason = f"output '{output}' {_difference(found, array, tolerance)} from that of {original.name}"
            failures.append(BatchFailure("TG158", size, reason, output))
    return failures


def _fixed_size(signature: Signature) -> int:
    return next((tensor.shape[0] for tensor in signature.inputs if tensor.shape and isinstance(tensor.shape[0], int)), 1)
