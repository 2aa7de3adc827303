"""A model file before it is parsed: opening it safely, and recognising files that are something else.

Knows nothing about what a model contains. Opening never hangs (a FIFO has no writer, a device may block) and never follows a directory.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import ModelFileError

HEAD_BYTES = 1024
"""How much of a file `recognise` wants to see."""

REFUSED = "Triton refuses to load the model"
"""The consequence that most findings about a model file share."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_EXPORT = "export the model to ONNX and give that file"

# How the file begins, what it is, what to do. Sources: the format's own definition; for TensorRT, what its builder writes.
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (rb"[fp]trt", "a TensorRT plan", "give the ONNX file that the plan was built from"),
    (rb"vtrt", "a plan of TensorRT-RTX", "give the ONNX file that the plan was built from"),
    (rb'..\0\0\{"', "a TensorRT plan with a JSON header (as Ultralytics writes them)", "give the ONNX file that the plan was built from"),
    (rb".{4}TFL3", "a TensorFlow Lite model", "convert it with tf2onnx (--tflite) and give the ONNX file"),
    (rb".{4}ORTM", "an ONNX Runtime .ort model", "give the .onnx file that it was converted from"),
    (rb'.{5}\0\0\0\{"', "a safetensors file: weights without a graph", _EXPORT),
    (rb"PK\x03\x04", "a zip archive, as torch.save and Keras write", "export with torch.onnx.export (or unpack the archive) and give the .onnx file"),
    (rb"\x80[\x02-\x05]", "a Python pickle, as scikit-learn and older torch.save write", _EXPORT),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes", "convert it with tf2onnx and give the ONNX file"),
    (rb"\x93NUMPY", "a numpy array", "give the model file; arrays belong under `samples`"),
    (rb"GGUF", "a GGUF file of llama.cpp", _EXPORT),
    (rb"\x1f\x8b", "gzip-compressed", "unpack it (gunzip) and give the .onnx file"),
    (rb"\x28\xb5\x2f\xfd", "zstd-compressed", "unpack it (unzstd) and give the .onnx file"),
    (rb"BZh[1-9]", "bzip2-compressed", "unpack it (bunzip2) and give the .onnx file"),
    (rb"\xfd7zXZ\0", "xz-compressed", "unpack it (unxz) and give the .onnx file"),
    (rb".{257}ustar", "a tar archive", "unpack it (tar xf) and give the .onnx file"),
    (rb"\x7fELF", "a program or shared library", "give the model file"),
    (rb"%PDF-", "a PDF document", "give the model file"),
)


def refuse(code: str, path: Path, message: str, hint: str, consequence: str = REFUSED) -> ModelFileError:
    """The error that holds one finding about a file as a whole."""
    return ModelFileError([Diagnostic(code, message, Location(str(path)), consequence, hint)])


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[int, int]]:
    """Opens a regular file for reading and gives its descriptor and its size in bytes.

    Raises ModelFileError: TG020 no such file, TG021 not a regular file, TG022 cannot be read (also where reading inside the block fails), TG023 empty.
    """
    try:
        descriptor, size = _open(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        yield descriptor, size
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def recognise_pointer(head: bytes, size: int) -> tuple[str, str, str] | None:
    """Tells whether any kind of file is a Git LFS pointer: code, what is wrong, what to do. None where it is none."""
    if not head.startswith(_LFS_POINTER) or size > HEAD_BYTES:
        return None
    message = "the file is a Git LFS pointer, not the content it stands for"
    return "TG024", message, "run `git lfs pull` in its repository (and `git lfs install` once before)"


def recognise(head: bytes, size: int) -> tuple[str, str, str] | None:
    """Tells what a file is by its first `HEAD_BYTES` bytes, where that is certain: code, what is wrong, what to do. None where it may be a model."""
    pointer = recognise_pointer(head, size)
    if pointer:
        return pointer
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head")):
        hint = "the download gave a login, error or preview page: use the direct link to the file, with credentials if it needs them"
        return "TG025", "the file is an HTML page, not an ONNX model", hint
    for beginning, kind, hint in _KINDS:
        if re.match(beginning, head, re.DOTALL):
            return "TG025", f"the file is {kind}, not an ONNX model", hint
    return None


def recognise_text(head: bytes) -> tuple[str, str, str] | None:
    """Tells a text file from a damaged binary one; ask it only about a file that is not a model. Same answer as `recognise`."""
    if any(byte < 0x20 and byte not in b"\t\n\r\f\x1b" for byte in head):
        return None
    try:
        text = head.decode("utf-8").lstrip("\ufeff \t\r\n")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # a character cut by the end of the head is no fault
            return None
        text = head[: error.start].decode("utf-8")
    if text.startswith(("{", "[")):
        return "TG025", "the file is JSON, not an ONNX model", "give the .onnx file, not a description of it or an error answer saved under its name"
    if text.startswith("<"):
        return "TG025", "the file is XML, not an ONNX model", "give the .onnx file (an OpenVINO .xml needs its source model)"
    return "TG025", f"the file is text, not an ONNX model; it begins with {text[:40]!r}", "give the binary .onnx file"


def _open(path: Path) -> tuple[int, int]:
    """Descriptor and size of a regular, non-empty file.

    Looked at before it is opened, because opening a device can do something, and again after, because the name may mean another file by then.
    """
    _require_regular(path, path.stat().st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        _require_regular(path, status.st_mode)
        if status.st_size == 0:
            raise refuse("TG023", path, "the file is empty (0 bytes)", "export or download the model again; an interrupted copy leaves such a file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status.st_size


def _require_regular(path: Path, mode: int) -> None:
    """Raises ModelFileError (TG021) for everything that is not a regular file."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        inside = sorted(entry.name for entry in path.iterdir() if entry.suffix == ".onnx")
        hint = f"give the model file in it: {path / inside[0]}" if len(inside) == 1 else "give the .onnx file"
        if len(inside) > 1:
            hint = f"give one of the files in it: {', '.join(inside[:5])}"
        raise refuse("TG021", path, "this is a directory, not a model file", hint, "Triton looks for a file model.onnx in each version folder")
    kinds = ((stat.S_ISFIFO, "a FIFO (named pipe)"), (stat.S_ISCHR, "a character device"), (stat.S_ISBLK, "a block device"), (stat.S_ISSOCK, "a socket"))
    kind = next((name for test, name in kinds if test(mode)), "not a regular file")
    raise refuse("TG021", path, f"this is {kind}, not a model file", "give a regular file; save what a pipe delivers to one first")


def _unreadable(path: Path, error: OSError | ValueError) -> ModelFileError:
    """The finding for a file that the operating system does not let us open or read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        dangling = path.is_symlink()
        message = f"this link points to {path.readlink()}, which does not exist" if dangling else "there is no such file"
        return refuse("TG020", path, message, _nearby(path), "Triton finds no model file")
    if isinstance(error, ValueError):  # what stat raises for a NUL byte or for a lone surrogate
        return refuse("TG020", path, f"no file can have this name: {error}", "correct the path", "Triton finds no model file")
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = "give the user who runs this read permission on the file and on the folders above it (chmod)" if error.errno in (errno.EACCES, errno.EPERM) else ""
    return refuse("TG022", path, f"the file cannot be read: {reason}", hint or "check the path and the file system it is on")


def _nearby(path: Path) -> str:
    """A hint for a file that is not there: files of a similar name beside it, or the first folder that is missing."""
    folder = path.parent
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        missing = next((parent for parent in reversed(path.parents) if not parent.exists()), folder)
        return f"check the path: the folder {missing} does not exist or cannot be listed"
    close = difflib.get_close_matches(path.name, names, n=3) or sorted(name for name in names if name.endswith(".onnx"))[:5]
    return f"did you mean {' or '.join(str(folder / name) for name in close)}?" if close else "check the path"
