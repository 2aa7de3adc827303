"""Whether a converted model answers as its original does: both run on seeded inputs, at the batch sizes in use, and each output is compared.

A model of FP16 is run as a device with FP16 kernels would run it (`rounding.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from tritongen.proof import DEFAULT_LIMIT_BYTES, MOST_FEED_BYTES, RuntimeErrors, open_session, reason_of, run, why_not_provable
from tritongen.rewrite.blame import ask, session_of
from tritongen.rewrite.document import describe
from tritongen.rewrite.facts import Array
from tritongen.rewrite.halves import NARROW
from tritongen.rewrite.rounding import ROUNDED, rounded
from tritongen.rewrite.running import COARSE, DISTINCT_ROWS, Rows, candidate_rows, deviation, item_bytes, largest
from tritongen.signature import Signature, read_onnx

_FAR, _NEAR = 0.05, 0.9999
"""How far a node's result must be off to be blamed, as a part of its largest value; the cosine above which there is nothing to blame."""

_SUM_TOLERANCE = 1e-2
_MOST_BYTES = (1 << 31) - 1  # of a model that ONNX Runtime is handed as protobuf


@dataclass(frozen=True)
class Agreement:
    """How near one output is to the original's at one batch size.

    Attributes:
        output: its name.
        size: rows in the batch; 0 for a model that was run as a whole.
        max_abs: the largest difference.
        max_rel: the same as a part of the original's largest value.
        cosine: the least cosine similarity of a row with the original's; for an output of whole numbers or text, the part of its elements that are equal.
        rows: rows of scores; 0 for an output that does not look like scores.
        same_top1: how many of them have their largest score where the original has it, or where it has one that FP16 cannot tell from it.
        reason: why the two cannot be compared, such as another shape, or numbers that are none; empty where they can.
    """

    output: str
    size: int
    max_abs: float = 0.0
    max_rel: float = 0.0
    cosine: float = 1.0
    rows: int = 0
    same_top1: int = 0
    reason: str = ""

    @property
    def numbers(self) -> str:
        """The figures in words."""
        if self.reason:
            return self.reason
        top = f", the same top-1 in {self.same_top1} of {self.rows} rows" if self.rows else ""
        return f"max abs {self.max_abs:.2g}, max rel {self.max_rel:.2g}, cosine {self.cosine:.7g}{top}"

    def is_within(self, *, cosine: float, top1: bool) -> bool:
        """Whether it is as near as is asked for."""
        return not self.reason and self.cosine >= cosine and (not top1 or self.same_top1 == self.rows)


@dataclass(frozen=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        skipped: why nothing was compared; empty where something was.
        agreements: for each size and output.
        not_run: for each size that was not run, why not.
        blame: where answers are far off, the first node whose result is, and how far; empty where it cannot be told.
        foldable: whether the converted graph has batch normalizations, which ONNX Runtime folds into convolutions when it optimises.
    """

    skipped: str = ""
    agreements: tuple[Agreement, ...] = ()
    not_run: Mapping[int, str] = field(default_factory=dict)
    blame: str = ""
    foldable: bool = False

    @property
    def worst(self) -> tuple[Agreement, ...]:
        """For each output, the worst of each figure over all sizes, its rows of scores added up."""
        outputs: dict[str, list[Agreement]] = {}
        for each in self.agreements:
            outputs.setdefault(each.output, []).append(each)
        return tuple(
            Agreement(
                name,
                0,
                max(each.max_abs for each in found),
                max(each.max_rel for each in found),
                min(each.cosine for each in found),
                sum(each.rows for each in found),
                sum(each.same_top1 for each in found),
                next((each.reason for each in found if each.reason), ""),
            )
            for name, found in outputs.items()
        )


def compare(
    original: Path,
    converted: Path,
    *,
    sizes: Sequence[int],
    shapes: Mapping[str, Sequence[int]],
    samples: Mapping[str, object],
    seed: int = 0,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> Comparison:
    """Compares the answers of two models with the same inputs and outputs, types of floats apart.

    Args:
        original: the model that was converted; where its batch is fixed, and that of `converted` is not, it answers the rows in turns.
        converted: the model in FP16.
        sizes: batch sizes to run; none for models without a batch axis, which are run once, with `shapes` and `samples` of whole inputs.
        shapes: sizes of an item's variable dimensions by input, without the batch. Where none is given, some usual lengths are tried.
        samples: values for inputs that cannot be guessed, by input: one item, or several along a first axis.
        seed: of the random inputs.
        limit_bytes: models above this size (with external data) are not run.

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG151 for shapes or samples that fit no input.
    """
    signature = read_onnx(original)
    skipped = why_not_provable(original, limit_bytes=limit_bytes, external=sorted({data.location for data in signature.external_data}))
    size = item_bytes(signature, shapes)
    if not skipped and size > MOST_FEED_BYTES:
        skipped = f"its inputs have {size / 2**20:,.0f} MiB, and inputs above {MOST_FEED_BYTES >> 20} MiB are not run here"
    if skipped:
        return Comparison(skipped)
    count = max(1, min(DISTINCT_ROWS, max(sizes), MOST_FEED_BYTES // max(size, 1))) if sizes else 1
    batched = bool(sizes)
    try:
        pair = _Pair(original, converted, signature)
        rows, reason = pair.first_that_runs(candidate_rows(original, signature, count, shapes, samples, seed, batched=batched), batched=batched)
        if rows is None:
            return Comparison(f"the original does not run on made-up inputs: {reason}")
        return _compare(pair, rows, sizes)
    except RuntimeErrors() as error:
        return Comparison(f"ONNX Runtime does not run it: {reason_of(error)}")
    except onnx.shape_inference.InferenceError as error:
        return Comparison(f"the types in its graph cannot be followed: {' '.join(str(error).split())}")


class _Pair:
    """Both models, loaded. Raises one of `RuntimeErrors()` or InferenceError where one cannot be."""

    def __init__(self, original: Path, converted: Path, signature: Signature) -> None:
        self.path = original
        self.before = open_session(original)
        self.fixed = next((tensor.shape[0] for tensor in signature.inputs if tensor.shape and isinstance(tensor.shape[0], int)), 0)
        graph = onnx.load(str(converted))
        self.foldable = any(node.op_type == "BatchNormalization" for node in graph.graph.node)
        self.rounds = rounded(graph)
        if self.rounds.ByteSize() > _MOST_BYTES:
            raise ValueError("in FP32 it is larger than protobuf allows")
        self.after = session_of(self.rounds, converted.parent, optimised=True)
        self.narrow = {tensor.name for tensor in read_onnx(converted).inputs if tensor.dtype.wire == "FP16"}
        self.narrow -= {tensor.name for tensor in signature.inputs if tensor.dtype.wire == "FP16"}

    def first_that_runs(self, candidates: Iterator[Rows], *, batched: bool) -> tuple[Rows | None, str]:
        """The first rows that the original answers, in its own batch, or None and ONNX Runtime's reason for the last."""
        reason = ""
        for rows in candidates:
            try:
                self.answers(rows, self.fixed or 1 if batched else 0)
            except RuntimeErrors() as error:
                reason = reason_of(error)
            else:
                return rows, ""
        return None, reason

    def answers(self, rows: Rows, size: int) -> dict[str, Array]:
        """The original's answers to a batch, or to the first item as a whole for a size of 0."""
        return self._original(rows, size) if size else run(self.before, rows.item())

    def _original(self, rows: Rows, size: int) -> dict[str, Array]:
        """The original's answers to a batch, in turns of its own size where that is fixed to another."""
        if self.fixed in (0, size):
            return run(self.before, rows.batch(size))
        parts = [run(self.before, rows.batch(self.fixed, start)) for start in range(0, size, self.fixed)]
        return {name: np.concatenate([part[name] for part in parts])[:size] for name in parts[0]}

    def feed(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """What the converted model is to be given: rounded, where it takes FP16."""
        with np.errstate(over="ignore"):
            return {name: array.astype(np.float16).astype(np.float32) if name in self.narrow else array for name, array in feed.items()}

    def blame(self, feed: Mapping[str, Array]) -> str:
        """The first node whose result is no number, or far off that of the original's tensor of the same name; empty where none is, or it cannot be told."""
        first, second = onnx.load(str(self.path), load_external_data=False), onnx.ModelProto()
        second.CopyFrom(self.rounds)
        makers = dict(_results(second.graph))
        known = {output for node in first.graph.node for output in node.output}
        common = [name for made in makers if (name := made.removesuffix(NARROW)) in known]
        try:
            want = ask(session_of(_showing(first, common), self.path.parent), common, feed)
            got = ask(session_of(_showing(second, makers), self.path.parent), list(makers), self.feed(feed))
        except RuntimeErrors():
            return ""
        for name, array in got.items():
            if not np.isfinite(array).all():
                return f"{describe(makers[name])} leaves the range of FP16"
            same = want.get(name.removesuffix(NARROW))
            far = deviation(same, array, largest(same)) if same is not None else 0.0
            if far > _FAR:
                return f"{describe(makers[name])} is off by {far:.2g} of its largest value"
        return ""


def _showing(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    listed = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in listed)
    return model


def _results(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.NodeProto]]:
    """Every rounded tensor of the outermost graph, with the node that computes it."""
    makers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == "Cast" and node.input[0].endswith(ROUNDED):
            rounding = makers[node.input[0]]
            yield node.output[0], makers.get(rounding.input[0], rounding)


def _compare(pair: _Pair, rows: Rows, sizes: Sequence[int]) -> Comparison:
    not_run = {
        size: f"its inputs have {total / 2**20:,.0f} MiB, and batches above {MOST_FEED_BYTES >> 20} MiB are not run here"
        for size in sizes
        if (total := rows.nbytes * size // rows.count) > MOST_FEED_BYTES
    }
    found: list[Agreement] = []
    for size in [size for size in sizes if size not in not_run] or ([] if sizes else [0]):
        want = pair.answers(rows, size)
        got = run(pair.after, pair.feed(rows.batch(size) if size else rows.item()))
        found += [_agreement(name, size, array, got[name]) for name, array in want.items()]
    far = any(each.reason or each.cosine < _NEAR or each.same_top1 < each.rows for each in found)
    blame = pair.blame(rows.batch(pair.fixed or 1) if sizes else rows.item()) if far else ""
    return Comparison(agreements=tuple(found), not_run=not_run, blame=blame, foldable=pair.foldable)


def _agreement(output: str, size: int, want: Array, got: Array) -> Agreement:
    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray):
        return Agreement(output, size, reason=f"it is a {type(want).__name__} and not a tensor")
    if want.shape != got.shape:
        return Agreement(output, size, reason=f"it has the shape {list(got.shape)}, and the original's {list(want.shape)}")
    if want.dtype.kind != "f":
        return Agreement(output, size, cosine=float((want == got).mean()) if want.size else 1.0)
    first, second = want.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(first)
    if not np.array_equal(finite, np.isfinite(second)):
        bad = int((~np.isfinite(second) & finite).sum())
        return Agreement(output, size, reason=f"{bad:,} of its {second.size:,} numbers are infinite or none, and the original's are not")
    first, second = np.where(finite, first, 0), np.where(finite, second, 0)
    max_abs = float(np.abs(first - second).max(initial=0))
    top = _top1(first, second)
    return Agreement(output, size, max_abs, deviation(first, second, largest(first)), _cosine(first, second, rowwise=bool(size)), *top)


def _cosine(first: Array, second: Array, *, rowwise: bool) -> float:
    """The least cosine similarity of the rows; of zeros with zeros it is 1."""
    count = len(first) if rowwise and first.ndim else 1
    one, two = first.reshape(count, -1), second.reshape(count, -1)
    norms = np.linalg.norm(one, axis=1), np.linalg.norm(two, axis=1)
    product = norms[0] * norms[1]
    cosines = np.where(product > 0, (one * two).sum(axis=1) / np.where(product > 0, product, 1), (norms[0] == norms[1]).astype(np.float64))
    return float(min(cosines.min(initial=1.0), 1.0))


def _top1(first: Array, second: Array) -> tuple[int, int]:
    """The rows of scores, and those with the same winner; (0, 0) where there is nothing like scores."""
    if first.ndim < 2 or first.shape[-1] < 2 or not first.size:
        return 0, 0
    if first.ndim > 2 and not (first.min() >= 0 and np.abs(first.sum(axis=-1) - 1).max() < _SUM_TOLERANCE):
        return 0, 0
    one, two = first.reshape(-1, first.shape[-1]), second.reshape(-1, first.shape[-1])
    winner = np.take_along_axis(one, two.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    lost = one.max(axis=1) - winner
    return len(one), int((lost <= COARSE["float16"] * np.abs(one).max(axis=1)).sum())
