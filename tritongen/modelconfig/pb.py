"""The generated protobuf classes of `model_config.proto`, as tritonclient ships them.

The one place that knows where they come from. tritonclient carries no type information for them, so they are `Any` to the type checker.
"""

from __future__ import annotations

from typing import Any

from tritonclient.grpc import model_config_pb2 as _pb

ModelConfig: Any = _pb.ModelConfig
ModelInput: Any = _pb.ModelInput
ModelOutput: Any = _pb.ModelOutput
ModelInstanceGroup: Any = _pb.ModelInstanceGroup
ModelOptimizationPolicy: Any = _pb.ModelOptimizationPolicy
ModelQueuePolicy: Any = _pb.ModelQueuePolicy
ModelWarmup: Any = _pb.ModelWarmup
BatchInput: Any = _pb.BatchInput
BatchOutput: Any = _pb.BatchOutput
DataType: Any = _pb.DataType
