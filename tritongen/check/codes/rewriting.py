"""TG150 to TG164: a new model file made from another one (sizes fixed, a batch axis made variable, optimised, proven)."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence


def _entry(code: str, name: str, summary: str, why: str, fix: str, consequence: Consequence | None = None) -> CodeEntry:
    return CodeEntry(code, name, consequence, summary, why, fix)


ENTRIES = (
    _entry(
        "TG150",
        "size-against-a-fixed-one",
        "A size that is given agrees with the file's own sizes and with the other given ones.",
        "A fixed dimension has one size, and dimensions of one symbol are equal.",
        "Write the file's own size, or -1 to leave the dimension as it is.",
        Consequence.REFUSED,
    ),
    _entry(
        "TG151",
        "shape-that-fits-no-input",
        "A shape that is given belongs to an input and has its number of dimensions.",
        "Shapes are given in full, with the batch dimension, and sizes start at 1.",
        "Use the names and the number of dimensions that the message shows.",
    ),
    _entry(
        "TG152",
        "sizes-the-graph-cannot-take",
        "The graph can be computed with the sizes that are given.",
        "ONNX's shape inference finds operators that contradict them; ONNX Runtime would fail in the same place.",
        "Give sizes that the model was made for.",
        Consequence.FAILS,
    ),
    _entry(
        "TG153",
        "tensor-without-batch-axis",
        "Axis 0 of every input and output is the batch.",
        "Only then can rows of several requests be put together.",
        "Export the model with the batch as first axis of the tensor that the message names.",
    ),
    _entry(
        "TG154",
        "node-that-pins-the-batch",
        "No operator of the graph holds the batch size as a constant.",
        "A Reshape or an Expand to a constant fails, or mixes rows, with any other batch size.",
        "Export the model with a symbolic batch size.",
    ),
    _entry(
        "TG155",
        "rewritten-model-not-valid",
        "A rewritten model is as valid as the one that it was made from.",
        "ONNX's checker is asked before anything is written.",
        "Report it with the model, and serve the original until then.",
    ),
    _entry(
        "TG156",
        "optimisation-not-portable",
        "An optimisation level gives a file that other machines and releases can load.",
        "The highest levels of ONNX Runtime write layouts and operators for the machine that they run on.",
        "Use a lower level; ONNX Runtime applies the rest when the model loads.",
    ),
    _entry(
        "TG157",
        "operators-the-target-lacks",
        "An optimised model has only operators that the target's ONNX Runtime has.",
        "Fused operators are added from release to release.",
        "Use a lower level, or a newer release.",
        Consequence.REFUSED,
    ),
    _entry(
        "TG158",
        "optimised-answers-differ",
        "An optimised model answers as the original does.",
        "Both are run on the same input and compared.",
        "Use a lower level, or serve the original.",
        Consequence.MISBEHAVES,
    ),
    _entry(
        "TG159",
        "model-onnxruntime-cannot-run",
        "ONNX Runtime can optimise and run the model.",
        "Triton's backend is the same library.",
        "Export the model again, or install another onnxruntime.",
        Consequence.REFUSED,
    ),
    _entry(
        "TG160",
        "batch-size-that-fails",
        "The model runs with every batch size that is asked for.",
        "A graph may name a batch axis and still compute with a constant.",
        "Ask for batch sizes that run, or export the model with a real batch axis.",
        Consequence.FAILS,
    ),
    _entry(
        "TG161",
        "outputs-without-rows",
        "Every output has one row for each row of the input.",
        "Triton cuts the answer of a batch by rows.",
        "Export the model so that every output has the batch as first axis.",
        Consequence.MISBEHAVES,
    ),
    _entry(
        "TG162",
        "rows-that-depend-on-each-other",
        "A row's answer does not depend on the other rows of its batch.",
        "With dynamic batching the other rows are other people's requests.",
        "Serve the model without batching.",
        Consequence.MISBEHAVES,
    ),
    _entry(
        "TG163",
        "rewrite-not-proven",
        "A rewritten model was run before it is used.",
        "Nothing could be run here, so nothing is proven.",
        "Install onnxruntime, or give samples.",
        Consequence.FRAGILE,
    ),
    _entry(
        "TG164",
        "unwritable-model",
        "The new model file can be written, and is not the one it is made from.",
        "The operating system refused it.",
        "Give another target.",
    ),
)
