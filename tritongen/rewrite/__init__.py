"""Rewriting ONNX graphs, and proving what a graph claims: fixed sizes written in, a fixed batch made symbolic, ONNX Runtime's optimised graph, a lower
precision.

Every rewrite reads one file and writes another; none changes its input. `prove_batch` runs a model, rewritten or not, and says whether its batch axis is one;
`compare` runs a converted one beside its original.
"""

from tritongen.rewrite.agreement import Agreement
from tritongen.rewrite.batchproof import BatchFailure, BatchProof, prove_batch
from tritongen.rewrite.comparison import Comparison, compare
from tritongen.rewrite.convert import PRECISIONS, convert, convert_in_place
from tritongen.rewrite.document import Rewritten
from tritongen.rewrite.freeze import freeze
from tritongen.rewrite.names import is_anonymous, name_dimensions, repeats_the_batch, shares_a_mark
from tritongen.rewrite.optimize import optimize
from tritongen.rewrite.rebatch import may_rebatch, rebatch
from tritongen.rewrite.recipe import Convert, Optimise, Recipe, changed_libraries, rewritten_in

__all__ = [
    "PRECISIONS",
    "Agreement",
    "BatchFailure",
    "BatchProof",
    "Comparison",
    "Convert",
    "Optimise",
    "Recipe",
    "Rewritten",
    "changed_libraries",
    "compare",
    "convert",
    "convert_in_place",
    "freeze",
    "is_anonymous",
    "may_rebatch",
    "name_dimensions",
    "optimize",
    "prove_batch",
    "rebatch",
    "repeats_the_batch",
    "rewritten_in",
    "shares_a_mark",
]
