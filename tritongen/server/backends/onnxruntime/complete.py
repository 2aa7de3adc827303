"""Filling in what a config leaves out, as NVIDIA's backend does when auto-complete is on.

That backend completes only where the inputs or the outputs are missing. Whether a model can batch follows from its inputs and outputs; a `max_batch_size` of 0
is then taken as absent (protobuf cannot tell).
"""

from __future__ import annotations

from typing import Any

from .errors import RefusedError
from .graph import Graph, GraphTensor

DEFAULT_MAX_BATCH_SIZE = 4
"""Triton's `default-max-batch-size` where the command line does not set it."""


def is_needed(config: dict[str, Any]) -> bool:
    """Whether the config lacks its inputs or its outputs; a config that has both is left as it is."""
    return not (config.get("input") or config.get("batch_input")) or not config.get("output")


def complete(config: dict[str, Any], graph: Graph, default_max_batch_size: int) -> str:
    """Fill in `config` in place; what to tell the user, or an empty string.

    Raises RefusedError where the config wants batches and the graph cannot have them.
    """
    remark = ""
    written = config.get("max_batch_size", 0)
    if graph.can_batch:
        if written == 0 and default_max_batch_size > 0:
            config["max_batch_size"] = default_max_batch_size
            remark = (
                f"autofilled max_batch_size to {default_max_batch_size}, since the model supports batching and the model configuration names no max_batch_size"
            )
        if config.get("max_batch_size", 0) > 1 and not any(key in config for key in ("dynamic_batching", "sequence_batching", "ensemble_scheduling")):
            config["dynamic_batching"] = {}
    elif written > 0:
        raise RefusedError(
            f"autofill failed for model '{config['name']}': model does not support batching while non-zero max_batch_size {written} is specified"
        )
    batching = config.get("max_batch_size", 0) > 0
    for key, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        if not config.get(key):
            config[key] = [_described(tensor, batching=batching) for tensor in tensors.values()]
    return remark


def _described(tensor: GraphTensor, *, batching: bool) -> dict[str, Any]:
    """A tensor's entry in the config. Triton has no empty dims: a scalar is `[1]`, and so is what has only a batch dimension."""
    dims = list(tensor.dims[1:] if batching else tensor.dims)
    entry: dict[str, Any] = {"name": tensor.name, "data_type": tensor.data_type, "dims": dims or [1]}
    if not dims and batching:
        entry["reshape"] = {"shape": []}
    return entry
