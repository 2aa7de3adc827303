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
from tritongen.rewrite.agreement import Agreement, agreement_of, worst_of
from tritongen.rewrite.blame import ask, session_of
from tritongen.rewrite.document import describe
from tritongen.rewrite.facts import Array
from tritongen.rewrite.halves import NARROW
from tritongen.rewrite.rounding import ROUNDED, rounded
from tritongen.rewrite.running import DISTINCT_ROWS, Rows, candidate_rows, deviation, item_bytes, largest
from tritongen.signature import Signature, read_onnx

_FAR, _NEAR = 0.05, 0.9999
"""How far a node's result must be off to be blamed, as a part of its largest value; the cosine above which there is nothing to blame."""

_MOST_BYTES = (1 << 31) - 1  # of a model that ONNX Runtime is handed as protobuf


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
        """For each output, the worst of each figure over all sizes, its rows of scores added up; without those of which nothing could be compared."""
        return tuple(worst_of(name, found) for name, found in self._outputs().items() if any(not each.empty for each in found))

    @property
    def unseen(self) -> Mapping[str, str]:
        """Outputs of which nothing could be compared at any size, and why."""
        return {name: found[0].empty for name, found in self._outputs().items() if all(each.empty for each in found)}

    def _outputs(self) -> Mapping[str, list[Agreement]]:
        outputs: dict[str, list[Agreement]] = {}
        for each in self.agreements:
            outputs.setdefault(each.output, []).append(each)
        return outputs


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
        found += [agreement_of(name, size, array, got[name]) for name, array in want.items()]
    far = any(not each.is_within(cosine=_NEAR, top1=True) for each in found)
    blame = pair.blame(rows.batch(pair.fixed or 1) if sizes else rows.item()) if far else ""
    return Comparison(agreements=tuple(found), not_run=not_run, blame=blame, foldable=pair.foldable)
