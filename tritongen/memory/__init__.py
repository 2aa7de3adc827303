"""How much memory of a GPU models take: an estimate from their graphs, without running them and without reading their weights.

`graph` follows the sizes of a graph's tensors, `estimate` adds up what copies of models need. Knows nothing of specs.
"""

from tritongen.memory.estimate import Estimate, GpuEstimate, ModelEstimate, Placement, Share, estimate_memory, largest_fitting
from tritongen.memory.graph import Footprint, Outline, read_outline

__all__ = [
    "Estimate",
    "Footprint",
    "GpuEstimate",
    "ModelEstimate",
    "Outline",
    "Placement",
    "Share",
    "estimate_memory",
    "largest_fitting",
    "read_outline",
]
