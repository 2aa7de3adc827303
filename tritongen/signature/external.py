"""External data: tensors whose bytes lie in files beside the model. Reads the references and checks them against the files that are there.

ONNX Runtime's rules, found by trying 1.19 to 1.32: from 1.24.1 on a location is relative and stays, with symlinks resolved, inside the model's folder or
inside the folder of the file that a linked model points to (a model cache keeps both as links into one store), while older ones read any file; offset and
length are plain decimal numbers, and a length other than 0 equals what the shape and the type need. Where the model is to be copied (`confined`), a location
that leaves the folder by `..` and comes back is refused too: it must also hold for the copy.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.signature.modelfile import HEAD_BYTES, REFUSED, recognise
from tritongen.signature.modelproto import Tensor
from tritongen.signature.tensors import ExternalData
from tritongen.signature.valueinfo import text

# Bits per element by `TensorProto.DataType`; strings (8) have no fixed size and cannot be external.
_BITS = {
    **dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((7, 11, 13, 14), 64),
    **dict.fromkeys((21, 22, 23), 4),
    **dict.fromkeys((25, 26), 2),
    15: 128,
}
BESIDE = "put the data file beside the model and save the model again: onnx.save(model, path, save_as_external_data=True, location='weights.data')"
"""What to do about a data file outside the model's folder."""

_NOT_COPIED = "a copy of the model would lack its weights; ONNX Runtime refuses the file from 1.24.1 on"
_NUMBER = re.compile(rb"[0-9]{1,18}")


@dataclass
class _DataFile:
    """What the model expects of one data file: the tensors in it, the byte behind the last one, and which tensor that is."""

    tensors: list[str] = field(default_factory=list)
    end: int = 0
    last: str = ""


def read_external(tensors: Sequence[Tensor], model: Path, *, confined: bool = True) -> tuple[tuple[ExternalData, ...], list[Diagnostic]]:
    """The references of a model's tensors to other files, in the file's order, and everything that is wrong with them.

    Findings: TG024 a data file is a Git LFS pointer, TG033 outside the model's folder (where it is `confined` to that), TG034 missing or unreadable, TG035
    too short, TG036 a reference that contradicts itself. One finding per data file, not per tensor. Files outside are not opened.
    """
    found: list[ExternalData] = []
    files: dict[str, _DataFile] = {}
    unusable: dict[str, list[str]] = {}
    for tensor in tensors:
        problem = _reference_problem(tensor)
        if problem:
            unusable.setdefault(problem, []).append(_name(tensor))
            continue
        reference = _reference(tensor)
        found.append(reference)
        file = files.setdefault(reference.location, _DataFile())
        file.tensors.append(_name(tensor))
        end = reference.offset + (reference.length or _needed_bytes(tensor) or 0)
        if end >= file.end:
            file.end, file.last = end, _name(tensor)
    findings = [
        _finding(
            "TG036",
            model,
            f"the external-data reference of {_listed(names)} cannot be used: {problem}",
            "export the model again, or save it again with onnx.save",
        )
        for problem, names in unusable.items()
    ]
    ways = {location: _way_out(location, model, confined=confined) for location in files}
    for location, file in files.items():
        if not ways[location]:
            findings += _file_findings(location, file, model)
        elif confined:
            findings.append(_finding("TG033", model, f"{_lies(location, ways[location])}; it holds {_listed(file.tensors)}", BESIDE, _NOT_COPIED))
        elif not PurePosixPath(location).is_absolute() and not os.path.exists(model.parent / location):  # noqa: PTH110 - Path.exists may raise
            findings.append(_missing(location, file, model))
    return tuple(replace(reference, outside=ways[reference.location]) for reference in found), findings


def _way_out(location: str, model: Path, *, confined: bool) -> str:
    """How a location leaves the model's folder; empty where it does not. A confined one must not even leave it on its way."""
    if PurePosixPath(location).is_absolute():
        return "an absolute path"
    leaves = confined and PurePosixPath(os.path.normpath(location)).parts[:1] == ("..",)
    return "a path that leads out of the model's folder" if leaves or not _inside(model.parent / location, model) else ""


def _lies(location: str, way: str) -> str:
    return f"external data lies at {location!r}, {way}"


def outside_files(found: Sequence[ExternalData]) -> dict[str, str]:
    """Location → what to say of it, for every data file outside the model's folder."""
    return {reference.location: _lies(reference.location, reference.outside) for reference in found if reference.outside}


def _reference_problem(tensor: Tensor) -> str:
    """What is wrong with the reference itself, "" where nothing is."""
    entries = tensor.external or {}
    location = entries.get(b"location", b"")
    if not location:
        return "it names no location"
    if b"\0" in location or text(location).encode() != location:
        return f"its location {text(location)!r} is not a file name in UTF-8"
    for key in (b"offset", b"length"):
        if key in entries and not _NUMBER.fullmatch(entries[key]):
            return f"its {text(key)} {text(entries[key])[:40]!r} is not a whole number of bytes"
    length, needed = int(entries.get(b"length", b"0")), _needed_bytes(tensor)
    if length and needed is not None and length != needed:
        return f"it states {length:,} bytes, but the tensor's shape and type need {needed:,}"
    return ""


def _reference(tensor: Tensor) -> ExternalData:
    """A reference without problems, as a value. A length of 0 means that none is stated, as ONNX Runtime and the onnx package read it."""
    entries = tensor.external or {}
    length = int(entries.get(b"length", b"0"))
    return ExternalData(entries[b"location"].decode(), int(entries.get(b"offset", b"0")), length or None, text(tensor.name))


def _needed_bytes(tensor: Tensor) -> int | None:
    """How many bytes the tensor takes, None where its shape or type does not say."""
    bits = _BITS.get(tensor.data_type)
    if bits is None or any(dim < 0 for dim in tensor.dims):
        return None
    return (math.prod(tensor.dims) * bits + 7) // 8


def _file_findings(location: str, file: _DataFile, model: Path) -> list[Diagnostic]:
    """What is wrong with one data file, checked against the file system."""
    holds = f"it holds {_listed(file.tensors)}"
    folder = model.parent
    path = folder / location
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return [_finding("TG034", path, f"this should be a file with external data of {model.name}; {holds}", "put the data file there")]
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except FileNotFoundError:
        return [_missing(location, file, model)]
    except OSError as error:
        return [_finding("TG034", path, f"the external data file cannot be read: {error.strerror}; {holds}", "check its name, its permissions and its folder")]
    if status.st_size >= file.end:
        return []
    pointer = recognise(head, status.st_size)
    if pointer and pointer[0] == "TG024":
        return [_finding("TG024", path, f"{pointer[1]}; {holds}", pointer[2])]
    message = f"the external data file has {status.st_size:,} bytes, but {file.last} ends at byte {file.end:,}"
    return [_finding("TG035", path, message, "copy or download the data file again; it is cut short or belongs to another export")]


def _missing(location: str, file: _DataFile, model: Path) -> Diagnostic:
    hint = f"copy {location} to {model.parent}; it was written together with the model"
    if "\\" in location:
        hint = "the model was saved on Windows: save it again with a location without backslashes"
    return _finding("TG034", model, f"the external data file {location!r} is missing; it holds {_listed(file.tensors)}", hint)


def _inside(target: Path, model: Path) -> bool:
    """Whether a file lies, with links resolved, below the model's folder or below that of the file the model is a link to."""
    real = os.path.realpath(target)
    folders = {os.path.realpath(model.parent), os.path.dirname(os.path.realpath(model))}  # noqa: PTH120 - realpath never raises, Path.resolve may
    return real in folders or any(real.startswith(os.path.join(folder, "")) for folder in folders)  # noqa: PTH118 - adds the separator


def _name(tensor: Tensor) -> str:
    return repr(text(tensor.name)) if tensor.name else "a tensor without a name"


def _listed(names: Sequence[str]) -> str:
    """Some names for a message: `'w', 'b' and 798 more`."""
    shown = ", ".join(names[:2])
    return shown if len(names) <= 2 else f"{shown} and {len(names) - 2:,} more"


def _finding(code: str, path: Path, message: str, hint: str, consequence: str = REFUSED) -> Diagnostic:
    return Diagnostic(code, message, Location(str(path)), consequence, hint)
