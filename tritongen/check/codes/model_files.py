"""TG020 to TG038: model files, as the signature reader sees them. ONNX Runtime refuses all of these, or Triton has no tensor for what they hold."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

_REFUSED = Consequence.REFUSED
_AGAIN = "Export, copy or download the model again."


def _entry(code: str, name: str, summary: str, why: str, fix: str = _AGAIN) -> CodeEntry:
    return CodeEntry(code, name, _REFUSED, summary, why, fix)


ENTRIES = (
    _entry(
        "TG020",
        "no-such-model-file",
        "The model file is there.",
        "Triton finds no model file and the version does not load.",
        "Correct the path, or copy the file.",
    ),
    _entry(
        "TG021",
        "model-file-that-is-no-file",
        "A model file is a regular file.",
        "Folders, pipes and devices are not read: a pipe without a writer never ends.",
        "Give the .onnx file.",
    ),
    _entry(
        "TG022",
        "unreadable-model-file",
        "The model file can be read.",
        "The operating system refuses it; the server's user needs the right too.",
        "chmod, or mend the disk.",
    ),
    _entry("TG023", "empty-model-file", "The model file holds something.", "An interrupted copy or export leaves a file of 0 bytes."),
    _entry(
        "TG024",
        "git-lfs-pointer",
        "The model file is not a Git LFS pointer.",
        "A clone without Git LFS holds a few lines of text in place of each large file.",
        "Run `git lfs install` once, then `git lfs pull`.",
    ),
    _entry(
        "TG025",
        "model-file-of-another-kind",
        "The model file is an ONNX model and not something else under that name.",
        "TensorRT plans, zip archives, pickles and web pages are recognised by their first bytes.",
        "Give the ONNX file, or name the backend that the file is for.",
    ),
    _entry("TG026", "model-file-cut-short", "The model file is complete.", "The last field claims more bytes than the file has."),
    _entry("TG027", "damaged-model-file", "The model file is valid protobuf.", "ONNX Runtime fails with 'Protobuf parsing failed'."),
    _entry(
        "TG028",
        "incomplete-model",
        "A model has a graph, outputs, an IR version and an operator set.",
        "ONNX Runtime refuses a model without any one of them.",
    ),
    _entry(
        "TG029",
        "tensor-name-nobody-can-use",
        "Inputs and outputs have names, in UTF-8, and each its own.",
        "A request names its tensors, and a config cannot hold bytes that are not UTF-8.",
        "Name every input and output when exporting.",
    ),
    _entry(
        "TG030",
        "dtype-triton-lacks",
        "Inputs and outputs have dtypes that Triton knows.",
        "Triton's protocols have no complex, 4-bit or 8-bit float tensors.",
        "Cast inside the model.",
    ),
    _entry(
        "TG031",
        "value-that-is-no-tensor",
        "Inputs and outputs are plain tensors.",
        "Triton carries no sequences, maps, optionals or sparse tensors.",
        "Export with plain tensors (scikit-learn: `zipmap=False`).",
    ),
    _entry(
        "TG032",
        "tensor-without-dtype",
        "The file states the dtype of each input and output.",
        "Without it ONNX Runtime cannot bind the tensor.",
        "Save the model after shape inference.",
    ),
    _entry(
        "TG033",
        "external-data-outside",
        "External data lies in the model's folder.",
        "A copy of the folder lacks the weights, and ONNX Runtime 1.24.1 and newer (releases from 26.02 on) refuse absolute paths and paths and links that "
        "leave it; older ones read them.",
        "Put the data file beside the model and save it again with a relative location.",
    ),
    _entry(
        "TG034",
        "external-data-missing",
        "Files with external data are there and readable.",
        "ONNX Runtime cannot load the weights.",
        "Copy the data file beside the model.",
    ),
    _entry(
        "TG035",
        "external-data-too-short",
        "Files with external data hold all that the model refers to.",
        "The file is cut short or belongs to another export.",
        "Copy or download the data file again.",
    ),
    _entry(
        "TG036",
        "external-data-contradiction",
        "References to external data agree with the tensors' shapes.",
        "ONNX Runtime compares both and refuses a difference.",
    ),
    _entry(
        "TG037",
        "model-file-over-2-gib",
        "A model file stays below 2 GiB.",
        "Protobuf cannot parse more.",
        "Keep the weights beside the model: `onnx.save(model, path, save_as_external_data=True)`.",
    ),
    CodeEntry(
        "TG038",
        "model-graph-out-of-reach",
        Consequence.FRAGILE,
        "A model's graph has a size that exporters write.",
        "Reading one takes a number of steps that grows with its nodes and weights, not with their bytes; files that take more than 3,000,000, as a graph of "
        "some 150,000 nodes with as many weights, are given up, so that crafted bytes keep nobody busy. Triton has no such limit.",
        "Fuse or simplify the graph, or check that it is the right file.",
    ),
)
