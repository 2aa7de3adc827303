"""Run a model once in ONNX Runtime, to prove what a config will claim about it.

A proof passes or names a reason; it never changes what is written. ONNX Runtime is optional here: where it is missing, or the model is larger than the
limit, the proof says that it could not run.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tritongen import dtypes
from tritongen.errors import EnvironmentProblem
from tritongen.samples import Array, Feed

if TYPE_CHECKING:
    import onnxruntime

DEFAULT_LIMIT_BYTES = 2 << 30
"""Models above this size (with their external data) are not run while rendering, unless asked for."""

MOST_FEED_BYTES = 256 << 20
"""Inputs above this size are not run: what the model makes of them may be a hundred times as much."""

_REASON_LIMIT = 600
_BF16 = "tensor(bfloat16)"
_SOURCE_PLACE = re.compile(r"\S*\.(?:cc|cpp|h|hpp):\d+ (?:[\w:~<>*&, ]+\([^()]*(?:\([^()]*\)[^()]*)*\)(?: const)? |[\w:~<>]+ )")
"""Where in ONNX Runtime's own source a message comes from: of no use to whoever reads it here."""


@dataclass(frozen=True)
class ProofFailure:
    """One run that failed: the batch size (0 for loading the model) and ONNX Runtime's own reason."""

    batch_size: int
    reason: str


@dataclass(frozen=True)
class Proof:
    """What came of it.

    Attributes:
        skipped: why nothing was run; empty where something was.
        failures: the runs that failed.
        output_dims: the shape that ONNX Runtime infers for each output, -1 for a variable dimension; this, not the file's text, is what Triton's backend
        compares a config with.
        input_dims: likewise for inputs.
        rows: for each batch size that ran, the size of every output's first axis, by name; 0 for a scalar.
        not_run: for each batch size that was not run, why not.
    """

    skipped: str = ""
    failures: tuple[ProofFailure, ...] = ()
    input_dims: Mapping[str, tuple[int, ...]] | None = None
    output_dims: Mapping[str, tuple[int, ...]] | None = None
    rows: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    not_run: Mapping[int, str] = field(default_factory=dict)


def model_bytes(path: Path, external: Sequence[str] = ()) -> int:
    """Size of a model file and the files that hold its external data."""
    return sum(file.stat().st_size for file in {path, *(path.parent / name for name in external)})


def why_not_provable(path: Path, *, limit_bytes: int = DEFAULT_LIMIT_BYTES, external: Sequence[str] = ()) -> str:
    """Why a model cannot be run here. Empty where it can.

    It is larger than the limit (its `external` files counted in), ONNX Runtime is missing, or the path is no text that ONNX Runtime could be given.

    Raises EnvironmentProblem where ONNX Runtime is installed and does not work: nobody wants proofs to be left out for that.
    """
    size = model_bytes(path, external)
    if limit_bytes == 0:
        return "proofs are switched off (--prove-limit 0)"
    if size > limit_bytes:
        return f"the model has {size / 2**20:,.1f} MiB and the limit for proofs is {limit_bytes / 2**20:,.1f} MiB (--prove-limit)"
    if importlib.util.find_spec("onnxruntime") is None:
        return "onnxruntime is not installed (pip install 'tritongen[serve]')"
    _load_onnxruntime()
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return "ONNX Runtime cannot open a path that is not UTF-8"
    return ""


def _load_onnxruntime() -> None:
    # onnxruntime from 1.29 on reports model names and graph hashes to its maker, unless this is set before it is imported (its Privacy.md).
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        importlib.import_module("onnxruntime")
    except ImportError as error:
        hint = "install it again (pip install --force-reinstall onnxruntime), or uninstall it: then no model is proven, and each is said not to be"
        raise EnvironmentProblem(f"onnxruntime is installed and cannot be imported: {error}", hint=hint) from error


def prove(path: Path, feeds: Mapping[int, Feed], *, limit_bytes: int = DEFAULT_LIMIT_BYTES, external: Sequence[str] = ()) -> Proof:
    """Load the model at `path` on the CPU and run it once for each entry of `feeds` (batch size → inputs).

    With an empty `feeds` the model is only loaded. `limit_bytes` bounds the size of model and `external` files together; 0 proves nothing.
    """
    skipped = why_not_provable(path, limit_bytes=limit_bytes, external=external)
    if skipped:
        return Proof(skipped=skipped)
    try:
        session = open_session(path)
    except RuntimeErrors() as error:
        return Proof(failures=(ProofFailure(0, reason_of(error)),))
    return prove_session(session, feeds)


def prove_session(session: onnxruntime.InferenceSession, feeds: Mapping[int, Feed]) -> Proof:
    """`prove` for a model that is loaded already."""
    failures = []
    rows: dict[int, dict[str, int]] = {}
    not_run = {}
    for batch_size, feed in feeds.items():
        if feed.nbytes > MOST_FEED_BYTES:
            not_run[batch_size] = f"its inputs have {feed.nbytes / 2**20:,.0f} MiB, and samples above {MOST_FEED_BYTES >> 20} MiB are not run here"
            continue
        try:
            outputs = run(session, feed.arrays())
            rows[batch_size] = {name: array.shape[0] if array.shape else 0 for name, array in outputs.items()}
        except RuntimeErrors() as error:
            failures.append(ProofFailure(batch_size, reason_of(error)))
    input_dims, output_dims = ({value.name: dims_of(value.shape) for value in values} for values in (session.get_inputs(), session.get_outputs()))
    return Proof(failures=tuple(failures), input_dims=input_dims, output_dims=output_dims, rows=rows, not_run=not_run)


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """An ONNX Runtime session on the CPU that keeps its warnings to itself. Raises one of `RuntimeErrors()` where the model cannot be loaded."""
    _load_onnxruntime()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(session: onnxruntime.InferenceSession, feed: Mapping[str, Array]) -> dict[str, Any]:
    """All outputs by name. Raises one of `RuntimeErrors()` where the run fails."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    names = [output.name for output in session.get_outputs()]
    if any(value.type == _BF16 for value in (*session.get_inputs(), *session.get_outputs())):
        values = session.run_with_ort_values(names, {name: _ort_value(array) for name, array in feed.items()}, options)
        return {name: _array_of(value) for name, value in zip(names, values, strict=True)}
    return dict(zip(names, session.run(names, {name: text_array(array) for name, array in feed.items()}, options), strict=True))


def _ort_value(array: Array) -> onnxruntime.OrtValue:
    """An array as ONNX Runtime's own value: its Python binding takes no BF16 arrays, only their bits."""
    import onnxruntime

    if array.dtype.name == "bfloat16":
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(array).view(np.uint16), dtypes.from_wire("BF16").onnx)
    return onnxruntime.OrtValue.ortvalue_from_numpy(text_array(array))


def _array_of(value: onnxruntime.OrtValue) -> Array:
    if value.data_type() != _BF16:
        return value.numpy()  # type: ignore[no-any-return]
    shape = tuple(value.shape())
    bits = ctypes.string_at(value.data_ptr(), 2 * math.prod(shape)) if math.prod(shape) else b""
    return np.frombuffer(bits, np.uint16).view(dtypes.from_wire("BF16").numpy).reshape(shape)


def text_array(array: Array) -> Array:
    """ONNX Runtime takes text as `str`; Triton and our samples hold bytes."""
    if array.dtype != object:
        return array
    decoded = array.copy()
    decoded.reshape(-1)[:] = [item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item for item in array.ravel().tolist()]
    return decoded


def RuntimeErrors() -> tuple[type[Exception], ...]:  # noqa: N802 - used as a class in `except`
    """What ONNX Runtime raises for a model or an input that it cannot use; it has no common base class of its own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = (
        "Fail",
        "InvalidArgument",
        "InvalidGraph",
        "InvalidProtobuf",
        "NoModel",
        "NoSuchFile",
        "NotImplemented",
        "RuntimeException",
        "EPFail",
        "ModelLoaded",
        "EngineError",
    )
    return (*(getattr(state, name) for name in names if hasattr(state, name)), RuntimeError, ValueError, MemoryError)


def reason_of(error: Exception) -> str:
    """ONNX Runtime's message on one line, without its error-class prefix, cut where it becomes a dump."""
    text = _SOURCE_PLACE.sub("", " ".join(str(error).split()))
    text = text.removeprefix("[ONNXRuntimeError] : ")
    parts = text.split(" : ", 2)
    text = parts[2] if len(parts) == 3 and parts[0].strip().isdigit() else text
    return text if len(text) <= _REASON_LIMIT else text[: _REASON_LIMIT - 3] + "..."


def dims_of(shape: Sequence[object]) -> tuple[int, ...]:
    """ONNX Runtime's shape as Triton writes it: -1 for whatever is not a number."""
    return tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in shape)
