"""Triton's model configuration: the protobuf `ModelConfig` is its only form here.

`pbtxt` prints and parses its text, `overlay` merges a spec's `config:` mapping into it. Nothing above keeps a config in a dict or a string.
"""

from tritongen.modelconfig.overlay import OverlayProblem, merge_overlay
from tritongen.modelconfig.pb import (
    BatchInput,
    BatchOutput,
    DataType,
    ModelConfig,
    ModelInput,
    ModelInstanceGroup,
    ModelOptimizationPolicy,
    ModelOutput,
    ModelWarmup,
)
from tritongen.modelconfig.pbtxt import parse_pbtxt, print_pbtxt

__all__ = [
    "BatchInput",
    "BatchOutput",
    "DataType",
    "ModelConfig",
    "ModelInput",
    "ModelInstanceGroup",
    "ModelOptimizationPolicy",
    "ModelOutput",
    "ModelWarmup",
    "OverlayProblem",
    "merge_overlay",
    "parse_pbtxt",
    "print_pbtxt",
]
