"""How a model's file is made into one of a lower precision, and how near its answers must stay to the original's."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tritongen.spec.strict import Strict, setting
from tritongen.spec.values import Flag

DEFAULT_COSINE = 0.999

Words = tuple[Annotated[str, Field(strict=True, min_length=1)], ...]


class Conversion(Strict, json_schema_extra={"examples": [{"fp32_operators": ["LayerNormalization", "Softmax"], "cosine": 0.9995}]}):
    """The conversion that precision: fp16 asks for, and the comparison of its result with the original. The source itself is never touched."""

    keep_io_types: Flag = setting(
        "Whether inputs and outputs keep the types of the source, with casts behind the inputs and before the outputs. Where they do"
        " not, the file is converted for copies on the CPU too. Default: true.",
        default=True,
        sets="data_type of input and output, where it is false",
        why="false where clients send and take FP16, which halves what goes over the network",
    )
    fp32_operators: Words = setting(
        "Types of operators that stay in FP32, such as [LayerNormalization, Softmax], besides those that FP16 kernels lack or lose (TopK, Resize, Range).",
        default=(),
        sets="the graph in the version folder",
        why="where a sum, an exponent or a square leaves the range of FP16, which ends at 65504",
    )
    fp32_nodes: Words = setting(
        "Nodes that stay in FP32, by name; one without a name by the first tensor that it computes.",
        default=(),
        sets="the graph in the version folder",
        why="where a single node loses too much, and others of its type do not",
    )
    cosine: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] = setting(
        f"The least cosine similarity of a row's answer with the original's that is accepted, for each output; for an output of whole numbers, truth values"
        f" or text the least part of its values that are equal. Default: {DEFAULT_COSINE}.",
        default=DEFAULT_COSINE,
        sets="nothing in the model; a conversion whose answers are further off is refused",
        why="higher where distances matter (embeddings), lower where only the best class does",
    )
    compare: Flag = setting(
        "Whether the result is compared with the original before it is placed; what cannot be compared is refused. Default: true.",
        default=True,
        sets="nothing in the model",
        why="false where you compare by yourself, or the model cannot run where the spec is rendered",
    )
    top1: Flag = setting(
        "Whether the largest score of a row must stay where it was, in outputs that look like scores: rows of classes, or values that sum to 1. Scores that"
        " FP16 cannot tell apart may change places. Default: true.",
        default=True,
        sets="nothing in the model; a conversion whose answers have other winners is refused",
        why="false for an output that only looks like scores",
    )
