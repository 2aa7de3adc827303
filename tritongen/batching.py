"""The one batching decision: may this model batch, up to which size, which sizes are preferred and warmed.

Pure. Everything that depends on batch sizes (max_batch_size, preferred sizes, TensorRT profiles, warmup) is derived from the `Batching` made here, so that
it cannot disagree.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tritongen.signature import Signature, TensorSpec

DEFAULT_MAX_BATCH_SIZE = 8
"""Used where a model can batch and its spec says nothing. Triton's own auto-complete would take 4."""


@dataclass(frozen=True)
class Batching:
    """How requests to a model are combined.

    Attributes:
        max_batch_size: as in config.pbtxt; 0 where the model's first axis is not a batch axis, or batching is switched off.
        preferred: sizes that the dynamic batcher should form, ascending.
        max_queue_delay_us: how long the batcher may hold a request back, in microseconds.
        dynamic: whether Triton combines requests (False where max_batch_size is 0 or 1).
        few_sizes: why the preferred sizes were derived; empty where they were asked for, or where any size is as good as another.
        blockers: for every input and output that rules batching out, the reason; empty where the model can batch.
    """

    max_batch_size: int
    preferred: tuple[int, ...] = ()
    max_queue_delay_us: int = 0
    dynamic: bool = False
    few_sizes: str = ""
    blockers: tuple[str, ...] = ()

    @property
    def warmed(self) -> tuple[int, ...]:
        """The batch sizes worth a warmup run: {1, max} and the preferred ones. A model without batching has only 1 (Triton knows no other for it)."""
        if not self.max_batch_size:
            return (1,)
        return tuple(sorted({1, self.max_batch_size, *self.preferred}))

    @property
    def optimum(self) -> int:
        """The size a TensorRT profile should be tuned for: what the batcher will form under load."""
        return (self.preferred[-1] if self.preferred else self.max_batch_size) or 1


def batch_blockers(signature: Signature) -> tuple[str, ...]:
    """Why a model cannot batch: one reason for each input or output without a variable first axis.

    Triton's ONNX Runtime backend batches only where every input and output of the graph has -1 as its first dimension (triton onnxruntime_backend,
    `ValidateInputs`/`ValidateOutputs`).
    """
    tensors = [("input", tensor) for tensor in signature.inputs] + [("output", tensor) for tensor in signature.outputs]
    return tuple(reason for kind, tensor in tensors if (reason := _blocker(kind, tensor)))


def _blocker(kind: str, tensor: TensorSpec) -> str:
    if tensor.shape is None:
        return f"{kind} '{tensor.name}' has no shape in the model file"
    if not tensor.shape:
        return f"{kind} '{tensor.name}' is a scalar"
    if isinstance(tensor.shape[0], int):
        return f"{kind} '{tensor.name}' has the fixed first dimension {tensor.shape[0]}"
    return ""


def fixed_sizes(most: int) -> tuple[int, ...]:
    """2, 4, 8 and so on below `most`, and `most`: with requests of one row and no queue delay, the batcher forms these and 1 only.

    It takes the largest preferred size that is waiting, and whatever is there where none fits (triton core, dynamic_batch_scheduler.cc).
    """
    powers = itertools.takewhile(lambda size: size < most, (2**exponent for exponent in itertools.count(1)))
    return (*powers, most) if most > 1 else ()


def decide_batching(
    signature: Signature,
    *,
    max_batch_size: int | None = None,
    preferred: tuple[int, ...] | None = None,
    max_queue_delay_us: int = 0,
    few_sizes: str = "",
) -> Batching:
    """Combine what a spec asks for (`max_batch_size` None: nothing, 0: no batching; `preferred` None: to be decided) with what the model can do.

    `few_sizes` is the reason why only few batch sizes are fast, where there is one: preferred sizes are then derived.
    The result has `max_batch_size` 0 and the `blockers` where the model cannot batch, whatever was asked: the caller says whether that is a contradiction.
    """
    blockers = batch_blockers(signature)
    size = DEFAULT_MAX_BATCH_SIZE if max_batch_size is None else max_batch_size
    if max_batch_size is None and preferred:
        size = max(size, *preferred)
    if blockers or size == 0:
        return Batching(max_batch_size=0, blockers=blockers)
    if size == 1:
        return Batching(1)
    if preferred is not None:
        return Batching(size, tuple(sorted(set(preferred))), max_queue_delay_us, dynamic=True)
    return Batching(size, fixed_sizes(size) if few_sizes else (), max_queue_delay_us, dynamic=True, few_sizes=few_sizes)
