"""The load-time verdicts of NVIDIA's onnxruntime backend, as pure functions on the JSON form of a config and a description of the graph.

One implementation for two readers. `tritongen check` reports every problem, worded for people (`tritongen.rules.onnx_models` and its neighbours); the embedded
backend stops at the first one and says it in the words of NVIDIA's backend, in that backend's order. The modules here import each other relatively and the
standard library, nothing else: the server copies this folder beside the embedded backend, where tritongen is not importable.

Sources: the verdicts recorded by running NVIDIA's C++ backend of release 24.10, and its code (onnxruntime_backend/src/onnxruntime.cc).
"""

from .accelerators import CUDA_KEYS, CUDA_SHADOWED, PRECISIONS, TENSORRT_KEYS, accelerator_problems, has_option, onnxruntime_reads
from .complete import DEFAULT_MAX_BATCH_SIZE, complete, is_needed
from .graph import Graph, GraphTensor
from .judge import control_names, judge, shape_of, states
from .limits import LIMITS, Limits, limits_of, too_new
from .parameters import GPU_PARAMETERS, PARAMETERS, boolean, integer, parameter, parameter_problems
from .problem import Kind, Path, Problem
from .ragged import BatchTensor, batch_tensor, scattered_shape, scatters

__all__ = [
    "CUDA_KEYS",
    "CUDA_SHADOWED",
    "DEFAULT_MAX_BATCH_SIZE",
    "GPU_PARAMETERS",
    "LIMITS",
    "PARAMETERS",
    "PRECISIONS",
    "TENSORRT_KEYS",
    "BatchTensor",
    "Graph",
    "GraphTensor",
    "Kind",
    "Limits",
    "Path",
    "Problem",
    "accelerator_problems",
    "batch_tensor",
    "boolean",
    "complete",
    "control_names",
    "has_option",
    "integer",
    "is_needed",
    "judge",
    "limits_of",
    "onnxruntime_reads",
    "parameter",
    "parameter_problems",
    "scattered_shape",
    "scatters",
    "shape_of",
    "states",
    "too_new",
]
