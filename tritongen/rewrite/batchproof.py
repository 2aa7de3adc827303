"""`prove_batch`: does a model treat the rows of a batch one by one, as its variable axis 0 says?

A declared batch axis can be a lie: a mean over the batch, a size written into the graph, a Softmax over axis 0. ONNX Runtime runs the model at several sizes,
with rows that differ, and each row of each answer must equal that of the row alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tritongen.diagnostics import Diagnostic, Severity
from tritongen.proof import DEFAULT_LIMIT_BYTES, MOST_FEED_BYTES, RuntimeErrors, open_session, reason_of, run, why_not_provable
from tritongen.rewrite.blame import failing_node, mixing_node
from tritongen.rewrite.document import describe, problem
from tritongen.rewrite.facts import Array
from tritongen.rewrite.running import DISTINCT_ROWS, Rows, allowed, candidate_rows, deviation, first_that_runs, item_bytes, largest
from tritongen.signature import Signature, read_onnx

if TYPE_CHECKING:
    import onnxruntime

TOLERANCE = 1e-5
"""Largest difference between a row in a batch and the row alone, as a part of the answer's largest value."""

_WRONG = "Triton batches requests of different clients: each would get an answer that depends on the others', or the server fails"
_HINT = "serve it with `batching: none`, or export it in evaluation mode with a dynamic batch axis"
_COARSE = "Triton batches requests of different clients: each answer depends a little on what it is batched with"
_COARSE_HINT = "accept it, or serve the model with `batching: none`"
_ONE_SCALE = "takes one scale for the whole batch"
# Operators that round to 8 bits, why rows depend on each other there, and the largest difference that this explains.
_QUANTIZES = {
    "DynamicQuantizeLinear": _ONE_SCALE,
    "DynamicQuantizeMatMul": _ONE_SCALE,
    "DynamicQuantizeLSTM": _ONE_SCALE,
    "QuantizeLinear": "rounds to whole steps, and makes one of a difference in the last digit",
}
_ROUNDING = 0.1


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
        operator: its operator.
        difference: how far the answers are from each other, as a part of their largest value; infinite where that has no sense.
    """

    code: str
    size: int
    reason: str
    output: str = ""
    row: int | None = None
    node: str = ""
    operator: str = ""
    difference: float = float("inf")

    @property
    def sentence(self) -> str:
        """Size, reason and cause in one sentence."""
        blame = f"; the cause is {self.node}" if self.node else ""
        return f"with a batch of {self.size}, {self.reason}{blame}"

    @property
    def is_rounding(self) -> bool:
        """Whether the rows depend on each other only by the rounding of a quantization."""
        return self.code == "TG162" and self.operator in _QUANTIZES and self.difference <= _ROUNDING


@dataclass(frozen=True)
class BatchProof:
    """What came of a proof.

    Attributes:
        path: the model.
        sizes: the batch sizes that were run.
        skipped: why nothing was run; empty where something was.
        not_run: for each size that was not run, why not.
        failures: what is wrong; at most one for each output and size.
        deviation: the largest difference that was seen between a row in a batch and the row alone, as a part of the answer's largest value.
    """

    path: Path
    sizes: tuple[int, ...] = ()
    skipped: str = ""
    not_run: Mapping[int, str] = field(default_factory=dict)
    failures: tuple[BatchFailure, ...] = ()
    deviation: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether the model ran at every size and every row came out right."""
        return not self.skipped and not self.failures and not self.not_run

    @property
    def single_row_fails(self) -> str:
        """Why not even one row could be run; empty where it could. Made-up inputs may be to blame as well as the model."""
        return next((failure.sentence for failure in self.failures if failure.code == "TG160" and failure.size == 1), "")

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong or open, as findings about the model file: errors, a warning for what only rounds, advice (TG163) for what was not run."""
        unproven = [self.skipped] if self.skipped else [f"a batch of {size} was not run: {why}" for size, why in self.not_run.items()]
        advice = [
            problem("TG163", self.path, f"the batch axis is not proven: {why}", "", "a batch axis can be a lie that only a run shows") for why in unproven
        ]
        return (
            *(_diagnostic(self.path, failure) for failure in self.failures),
            *(dataclasses.replace(each, severity=Severity.ADVICE) for each in advice),
        )


def _diagnostic(path: Path, failure: BatchFailure) -> Diagnostic:
    if not failure.is_rounding:
        return problem(failure.code, path, failure.sentence, _HINT, _WRONG)
    message = f"{failure.sentence}, which {_QUANTIZES[failure.operator]}"
    return dataclasses.replace(problem(failure.code, path, message, _COARSE_HINT, _COARSE), severity=Severity.WARNING)


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
    size = item_bytes(signature, shapes or {})
    if 2 * size > MOST_FEED_BYTES:
        why = f"one row of its inputs has {size / 2**20:,.0f} MiB, and batches above {MOST_FEED_BYTES >> 20} MiB are not run here"
        return BatchProof(path, skipped=why)
    count = max(1, min(DISTINCT_ROWS, max(sizes), MOST_FEED_BYTES // max(size, 1)))
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
    not_run = {
        size: f"its inputs have {total / 2**20:,.0f} MiB, and batches above {MOST_FEED_BYTES >> 20} MiB are not run here"
        for size in sizes
        if (total := rows.nbytes * size // count) > MOST_FEED_BYTES
    }
    ran = tuple(size for size in sizes if size not in not_run)
    failures, worst = _compare_all(path, session, rows, ran, tolerance)
    if original is not None and not failures:
        failures += _against_original(original, session, rows, tolerance)
    return BatchProof(path, ran, not_run=not_run, failures=tuple(failures), deviation=worst)


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
    count = rows.count
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
    node = mixing_node(path, rows, size, tolerance) if size else None
    if node is None:
        return list(failures)
    return [failure if failure.code == "TG160" else dataclasses.replace(failure, node=describe(node), operator=node.op_type) for failure in failures]


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
    for first, alone in enumerate(singles[:size]):
        rows = array[first :: len(singles)]
        if alone.shape[1:] != rows.shape[1:]:
            reason = f"a row of output '{output}' has the shape {list(array.shape[1:])}, and row {first} alone has {list(alone.shape[1:])}"
            return BatchFailure("TG162", size, reason, output, first), worst
        worst = max(worst, deviation(np.broadcast_to(alone[0], rows.shape), rows, magnitude))
    if worst <= allowed(tolerance, array):
        return None, worst
    row, found = next(
        (row, found) for row in range(size) if (found := deviation(singles[row % len(singles)][0], array[row], magnitude)) > allowed(tolerance, array)
    )
    other = "the answer to that row alone" if size > 1 else "its answer in another run: the model does not answer the same twice"
    reason = f"row {row} of output '{output}' {_difference(found, array, tolerance)} from {other}"
    return BatchFailure("TG162", size, reason, output, row, difference=worst), worst


def _difference(found: float, array: Array, tolerance: float) -> str:
    if not np.isfinite(found):
        return "differs"
    return f"differs by {found:.2g} of its largest value (allowed: {allowed(tolerance, array):.2g})"


def _against_original(original: Path, session: onnxruntime.InferenceSession, rows: Rows, tolerance: float) -> list[BatchFailure]:
    """Run the original, at the size it has, on all rows in turn, and the rewritten model on the same ones."""
    size = _fixed_size(read_onnx(original))
    failures: dict[str, BatchFailure] = {}
    try:
        before = open_session(original)
        for start in range(0, rows.count, size):
            feed = rows.batch(size, start)
            want, got = run(before, feed), run(session, feed)
            for output, array in want.items():
                found = deviation(array, got[output], largest(array)) if output in got else float("inf")
                if found > allowed(tolerance, array):
                    where = f"row {start} of " if size == 1 else ""
                    reason = f"{where}output '{output}' {_difference(found, array, tolerance)} from that of {original.name}"
                    failures.setdefault(output, BatchFailure("TG158", size, reason, output, start if size == 1 else None, difference=found))
    except RuntimeErrors() as error:
        return [BatchFailure("TG158", size, f"the answers cannot be compared with those of {original.name}: {reason_of(error)}")]
    return list(failures.values())


def _fixed_size(signature: Signature) -> int:
    return next((tensor.shape[0] for tensor in signature.inputs if tensor.shape and isinstance(tensor.shape[0], int)), 1)
