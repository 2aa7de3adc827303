"""Why a model cannot be served, and onnxruntime's own errors in the words of NVIDIA's backend."""

from __future__ import annotations

import re
from typing import Final

from onnxruntime.capi import onnxruntime_pybind11_state as _state

ORT_ERRORS: Final[tuple[type[Exception], ...]] = (
    *(error for error in vars(_state).values() if isinstance(error, type) and issubclass(error, Exception)),
    RuntimeError,
    ValueError,
    TypeError,
)
"""What onnxruntime raises: its own classes, and those that its binding to Python maps C++ errors to."""

_ORT_TEXT = re.compile(r"\[ONNXRuntimeError\] : (?P<code>\d+) : \w+ : (?P<text>.*)", re.DOTALL)


class RefusedError(Exception):
    """The model or its config cannot be served as it is; the message follows that of NVIDIA's backend."""


def ort_message(error: BaseException) -> str:
    """An error of onnxruntime as NVIDIA's backend words it: `onnx runtime error 7: ...`."""
    match = _ORT_TEXT.search(str(error))
    return f"onnx runtime error {match['code']}: {match['text'].strip()}" if match else f"onnx runtime error: {error}"
