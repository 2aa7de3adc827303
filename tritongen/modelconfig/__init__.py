"""Triton's model configuration: the protobuf `ModelConfig` is its only form here.

`pbtxt` prints its text, `reading` reads it with places and says all that is wrong with it, `overlay` merges a spec's `config:` mapping into it. Nothing above
keeps a config in a dict or a string.
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
    ModelQueuePolicy,
    ModelWarmup,
)
from tritongen.modelconfig.pbtxt import parse_pbtxt, print_pbtxt
from tritongen.modelconfig.reading import Fix, ReadConfig, apply_fixes, read_config
from tritongen.sources.pbtxt_tree import Edit

__all__ = [
    "BatchInput",
    "BatchOutput",
    "DataType",
    "Edit",
    "Fix",
    "ModelConfig",
    "ModelInput",
    "ModelInstanceGroup",
    "ModelOptimizationPolicy",
    "ModelOutput",
    "ModelQueuePolicy",
    "ModelWarmup",
    "OverlayProblem",
    "ReadConfig",
    "apply_fixes",
    "merge_overlay",
    "parse_pbtxt",
    "print_pbtxt",
    "read_config",
]
