"""A model's interface as it is served: what the config says, completed as the backend would complete it. None stands for what cannot be known offline.

Sources: the auto-complete of NVIDIA's backends (onnxruntime_backend/src/onnxruntime.cc, tensorrt_backend/src). It runs only where a config leaves out its
inputs or its outputs (onnxruntime), or always (tensorrt, on a GPU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritongen.batching import batch_blockers
from tritongen.modelconfig import DataType
from tritongen.rules.context import ModelContext
from tritongen.rules.python_source import never_completes
from tritongen.signature import TensorSpec

DEFAULT_MAX_BATCH_SIZE = 4
"""What auto-complete sets for a batchable ONNX model that says nothing, unless the server has another `default-max-batch-size`."""


@dataclass(frozen=True)
class Tensor:
    """An input or output as clients and ensembles see it: without the batch dimension.

    Attributes:
        name: its name.
        dtype: number of its data type in `model_config.proto`; 0 where it is not said.
        dims: its dimensions, -1 for a variable one.
        optional: whether a request may leave it out.
    """

    name: str
    dtype: int
    dims: tuple[int, ...]
    optional: bool = False

    @property
    def type_name(self) -> str:
        """`TYPE_FP32` and the like; the bare number for one that Triton does not know."""
        return str(DataType.Name(self.dtype)) if self.dtype in DataType.values() else str(self.dtype)


@dataclass(frozen=True)
class Interface:
    """What a loaded model takes and gives."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int

    @property
    def batches(self) -> bool:
        """Whether a batch dimension precedes every tensor's dims."""
        return self.max_batch_size > 0


def states_its_interface(context: ModelContext) -> bool:
    """Whether the config itself says what is served, so that no backend adds to it.

    A Python model may add more in its `auto_complete_config`; one that has none adds nothing, and one that lists both its inputs and its outputs is taken
    at its word.
    """
    if not context.has_config:
        return context.server.auto_complete and never_completes(context)
    if context.is_ensemble or not context.server.auto_complete:
        return True
    if context.is_plan:
        return False
    return never_completes(context) or bool((context.config.input or context.config.batch_input) and context.config.output)


def max_batch_size(context: ModelContext) -> int | None:
    """The `max_batch_size` that the model is served with.

    What is written stays, except for 0 (or nothing): a backend that completes the config may then choose one.
    """
    written = int(context.config.max_batch_size)
    if written or states_its_interface(context):
        return written
    if not context.is_onnx or context.signature is None:
        return None
    return 0 if batch_blockers(context.signature) else DEFAULT_MAX_BATCH_SIZE


def interface(context: ModelContext) -> Interface | None:
    """The model's inputs, outputs and batch size, from its config, or from its ONNX file where auto-complete would take them from there."""
    size = max_batch_size(context)
    if size is None:
        return None
    if states_its_interface(context):
        return Interface(_stated(context.config.input), _stated(context.config.output), size)
    signature = context.signature
    if not context.is_onnx or signature is None or context.config.HasField("sequence_batching") or context.config.batch_input:
        return None
    inputs = _stated(context.config.input) or _read(signature.inputs, batches=size > 0)
    outputs = _stated(context.config.output) or _read(signature.outputs, batches=size > 0)
    return None if inputs is None or outputs is None else Interface(inputs, outputs, size)


def _stated(tensors: Any) -> tuple[Tensor, ...]:
    return tuple(Tensor(tensor.name, tensor.data_type, tuple(tensor.dims), bool(getattr(tensor, "optional", False))) for tensor in tensors)


def _read(tensors: tuple[TensorSpec, ...], *, batches: bool) -> tuple[Tensor, ...] | None:
    """Tensors of an ONNX file as the backend writes them into the config; rank 0 becomes `[1]`."""
    if any(tensor.shape is None for tensor in tensors):
        return None
    return tuple(Tensor(tensor.name, tensor.dtype.config_value, (tensor.dims[1:] if batches else tensor.dims) or (1,)) for tensor in tensors)
