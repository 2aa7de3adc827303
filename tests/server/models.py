"""Small models for live tests: seeded weights, and answers that differ from row to row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, save_model

FLOAT, HALF, BF16, INT64, STRING, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL


def value(name: str, dtype: int, shape: list[int | str]):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, **weights: np.ndarray) -> ModelProto:
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def linear(batch: int | str = "N") -> ModelProto:
    """x[N,64] · w + b → y[N,16]."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    return model(nodes, [value("x", FLOAT, [batch, 64])], [value("y", FLOAT, [batch, 16])], w=weights(64, 16), b=weights(16, seed=1))


def two_outputs() -> ModelProto:
    """y = x · w, z = -x."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    return model(nodes, [value("x", FLOAT, ["N", 4])], [value("y", FLOAT, ["N", 2]), value("z", FLOAT, ["N", 4])], w=weights(4, 2))


def strings() -> ModelProto:
    return model([helper.make_node("Identity", ["x"], ["y"])], [value("x", STRING, ["N", 2])], [value("y", STRING, ["N", 2])])


def doubled(dtype: int) -> ModelProto:
    """y = 2x, computed in FP32 and given back in `dtype`."""
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["f", "two"], ["d"]),
        helper.make_node("Cast", ["d"], ["y"], to=dtype),
    ]
    return model(nodes, [value("x", dtype, ["N", 3])], [value("y", dtype, ["N", 3])], two=np.array(2, np.float32))


def scaled_by_scalar() -> ModelProto:
    """y = x · t with t a true scalar, and its square as a scalar output."""
    nodes = [
        helper.make_node("Cast", ["t"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["x", "f"], ["y"]),
        helper.make_node("Mul", ["t", "t"], ["square"]),
    ]
    return model(nodes, [value("t", INT64, []), value("x", FLOAT, ["K"])], [value("y", FLOAT, ["K"]), value("square", INT64, [])])


def row_sums() -> ModelProto:
    """Any number of rows, none included: y = sum over rows, same = x."""
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0), helper.make_node("Identity", ["x"], ["same"])]
    return model(nodes, [value("x", FLOAT, ["N", 3])], [value("y", FLOAT, [3]), value("same", FLOAT, ["N", 3])], axes=np.array([0], np.int64))


def transposed() -> ModelProto:
    """x[N,2,3] → y[N,3,2]."""
    return model([helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 1])], [value("x", FLOAT, ["N", 2, 3])], [value("y", FLOAT, ["N", 3, 2])])


def lookup() -> ModelProto:
    """Rows of a table of ten by index; an index outside is an error of onnxruntime."""
    return model(
        [helper.make_node("Gather", ["table", "index"], ["y"])], [value("index", INT64, ["N", 1])], [value("y", FLOAT, ["N", 1, 4])], table=weights(10, 4)
    )


def flags() -> ModelProto:
    return model([helper.make_node("Not", ["x"], ["y"])], [value("x", BOOL, ["N", 2])], [value("y", BOOL, ["N", 2])])


def with_default() -> ModelProto:
    """y = x · s, where s has a default that a request may override."""
    return model(
        [helper.make_node("Mul", ["x", "s"], ["y"])],
        [value("x", FLOAT, ["K"]), value("s", FLOAT, [1])],
        [value("y", FLOAT, ["K"])],
        s=np.array([3], np.float32),
    )


def maximum() -> ModelProto:
    """The largest element of the whole batch, as a scalar."""
    return model([helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)], [value("x", FLOAT, ["N", 3])], [value("y", FLOAT, [])])


def repeated() -> ModelProto:
    """Every row twice: more rows come out than went in."""
    return model([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], [value("x", FLOAT, ["N", 3])], [value("y", FLOAT, ["M", 3])])


def regrouped() -> ModelProto:
    """x[N,L] in rows of seven: how many come out depends on L, and axis 0 is no batch axis."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    return model(nodes, [value("x", FLOAT, ["N", "L"])], [value("y", FLOAT, ["M", 7])], shape=np.array([-1, 7], np.int64))


def put(repository: Path, name: str, proto: ModelProto | None, config: str | None, *, version: str = "1", file: str = "model.onnx", **save) -> Path:
    """Write a model into a repository; its folder."""
    folder = repository / name
    (folder / version).mkdir(parents=True)
    if proto is not None:
        save_model(proto, str(folder / version / file), **save)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder


ONE_CPU = "instance_group [{ kind: KIND_CPU count: 1 }]\n"


def config(inputs: str, outputs: str, *, batch: int = 8, extra: str = ONE_CPU) -> str:
    """A config for onnxruntime; tensors are written `x FP32 [64]; t INT64 [1]`."""
    text = f'platform: "onnxruntime_onnx"\nmax_batch_size: {batch}\n'
    for role, tensors in (("input", inputs), ("output", outputs)):
        for tensor in filter(None, (part.strip() for part in tensors.split(";"))):
            name, dtype, rest = tensor.split(" ", 2)
            text += f'{role} [{{ name: "{name}" data_type: TYPE_{dtype} dims: {rest} }}]\n'
    return text + extra


LINEAR = config("x FP32 [64]", "y FP32 [16]")
