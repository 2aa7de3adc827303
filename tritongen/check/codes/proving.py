"""TG140 to TG145: what running a model once shows, before anything is written."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

_REFUSED, _FAILS, _FRAGILE, _MISBEHAVES = Consequence.REFUSED, Consequence.FAILS, Consequence.FRAGILE, Consequence.MISBEHAVES

ENTRIES = (
    CodeEntry(
        "TG140",
        "not-proven",
        _FRAGILE,
        "The warmup samples were run once before they are written.",
        "A warmup that fails while executing can crash the whole server.",
        "Install onnxruntime, or raise --prove-limit.",
    ),
    CodeEntry(
        "TG141",
        "model-that-does-not-load",
        _REFUSED,
        "ONNX Runtime can load the model.",
        "Triton's backend is the same library.",
        "Export the model again, or use a newer release.",
    ),
    CodeEntry(
        "TG142",
        "warmup-that-fails",
        _FAILS,
        "The warmup samples run.",
        "A warmup that fails while executing can crash the whole server.",
        "Give valid samples or sizes, or write `warmup: none`.",
    ),
    CodeEntry(
        "TG143",
        "batch-axis-that-is-none",
        _FAILS,
        "A variable first axis really is a batch axis.",
        "Some graphs name an axis N and then reshape it to a constant.",
        "Write `batching: none`, or export with a real batch axis.",
    ),
    CodeEntry(
        "TG144",
        "dims-against-onnxruntime",
        _REFUSED,
        "The dims in the config are those that ONNX Runtime infers.",
        "Triton compares with ONNX Runtime's view, which may be tighter than the file.",
        "Add the dims with `config:`, as the hint shows.",
    ),
    CodeEntry(
        "TG145",
        "rows-that-are-none",
        _MISBEHAVES,
        "Every output of a model that batches has one row for each row of the request.",
        "Triton's backend hands out an output's rows by the rows of the requests: with other rows, clients get each other's answers.",
        "Write `batching: none`, or export the model so that axis 0 of every output is the batch.",
    ),
)
