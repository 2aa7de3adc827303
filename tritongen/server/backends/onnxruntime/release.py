"""What an older release would have made of a model file that this onnxruntime opens.

onnxruntime does not say which operator sets and which IR version a file is stamped with, so the stamps are read from the file: the outermost fields of ONNX's
`ModelProto` (ir_version 1, opset_import 8), the graph between them skipped unread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import RefusedError
from .verdicts import ortload

_OUTSIDE = re.compile(r"External data path (validation failed|escapes)|Absolute path not allowed for external data")

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_IR_VERSION, _OPSET_IMPORT = 1, 8
_SMALL_BYTES = 1 << 16


@dataclass(frozen=True)
class Target:
    """The release that the server stands for, from its command line.

    Attributes:
        release: such as `24.10`; empty where the server was told none.
        onnxruntime: the version of ONNX Runtime in it; empty where that is not known.
        strict: refuse what that release refuses, in place of a remark.
        bf16: whether the onnxruntime backend of that release knows BF16.
        reads_outside: whether its ONNX Runtime reads external data outside the folder of the model's file.
    """

    release: str
    onnxruntime: str
    strict: bool
    bf16: bool
    reads_outside: bool


def target(settings: Mapping[str, str]) -> Target:
    """The target in the server's `--backend-config` settings, as `tritongen.server.attempt` writes them."""
    return Target(
        settings.get("tritongen-release", ""),
        settings.get("tritongen-onnxruntime", ""),
        settings.get("tritongen-strict") == "true",
        settings.get("tritongen-bf16") != "false",
        settings.get("tritongen-reads-outside") == "true",
    )


def confined_since(message: str, wanted: Target) -> str:
    """What to add to an error of this onnxruntime about external data outside the model's folder, which the target's would read; empty else."""
    if not wanted.reads_outside or _OUTSIDE.search(message) is None:
        return ""
    return (
        f"; release {wanted.release} would load it: its ONNX Runtime {wanted.onnxruntime} reads external data outside the folder of the model's file, and the "
        "newer one here does not. Put the data file beside the model's file, where every release reads it"
    )


def newer_than(path: Path, wanted: Target) -> str:
    """What of a model file is too new for the target, as a remark; empty where nothing is, or nothing is known.

    Raises RefusedError, in ONNX Runtime's words, where the target is strict.
    """
    limits = ortload.limits_of(wanted.onnxruntime)
    if limits is None:
        return ""
    ir, opsets = stamps(path)
    problem = next(ortload.too_new(opsets, ir, limits), None)
    if problem is None:
        return ""
    if wanted.strict:
        raise RefusedError(f"onnx runtime error 1: Load model from {path} failed:{problem.message}")
    return (
        f"release {wanted.release} would refuse it: it is stamped with {problem.name} {problem.found}, and ONNX Runtime {wanted.onnxruntime} of that release "
        f"opens up to {problem.expected}"
    )


def stamps(path: Path) -> tuple[int, dict[str, int]]:
    """The IR version and the operator sets by domain; what the file does not say is 0, or absent."""
    ir, opsets = 0, {}
    with path.open("rb") as file:
        for number, value in _fields(file, os.fstat(file.fileno()).st_size):
            if number == _IR_VERSION and isinstance(value, int):
                ir = value
            elif number == _OPSET_IMPORT and isinstance(value, bytes):
                domain, version = _opset(value)
                opsets[domain] = version
    return ir, opsets


def _opset(message: bytes) -> tuple[str, int]:
    """Domain and version of an `OperatorSetIdProto`."""
    domain, version = "", 0
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag & 7 == _LENGTH:
            size, position = _varint(message, position)
            domain = message[position : position + size].decode("utf-8", "replace")
            position += size
        else:
            version, position = _varint(message, position)
    return domain, version


def _fields(file: BinaryIO, size: int) -> Iterator[tuple[int, int | bytes]]:
    """Fields of the outermost message, long ones skipped. onnxruntime has opened the file before: its framing is right."""
    position = 0
    while position < size:
        file.seek(position)
        head = file.read(20)
        tag, used = _varint(head, 0)
        kind = tag & 7
        if kind == _VARINT:
            value, used = _varint(head, used)
            yield tag >> 3, value
        elif kind == _LENGTH:
            length, used = _varint(head, used)
            if length <= _SMALL_BYTES:
                file.seek(position + used)
                yield tag >> 3, file.read(length)
            used += length
        elif kind in (_FIXED32, _FIXED64):
            used += 4 if kind == _FIXED32 else 8
        else:
            return
        position += used


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A variable-length number and the position behind it."""
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return value, max(position, 1)
