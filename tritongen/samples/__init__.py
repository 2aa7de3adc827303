"""Input arrays for a model: from its signature, values that a person gave, seeded random ones, or files of pictures, recordings and texts.

`arrays` makes them and is pure, `files` reads them. Used by warmup, by proofs, by `infer` and by load tests.
"""

from tritongen.samples.arrays import (
    SAMPLES_PARAMETER,
    Array,
    Feed,
    SampleError,
    as_array,
    random_values,
    raw_bytes,
    rows,
    zeros,
)

__all__ = ["SAMPLES_PARAMETER", "Array", "Feed", "SampleError", "as_array", "random_values", "raw_bytes", "rows", "zeros"]
