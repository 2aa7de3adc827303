"""TG150 to TG165: rewriting an ONNX graph (`freeze`, `rebatch`, `optimize`), and the proof of a batch axis."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

_REFUSED, _FAILS, _FRAGILE = Consequence.REFUSED, Consequence.FAILS, Consequence.FRAGILE
_NO_BATCHING = "Write `batching: none`, or export the model in evaluation mode with a dynamic batch axis."

ENTRIES = (
    CodeEntry(
        "TG150",
        "frozen-size-against-model",
        _REFUSED,
        "A size to be written into a model agrees with the fixed ones, and equal symbols get equal sizes.",
        "The graph was made for the size it states; ONNX Runtime refuses others.",
        "Give the size that the model has, or -1, or export the model with a variable dimension.",
    ),
    CodeEntry(
        "TG151",
        "frozen-shape-of-no-input",
        None,
        "A shape or sample names an input and has its number of dimensions.",
        "What fits no input would be dropped.",
        "Use the names and numbers of dimensions that the message lists.",
    ),
    CodeEntry(
        "TG152",
        "frozen-size-no-graph-takes",
        _FAILS,
        "The graph can take the sizes written into its inputs.",
        "ONNX's shape inference finds a node whose inputs no longer fit each other.",
        "Give sizes that the model was made for.",
    ),
    CodeEntry(
        "TG153",
        "tensor-without-batch-axis",
        _REFUSED,
        "Axis 0 of every input and output of a model to be rebatched is the batch.",
        "Triton batches along axis 0 of all tensors; a scalar, a state with its batch on axis 1 or a mean over all rows has none.",
        _NO_BATCHING,
    ),
    CodeEntry(
        "TG154",
        "node-that-pins-the-batch",
        _REFUSED,
        "No node of a model to be rebatched fixes the batch size in a way that cannot be repaired.",
        "Targets of Reshape, sizes of Resize and initial states are rewritten; rows split apart, picked or mixed cannot be.",
        _NO_BATCHING,
    ),
    CodeEntry(
        "TG155",
        "rewritten-model-not-valid",
        _REFUSED,
        "A rewritten model passes ONNX's checker.",
        "It is a fault of tritongen where the original passed.",
        "Report it, and serve the model as it is.",
    ),
    CodeEntry(
        "TG156",
        "optimisation-not-portable",
        None,
        "An optimisation level is known, and portable unless a machine is named.",
        "ONNX Runtime's level `all` lays the graph out for the processor that it runs on.",
        "Use `basic` or `extended`, or name the hardware.",
    ),
    CodeEntry(
        "TG157",
        "operator-target-lacks",
        _REFUSED,
        "An optimised graph has only operators that its level and the target's ONNX Runtime know.",
        "Fused operators are ONNX Runtime's own and came with different versions.",
        "Use level `basic`, or a newer release.",
    ),
    CodeEntry(
        "TG158",
        "rewritten-answers-differ",
        None,
        "A rewritten model answers as the original does.",
        "Both are run on the same seeded inputs; clients would get other answers.",
        "Serve the model as it is, or allow a larger tolerance where you know the reason.",
    ),
    CodeEntry(
        "TG159",
        "model-that-cannot-be-optimised",
        None,
        "ONNX Runtime can optimise the model and run both forms.",
        "A result that was not compared with the original is not written.",
        "Give shapes and samples that the model accepts, raise the limit, or serve the model as it is.",
    ),
    CodeEntry(
        "TG160",
        "batch-size-that-fails",
        _FAILS,
        "A model runs at every batch size that is asked of it.",
        "A variable axis 0 says nothing about the nodes inside: a Reshape to a constant fails for every other size.",
        _NO_BATCHING,
    ),
    CodeEntry(
        "TG161",
        "output-without-a-row-each",
        _FAILS,
        "Each output has as many rows as the batch.",
        "Triton gives each request its rows of the output.",
        _NO_BATCHING,
    ),
    CodeEntry(
        "TG162",
        "rows-that-depend-on-each-other",
        _FAILS,
        "Each row of a batch is answered as if it were alone.",
        "Triton batches requests of different clients: a mean or a Softmax over the batch mixes them.",
        _NO_BATCHING,
    ),
    CodeEntry(
        "TG163",
        "batch-axis-not-proven",
        _FRAGILE,
        "A batch axis was proven by running the model.",
        "A declared batch axis can be a lie that only a run shows.",
        "Install onnxruntime, or raise the limit.",
    ),
    CodeEntry(
        "TG164",
        "rewritten-model-not-written",
        None,
        "A rewritten model has a place of its own that can be written.",
        "Rewrites never change the file they read.",
        "Check the target, its permissions and the space left.",
    ),
    CodeEntry(
        "TG165",
        "graph-that-cannot-be-followed",
        _REFUSED,
        "A graph to be rewritten is valid ONNX.",
        "A node without its inputs, or a tensor whose content does not fit its shape, cannot be followed.",
        "Export, copy or download the model again.",
    ),
)
