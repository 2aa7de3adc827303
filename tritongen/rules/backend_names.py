"""Names of backends: NVIDIA's, what people write in their place, and slips of the pen."""

from __future__ import annotations

import difflib

from tritongen.rules.resolve import KNOWN_BACKENDS

BACKEND_OF_PLATFORM = {platform: backend.name for backend in KNOWN_BACKENDS for platform in backend.platforms}
"""The backend that a platform belongs to."""

_MEANT = {
    **BACKEND_OF_PLATFORM,
    "onnx": "onnxruntime",
    "ort": "onnxruntime",
    "onnx_runtime": "onnxruntime",
    "onnxruntime_backend": "onnxruntime",
    "onnx-runtime": "onnxruntime",
    "trt": "tensorrt",
    "tensor_rt": "tensorrt",
    "plan": "tensorrt",
    "tensorrt_backend": "tensorrt",
    "torch": "pytorch",
    "libtorch": "pytorch",
    "torchscript": "pytorch",
    "pytorch_backend": "pytorch",
    "py": "python",
    "python3": "python",
    "python_backend": "python",
    "tensorrt_llm": "tensorrtllm",
    "tensorrt-llm": "tensorrtllm",
    "trtllm": "tensorrtllm",
    "vllm_backend": "vllm",
    "dali_backend": "dali",
    "fil_backend": "fil",
}
"""What people write, in lower case, and the backend that they mean."""

NVIDIAS = (*(backend.name for backend in KNOWN_BACKENDS), "tensorrtllm", "vllm", "dali", "fil", "identity", "square", "repeat")
"""Names of backends that NVIDIA publishes."""

_LEAST_ALIKE, _SHORTEST_ALIKE = 0.8, 6
"""How alike two names must be (see difflib) for one to be a slip of the other, and from how many letters on; shorter names are alike by chance."""


def meant_by(word: str) -> str:
    """The backend that a wrong name stands for; empty where nobody can tell."""
    lower = word.lower()
    return lower if lower in NVIDIAS else _MEANT.get(lower, "")


def slip_of(word: str) -> str:
    """The backend whose name has the same letters but for one or two, or in another order; empty where the name may be a custom backend's.

    A name with a digit, or one that goes on where a known one ends, was made on purpose: `python2`, `pytorch_geo`.
    """
    lower = word.lower()
    if len(lower) < _SHORTEST_ALIKE or any(character.isdigit() for character in lower):
        return ""
    close = difflib.get_close_matches(lower, NVIDIAS, n=1, cutoff=_LEAST_ALIKE)
    return close[0] if close and abs(len(close[0]) - len(lower)) <= 1 and not lower.startswith(close[0]) and not lower.endswith(close[0]) else ""
