"""What copies of models take of each GPU: weights, what is alive at the largest batch, room for kernels, and what CUDA itself needs.

The rules are those of the backends (tensorrt_backend/src/instance_state.cc for engines and contexts, onnxruntime_backend/src/onnxruntime.cc for sessions); the
constants were measured, and are said with every estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tritongen.errors import ModelFileError
from tritongen.memory.graph import Footprint

CONTEXT_BYTES = 600 << 20
"""A process's CUDA context with the kernels of its libraries, on each GPU: 527 MiB for the bare context on an H200 with driver 580."""

HANDLES_BYTES = 70 << 20
"""Handles of cuBLAS and the like, for each copy: 68 MiB for one of cuBLAS 13 with its kernels on an H200."""

MOST_BATCH = 1 << 16
"""The largest batch that is looked at."""


@dataclass(frozen=True)
class Placement:
    """Copies of a model on GPUs.

    Attributes:
        gpus: their numbers; none stands for every GPU.
        copies: on each of them.
        contexts: of each copy, each with activations of its own: the profiles that a copy of a plan uses.
    """

    gpus: tuple[int, ...]
    copies: int
    contexts: int = 1


@dataclass(frozen=True)
class ModelEstimate:
    """One model, or one of its versions.

    Attributes:
        name: of the model, with the version where several are served.
        batch: the largest batch; 0 for a model without batching.
        placements: where its copies are; none on the CPU.
        footprint: what it needs at `batch`; where that cannot be told, what it needs at least.
        at: its footprint at a batch size; None where that cannot be told.
        unknown: what is not known about it, in sentences.
        shares_weights: whether copies on one GPU have their weights in common.
        slack: memory that an allocator takes for the activations, as a multiple of them.
        workspace: the most scratch memory that the spec allows; None for any.
    """

    name: str
    batch: int
    placements: tuple[Placement, ...]
    footprint: Footprint
    at: Callable[[int], Footprint] | None = field(default=None, repr=False, compare=False)
    unknown: tuple[str, ...] = ()
    shares_weights: bool = False
    slack: int = 1
    workspace: int | None = None

    def on(self, gpu: int | None, footprint: Footprint) -> Share | None:
        """What it takes of one GPU (None: one that no placement names); None where it has no copy there."""
        here = [placement for placement in self.placements if not placement.gpus or gpu in placement.gpus]
        copies = sum(placement.copies for placement in here)
        if not copies:
            return None
        contexts = sum(placement.copies * placement.contexts for placement in here)
        scratch = footprint.scratch if self.workspace is None else min(footprint.scratch, self.workspace)
        return Share(
            copies,
            footprint.weights * (1 if self.shares_weights else copies),
            footprint.activations * self.slack * contexts,
            scratch * contexts,
            HANDLES_BYTES * copies,
        )


@dataclass(frozen=True)
class Share:
    """What the copies of a model take of a GPU, in bytes."""

    copies: int
    weights: int
    activations: int
    scratch: int
    handles: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.activations + self.scratch + self.handles


@dataclass(frozen=True)
class GpuEstimate:
    """One GPU.

    Attributes:
        gpu: its number; None for all of which the spec says nothing in particular.
        shares: by the name of the model.
        total: bytes, those of CUDA itself included; 0 where nothing runs there.
    """

    gpu: int | None
    shares: Mapping[str, Share]
    total: int


@dataclass(frozen=True)
class Estimate:
    """A whole spec.

    Attributes:
        models: all of them, those on the CPU too.
        gpus: those that the spec names, and one for the others where copies run on every GPU.
        memory: bytes of a GPU; None where nobody said.
        largest: for each model with a batch whose needs are known, the largest one that fits beside the others as they are; 0 where not even 1 does. Empty
            without `memory`.
    """

    models: tuple[ModelEstimate, ...]
    gpus: tuple[GpuEstimate, ...]
    memory: int | None
    largest: Mapping[str, int]

    def name_of(self, gpu: GpuEstimate) -> str:
        """A GPU in words."""
        others = "Each other GPU" if any(each.gpu is not None for each in self.gpus) else "Each GPU"
        return others if gpu.gpu is None else f"GPU {gpu.gpu}"

    @property
    def fits(self) -> bool:
        """Whether everything that is known fits; True where no memory is named."""
        return self.memory is None or all(gpu.total <= self.memory for gpu in self.gpus)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left out: where something is, it takes more."""
        return not any(model.unknown for model in self.models if model.placements)


def estimate_memory(models: Sequence[ModelEstimate], memory: int | None) -> Estimate:
    """Add up what models take of each GPU, and look for the largest batches that fit where `memory` (bytes of a GPU) is known."""
    named = sorted({gpu for model in models for placement in model.placements for gpu in placement.gpus})
    everywhere = any(not placement.gpus for model in models for placement in model.placements)
    numbers: list[int | None] = [*named, *([None] if everywhere else [])]
    gpus = tuple(_on_gpu(gpu, models, {}) for gpu in numbers)
    batched = [model for model in models if model.batch and model.placements]
    largest = {model.name: _largest(model, model.at, models, numbers, memory) for model in batched if model.at is not None} if memory is not None else {}
    return Estimate(tuple(models), gpus, memory, largest)


def _on_gpu(gpu: int | None, models: Iterable[ModelEstimate], changed: Mapping[str, Footprint]) -> GpuEstimate:
    shares = {model.name: share for model in models if (share := model.on(gpu, changed.get(model.name, model.footprint))) is not None}
    return GpuEstimate(gpu, shares, CONTEXT_BYTES + sum(share.total for share in shares.values()) if shares else 0)


def _largest(model: ModelEstimate, at: Callable[[int], Footprint], models: Sequence[ModelEstimate], numbers: Sequence[int | None], memory: int) -> int:
    """The largest batch of a model with which all GPUs that it runs on hold what they are to hold."""

    def total(batch: int) -> float:
        """Bytes of the fullest GPU; without bounds for a batch that the network does not take."""
        try:
            changed = {model.name: model.footprint if batch == model.batch else at(batch)}
        except ModelFileError:
            return math.inf
        return max((each.total for each in (_on_gpu(gpu, models, changed) for gpu in numbers) if model.name in each.shares), default=0)

    now, half = total(model.batch), total(max(1, model.batch // 2))
    growth = (now - half) / max(1, model.batch - max(1, model.batch // 2)) if math.isfinite(half) else 0
    guess = model.batch + int((memory - now) / growth) if growth > 0 else MOST_BATCH
    return largest_fitting(lambda batch: total(batch) <= memory, guess)


def largest_fitting(fits: Callable[[int], bool], guess: int) -> int:
    """The largest size from 1 to MOST_BATCH that fits, by bisection from a guess; 0 where 1 does not. `fits` is true up to a size, and false beyond it."""
    low, high = 0, MOST_BATCH + 1
    size, step = min(max(guess, 1), MOST_BATCH), 1
    while low + 1 < high:
        if fits(size):
            low = size
        else:
            high = size
        # Near the guess first; then by halves.
        near = low + step if low == size else high - step
        size = near if low < near < high else (low + high) // 2
        step *= 2
    return low
