"""ONNX files: `read_onnx` gives a model's `Signature` without reading its weights and without importing onnx.

Judges what `modelproto.py` found in the file. The rules about graph inputs are ONNX Runtime's, the rules about types are those of Triton's ONNX Runtime
backend. Codes of this package: TG020 no such file, TG021 not a regular file, TG022 unreadable, TG023 empty, TG024 Git LFS pointer, TG025 another kind of
file, TG026 cut short, TG027 damaged, TG028 incomplete model, TG029 tensor name, TG030 data type that Triton lacks, TG031 not a tensor, TG032 no data type,
TG033 external data outside the folder, TG034 missing, TG035 too short, TG036 contradictory, TG037 larger than protobuf allows, TG038 more work to read
than any model should be.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.dtypes import DTYPES, from_onnx
from tritongen.errors import ModelFileError
from tritongen.signature.external import read_external
from tritongen.signature.modelfile import HEAD_BYTES, REFUSED, opened, recognise, recognise_text, refuse
from tritongen.signature.modelproto import MODEL_TAGS, ModelProto, walk
from tritongen.signature.tensors import Signature, TensorSpec
from tritongen.signature.valueinfo import ValueInfo, text
from tritongen.signature.wire import CutShortError, Source, TooMuchWorkError, WireError

_MAX_PROTOBUF_BYTES = (1 << 31) - 1
_FIRST_IR_WITH_DEFAULTS = 4  # before it every initializer had to be listed as an input, and none could be replaced
UNSEEN = "Triton may load it; nothing about the model file was checked"
"""The consequence of a limit of this reader."""

_AGAIN = "export, copy or download the model again"
_LACKING = {
    14: "COMPLEX64", 15: "COMPLEX128", 17: "FLOAT8E4M3FN", 18: "FLOAT8E4M3FNUZ", 19: "FLOAT8E5M2", 20: "FLOAT8E5M2FNUZ", 21: "UINT4", 22: "INT4",
    23: "FLOAT4E2M1", 24: "FLOAT8E8M0", 25: "UINT2", 26: "INT2", 27: "FLOAT6E2M3", 28: "FLOAT6E3M2",
}  # fmt: skip  # ONNX's names of the types that no Triton protocol has


def read_onnx(path: Path, *, confined: bool = True) -> Signature:
    """Reads the signature of an ONNX model.

    Takes constant memory and a time that depends on the number of nodes and tensors, not on the size of the weights. External data files are looked at (they
    must be there and long enough), not read. An optional input of a type that Triton lacks is left out: no request could set it, so its default is used.

    Example::

        for tensor in read_onnx(Path("resnet50.onnx")).inputs:
            print(tensor.describe())  # data FP32 [N, 3, 224, 224]

    Args:
        path: the file.
        confined: whether its external data must lie in its folder, so that it can be copied with it; else `ExternalData.outside` says where it does not.

    Raises:
        ModelFileError: with every problem of the file, codes TG020 to TG038.
    """
    with opened(path) as (descriptor, size):
        head = os.pread(descriptor, HEAD_BYTES, 0)
        other = recognise(head, size)
        if other:
            raise refuse(other[0], path, *other[1:])
        try:
            model = walk(Source(descriptor, size))
        except WireError as error:
            raise _not_a_model(path, head, error) from error
    if not model.has_graph:
        other = recognise_text(head)
        if other:
            raise refuse(other[0], path, *other[1:])
    return _signature(model, path, size, confined=confined)


def _not_a_model(path: Path, head: bytes, error: WireError) -> ModelFileError:
    """The finding for bytes that are not protobuf: a text file, a model cut short, or a damaged one."""
    other = recognise_text(head)
    if other:
        return refuse(other[0], path, *other[1:])
    if isinstance(error, TooMuchWorkError):
        hint = "fuse or simplify the graph (onnxsim, ONNX Runtime's optimizer), or check that it is the right file"
        return refuse("TG038", path, f"the graph is too large to be looked at: {error}", hint, UNSEEN)
    if isinstance(error, CutShortError) and error.tag in MODEL_TAGS | {0}:
        return refuse("TG026", path, f"the file is cut short: {error}", f"{_AGAIN}; compare its size with the original's")
    return refuse("TG027", path, f"the file is not an ONNX model, or it is damaged: {error}", _AGAIN)


def _signature(model: ModelProto, path: Path, size: int, *, confined: bool) -> Signature:
    """Judges the facts. Raises ModelFileError with everything that is wrong."""
    listed_inputs, optional_inputs = _split_inputs(model)
    inputs, findings = _border("input", listed_inputs, path)
    outputs, output_findings = _border("output", model.outputs, path)
    external_data, external_findings = read_external(model.external, path, confined=confined)
    findings = _model_findings(model, path, size) + findings + output_findings + external_findings
    if findings:
        raise ModelFileError(dict.fromkeys(findings))
    return Signature(
        inputs=inputs,
        outputs=outputs,
        optional_inputs=tuple(_spec(value) for value in optional_inputs if _is_servable(value)),
        opsets={_domain(domain): version for domain, version in model.opsets},
        custom_domains=frozenset(text(domain) for domain, _ in model.operators - model.functions),
        external_data=external_data,
        ir_version=model.ir_version,
        producer=" ".join(text(part) for part in (model.producer, model.producer_version) if part),
        convolves=model.convolves,
    )


def _split_inputs(model: ModelProto) -> tuple[list[ValueInfo], list[ValueInfo]]:
    """The inputs that a request must give, and those it may give.

    ONNX Runtime's rule: a graph input that is also an initializer is a default that a request can override from IR version 4 on, and a constant before.
    """
    required = [value for value in model.inputs if value.name not in model.initializers]
    if model.ir_version < _FIRST_IR_WITH_DEFAULTS:
        return required, []
    return required, [value for value in model.inputs if value.name in model.initializers]


def _model_findings(model: ModelProto, path: Path, size: int) -> list[Diagnostic]:
    """What is wrong with the model as a whole: TG028 and TG037."""
    findings = []
    if not model.has_graph:
        hint = "give an ONNX model; a tensor (.pb), a TensorFlow graph or a checkpoint is also protobuf, but holds no ONNX graph"
        return [_finding("TG028", path, "the file has no ONNX graph", hint)]
    if not model.outputs:
        findings.append(_finding("TG028", path, "the model has no outputs", "mark the tensors it should answer with as graph outputs when exporting"))
    if model.ir_version <= 0:
        findings.append(_finding("TG028", path, "the model states no IR version", f"set model.ir_version and save it again, or {_AGAIN}"))
    if not model.opsets:
        hint = f"{_AGAIN}; a file cut exactly behind its graph looks like this too"
        findings.append(_finding("TG028", path, "the model states no operator set (opset_import)", hint))
    if size > _MAX_PROTOBUF_BYTES:
        message = f"the file has {size:,} bytes; protobuf cannot parse more than {_MAX_PROTOBUF_BYTES:,} (2 GiB)"
        findings.append(_finding("TG037", path, message, "keep the weights beside the model: onnx.save(model, path, save_as_external_data=True)"))
    return findings


def _border(side: str, values: Sequence[ValueInfo], path: Path) -> tuple[tuple[TensorSpec, ...], list[Diagnostic]]:
    """The tensors on one side of the graph, and what is wrong with them."""
    findings = _name_findings(side, values, path)
    for value in values:
        findings += _type_findings(side, value, path)
    return tuple(_spec(value) for value in values if _is_servable(value)), findings


def _name_findings(side: str, values: Iterable[ValueInfo], path: Path) -> list[Diagnostic]:
    """TG029: names that a config or a request cannot write."""
    findings = []
    for name, count in Counter(value.name for value in values).items():
        shown = text(name)
        if not name:
            findings.append(_finding("TG029", path, f"an {side} of the model has no name", f"name every {side} when exporting"))
        elif shown.encode() != name:
            findings.append(_finding("TG029", path, f"the name of {side} '{shown}' is not valid UTF-8", "rename the tensor, or export again"))
        if count > 1:
            findings.append(_finding("TG029", path, f"{count} {side}s of the model have the same name {shown!r}", f"give every {side} its own name"))
    return findings


def _type_findings(side: str, value: ValueInfo, path: Path) -> list[Diagnostic]:
    """TG030 to TG032: values that Triton cannot carry."""
    name = text(value.name)
    if value.kind not in ("", "tensor"):
        hint = "export the model so that it gives plain tensors (scikit-learn: `zipmap=False`; sequences: stack or pad them into one tensor)"
        return [_finding("TG031", path, f"{side} {name!r} is a {value.kind} value; Triton has only tensors", hint)]
    if not value.kind or value.elem_type == 0:
        hint = "store the types in the file: onnx.save(onnx.shape_inference.infer_shapes(onnx.load(path)), path)"
        return [_finding("TG032", path, f"the file states no data type for {side} {name!r}", hint)]
    if from_onnx(value.elem_type) is None:
        kind = _LACKING.get(value.elem_type, f"of the unknown number {value.elem_type}")
        hint = f"cast the {side} to one of {', '.join(dtype.wire for dtype in DTYPES)} inside the model"
        return [_finding("TG030", path, f"{side} {name!r} has the ONNX type {kind}, which Triton does not have", hint)]
    return []


def _is_servable(value: ValueInfo) -> bool:
    return value.kind == "tensor" and from_onnx(value.elem_type) is not None


def _spec(value: ValueInfo) -> TensorSpec:
    """A servable value as a TensorSpec."""
    dtype = from_onnx(value.elem_type)
    assert dtype is not None, "callers ask _is_servable first"
    return TensorSpec(text(value.name), dtype, value.shape)


def _domain(raw: bytes) -> str:
    """A domain's name; ONNX's own has two, and "" is the one used here."""
    return "" if raw == b"ai.onnx" else text(raw)


def _finding(code: str, path: Path, message: str, hint: str) -> Diagnostic:
    return Diagnostic(code, message, Location(str(path)), REFUSED, hint)
