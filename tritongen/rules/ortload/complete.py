"""Filling in what a config leaves out, as NVIDIA's backend does when auto-complete is on.

That backend completes only where the inputs or the outputs are missing. Whether a model can batch follows from its inputs and outputs; a `max_batch_size` of 0
is then taken as absent (protobuf cannot tell).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .graph import Graph, GraphTensor
from .problem import Kind, Problem

DEFAULT_MAX_BATCH_SIZE = 4
"""Triton's `default-max-batch-size` where the command line does not set it."""


def is_needed(config: Mapping[str, Any]) -> bool:
    """Whether the config lacks its inputs or its outputs; a config that has both is left as it is."""
    return not (config.get("input") or config.get("batch_input")) or not config.get("output")


def complete(config: dict[str, Any], graph: Graph, default_max_batch_size: int = DEFAULT_MAX_BATCH_SIZE) -> Problem | None:
    """Fill in `config` in place; the problem, where it wants batches that the graph cannot have (then it is left as it was).

    A `max_batch_size` that was filled in can be told from a changed one: it was 0 before.
    """
    written = config.get("max_batch_size", 0)
    if graph.can_batch:
        if written == 0:
            config["max_batch_size"] = max(0, default_max_batch_size)
        if config.get("max_batch_size", 0) > 1 and not any(key in config for key in ("dynamic_batching", "sequence_batching")):
            config["dynamic_batching"] = {}
    elif written != 0:
        message = f"autofill failed for model '{config['name']}': model does not support batching while non-zero max_batch_size is specified"
        culprit = next(tensor for tensor in (*graph.inputs.values(), *graph.outputs.values()) if not tensor.can_batch)
        shape = f"[{','.join(map(str, culprit.dims))}]"
        return Problem(Kind.NO_BATCH_AXIS, message, ("max_batch_size",), culprit.name, str(written), shape)
    batching = config.get("max_batch_size", 0) > 0
    lacking = {"input": not (config.get("input") or config.get("batch_input")), "output": not config.get("output")}
    for key, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        if lacking[key]:
            config[key] = [_described(tensor, batching) for tensor in tensors.values()]
    return None


def _described(tensor: GraphTensor, batching: bool) -> dict[str, Any]:
    """A tensor's entry in the config. Triton has no empty dims: a scalar is `[1]`, and so is what has only a batch dimension."""
    dims = list(tensor.dims[1:] if batching else tensor.dims)
    entry: dict[str, Any] = {"name": tensor.name, "data_type": tensor.data_type, "dims": dims or [1]}
    if not dims and batching:
        entry["reshape"] = {"shape": []}
    return entry
