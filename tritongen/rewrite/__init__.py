"""Rewriting ONNX graphs, and proving what a graph claims: fixed sizes written in, a fixed batch made symbolic, ONNX Runtime's optimised graph.

Every rewrite reads one file and writes another; none changes its input. `prove_batch` runs a model, rewritten or not, and says whether its batch axis is one.
"""

from tritongen.rewrite.batchproof import BatchFailure, BatchProof, prove_batch
from tritongen.rewrite.document import Rewritten
from tritongen.rewrite.freeze import freeze
from tritongen.rewrite.optimize import optimize
from tritongen.rewrite.rebatch import may_rebatch, rebatch
from tritongen.rewrite.recipe import Optimise, Recipe, changed_libraries, rewritten_in

__all__ = [
    "BatchFailure",
    "BatchProof",
    "Optimise",
    "Recipe",
    "Rewritten",
    "changed_libraries",
    "freeze",
    "may_rebatch",
    "optimize",
    "prove_batch",
    "rebatch",
    "rewritten_in",
]
