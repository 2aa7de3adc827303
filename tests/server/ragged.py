"""Small networks whose inputs are ragged, or whose sequences have a state."""

from __future__ import annotations

import numpy as np
from models import FLOAT, INT64, model, value
from onnx import ModelProto, TensorProto, helper

INT32 = TensorProto.INT32


def segment_sums() -> ModelProto:
    """x[T] cut at `offsets`[N+1] → sums[N,1], and doubled[T] = 2x."""
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["running"]),
        helper.make_node("Concat", ["zero", "running"], ["up_to"], axis=0),
        helper.make_node("Slice", ["offsets", "one", "far"], ["ends"]),
        helper.make_node("Slice", ["offsets", "nought", "minus_one"], ["starts"]),
        helper.make_node("Gather", ["up_to", "ends"], ["upper"]),
        helper.make_node("Gather", ["up_to", "starts"], ["lower"]),
        helper.make_node("Sub", ["upper", "lower"], ["flat"]),
        helper.make_node("Unsqueeze", ["flat", "one"], ["sums"]),
        helper.make_node("Add", ["x", "x"], ["doubled"]),
    ]
    constants = {"one": [1], "far": [2**31], "nought": [0], "minus_one": [-1]}
    return model(
        nodes,
        [value("x", FLOAT, ["T"]), value("offsets", INT32, ["M"])],
        [value("sums", FLOAT, ["N", 1]), value("doubled", FLOAT, ["T"])],
        axis=np.array(0, np.int64),
        zero=np.zeros(1, np.float32),
        **{name: np.array(numbers, np.int64) for name, numbers in constants.items()},
    )


def echo(dtype: int, rank: int = 1, *, shape_only: bool = False) -> ModelProto:
    """x[T], id[N,1] and a tensor `made` → each request's row of `seen`[N,L] is all of `made`, row by row (or its shape)."""
    nodes = [
        helper.make_node("Shape", ["made"], ["shape"]),
        helper.make_node("Cast", ["shape"], ["shape_f"], to=FLOAT),
        helper.make_node("Reshape", ["made", "flat"], ["values"]),
        helper.make_node("Cast", ["values"], ["values_f"], to=FLOAT),
        helper.make_node("Unsqueeze", ["shape_f" if shape_only else "values_f", "nought"], ["row"]),
        helper.make_node("Shape", ["id"], ["rows_1"]),
        helper.make_node("Expand", ["row", "rows_1"], ["spread"]),
        helper.make_node("ReduceSum", ["x", "nought"], ["total"], keepdims=1),
        helper.make_node("Mul", ["total", "zero"], ["nothing"]),
        helper.make_node("Add", ["spread", "nothing"], ["seen"]),
    ]
    dims: list[int | str] = ["M", 2] if rank == 2 else ["M"]
    return model(
        nodes,
        [value("x", FLOAT, ["T"]), value("id", INT64, ["N", 1]), value("made", dtype, dims)],
        [value("seen", FLOAT, ["N", "L"])],
        flat=np.array([-1], np.int64),
        nought=np.array([0], np.int64),
        zero=np.zeros(1, np.float32),
    )


def running_total() -> ModelProto:
    """x[N,2] + before[N,2] → after[N,2], which is `total` too."""
    nodes = [helper.make_node("Add", ["x", "before"], ["after"]), helper.make_node("Identity", ["after"], ["total"])]
    inputs = [value("x", FLOAT, ["N", 2]), value("before", FLOAT, ["N", 2])]
    return model(nodes, inputs, [value("after", FLOAT, ["N", 2]), value("total", FLOAT, ["N", 2])])
