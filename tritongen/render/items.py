"""What one item of a model is: what stands behind the batch axis of its inputs, or the whole of them. Sizes and values in a spec are those of an item."""

from __future__ import annotations

from tritongen.batching import batch_blockers
from tritongen.render.ragged import as_requested
from tritongen.signature import Signature
from tritongen.spec import ModelSpec


def has_batch_axis(model: ModelSpec, signature: Signature) -> bool:
    """Whether the first axis of the inputs is the batch, so that `shapes` and `samples` leave it out; known before anything is compiled.

    It is not where batching is off, where inputs may be left out, and where a first axis is fixed and stays so.
    """
    if model.batching.max == 0 or model.optional_inputs:
        return False
    return model.rebatch or not batch_blockers(as_requested(model, signature))
