"""`convert`: a copy of a model that computes in a lower precision.

The table `PRECISIONS` has a function for each precision that is a property of the file. FP16 is onnxconverter-common's work on a graph that is prepared for it
(`halves.py` beside this module); what comes out is held against ONNX's type rules, since a graph whose types do not fit loads nowhere. Whether its answers are
good enough is another question: see `comparison.py`.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import onnx

from tritongen.diagnostics import Diagnostic
from tritongen.errors import ModelFileError
from tritongen.rewrite.document import MALFORMED, Rewritten, graphs, load, problem, save, skeleton, tensors, writing
from tritongen.rewrite.halves import node_label, to_fp16
from tritongen.rewrite.recipe import Convert

PRECISIONS: Mapping[str, Callable[[onnx.ModelProto, Convert], list[str]]] = {"fp16": to_fp16}
"""Precision → the function that changes a model, weights included, in place, and says in sentences what it did; none where there was nothing to do."""

_EMBEDDABLE_BYTES = 1 << 30  # a protobuf file ends at 2 GiB
_OWN_FILE_FROM_BYTES = 1024
_KEEP = "write precision: fp32, or keep what is in the way in FP32: conversion: {fp32_operators: [...]}"


def convert(path: Path, target: Path, how: Convert) -> Rewritten:
    """Converts the model at `path` and writes it to `target`. All of its weights are read into memory.

    Weights that were in files of their own, or that are too many for one file, go to a new file `<target's name>.data` beside it. A model without anything to
    convert gets no notes.

    Args:
        path: the ONNX model.
        target: the file to write.
        how: the precision, one of `PRECISIONS`, and what stays as it is.

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG166 for a graph that cannot be converted, and for operators or nodes to keep that there are not;
            TG155, TG164 as for every rewrite.
    """
    model, signature = load(path)
    apart = bool(signature.external_data)
    with writing(path, target):
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
    before = _type_problem(model)
    notes = convert_in_place(path, model, how)
    after = "" if before else _type_problem(model)
    if after:
        message = f"the graph cannot be converted to {how.precision}: a node would get types that do not fit each other: {after}"
        raise ModelFileError([problem("TG166", path, message, _KEEP, "no backend loads such a graph")])
    return _write(model, path, target, notes, apart=apart)


def convert_in_place(path: Path, model: onnx.ModelProto, how: Convert) -> list[str]:
    """Converts the model, which was read from `path`, and says what was done. Weights without values stay without, and get the types and sizes of the others.

    Raises ModelFileError (TG166) for a graph that cannot be converted, and for operators or nodes to keep that there are not.
    """
    if unknown := [*_unknown(path, model, how)]:
        raise ModelFileError(unknown)
    try:
        return PRECISIONS[how.precision](model, how)
    except MALFORMED as error:
        raise ModelFileError([problem("TG166", path, f"the graph cannot be converted to {how.precision}: {_text(error)}", _KEEP)]) from error


def _unknown(path: Path, model: onnx.ModelProto, how: Convert) -> Iterator[Diagnostic]:
    """Operators that do not exist, and nodes that this model has not."""
    nodes = [node for graph in graphs(model.graph) for node in graph.node]
    inside = [node for function in model.functions for node in function.node]
    operators = {node.op_type for node in (*nodes, *inside)}
    for name in how.fp32_operators:
        if name not in operators and not onnx.defs.has(name):
            close = difflib.get_close_matches(name, operators, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "write the types of operators as ONNX has them, such as LayerNormalization"
            yield problem("TG166", path, f"there is no operator '{name}' to keep in FP32 (conversion.fp32_operators)", hint)
    names = {node_label(node) for node in nodes}
    for name in how.fp32_nodes:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "nodes are named in the ONNX file, those without a name by what they compute; Netron shows both"
            yield problem("TG166", path, f"the graph has no node '{name}' to keep in FP32 (conversion.fp32_nodes)", hint)


def _type_problem(model: onnx.ModelProto) -> str:
    """Why ONNX's type rules refuse the graph, on one line; empty where they do not."""
    try:
        onnx.shape_inference.infer_shapes(skeleton(model), check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        return _text(error)
    return ""


def _text(error: Exception) -> str:
    return f"{' '.join(str(error).split()) or type(error).__name__:.400}"


def _write(model: onnx.ModelProto, path: Path, target: Path, notes: list[str], *, apart: bool) -> Rewritten:
    size = sum(len(tensor.raw_data) for tensor in tensors(model.graph))
    if not apart and size <= _EMBEDDABLE_BYTES:
        return save(model, path, target, notes)
    with writing(path, target), tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        staged = Path(folder) / target.name
        data = f"{target.name}.data"
        onnx.save_model(model, str(staged), save_as_external_data=True, location=data, size_threshold=_OWN_FILE_FROM_BYTES)
        light = onnx.load(str(staged), load_external_data=False)
        return save(light, path, target, notes, beside=staged.with_name(data))
