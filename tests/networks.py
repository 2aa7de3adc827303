"""Networks for tests: the ONNX wheel's `light_*` graphs with weights that mean something, small made-up graphs, and the trained models of two PyPI wheels.

The wheel's light files have constant weights: they answer the same whatever the input, so that a server which ignores its input would pass. Here every such
constant
becomes seeded random numbers of a sensible size.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

LIGHT = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")
SMALL_LIGHT = ("squeezenet", "shufflenet", "densenet121", "resnet50")
"""Those whose real weights are small enough for every test run."""

RECOGNIZER = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"
DETECTOR = "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"
CLASSIFIER = "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
SILERO = tuple(f"silero_vad/data/silero_vad{suffix}.onnx" for suffix in ("", "_16k_op15", "_16k_sequence", "_half", "_op18_ifless", "_openvino_16k"))
TRAINED = (RECOGNIZER, DETECTOR, CLASSIFIER, *SILERO)


def packaged(path: str) -> Path:
    """A file of an installed package, found without importing the package."""
    package, _, inner = path.partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed; the Makefile installs it"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / inner


def light(name: str, folder: Path, *, seed: int = 7) -> Path:
    """`light_<name>.onnx` with seeded random weights in place of its constants, written to `folder`."""
    model = onnx.load(packaged(f"onnx/backend/test/data/light/light_{name}.onnx"))
    rng = np.random.default_rng(seed)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.data_type == TensorProto.INT64}
    constants = [node for node in model.graph.node if node.op_type == "ConstantOfShape" and node.input[0] in shapes]
    for node in constants:
        model.graph.node.remove(node)
        shape = tuple(shapes[node.input[0]].tolist())
        model.graph.initializer.remove(next(tensor for tensor in model.graph.initializer if tensor.name == node.input[0]))
        model.graph.initializer.append(numpy_helper.from_array(_weights(rng, shape), node.output[0]))
        # Files of this age list every initializer as an input too; so does this one.
        listed = next(value for value in model.graph.input if value.name == node.input[0])
        listed.CopyFrom(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, shape))
    _tame_logits(model, rng)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def _tame_logits(model: onnx.ModelProto, rng: np.random.Generator) -> None:
    """Scale the last fully connected layer so that its answers are about 1: a softmax over much larger ones is the same for every input."""
    gemms = [node for node in model.graph.node if node.op_type == "Gemm"]
    if not gemms:
        return
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(helper.make_empty_tensor_value_info(gemms[-1].output[0]))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {value.name: rng.standard_normal(value.shape).astype(np.float32) for value in session.get_inputs()}
    scale = np.float32(1 / np.std(session.run(None, feed)[0]))
    for tensor in model.graph.initializer:
        if tensor.name in gemms[-1].input[1:]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * scale, tensor.name))


def _weights(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if len(shape) > 1:
        # Keeps the size of the activations from layer to layer, so that the softmax at the end is neither flat nor a spike.
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
    # One-dimensional weights are biases, and means and variances of normalisations: the latter must be positive.
    return rng.uniform(0.5, 1.5, shape).astype(np.float32)


def mlp(path: Path, *, batch: str | int = "N", features: int = 8, outputs: int = 4, seed: int = 3) -> Path:
    """`x: float32[batch, features] → y: float32[batch, outputs]`, one layer and a tanh."""
    rng = np.random.default_rng(seed)
    weights = [
        numpy_helper.from_array(rng.standard_normal((features, outputs)).astype(np.float32), "w"),
        numpy_helper.from_array(rng.standard_normal(outputs).astype(np.float32), "b"),
    ]
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    return save(path, nodes, [("x", TensorProto.FLOAT, [batch, features])], [("y", TensorProto.FLOAT, [batch, outputs])], weights)


def running_total(path: Path) -> Path:
    """A sequence's total: `x` and `before`, four each, → `after`, their sum, and `y`, the same times the control `START`."""
    four, one = ["N", 4], ["N", 1]
    nodes = [helper.make_node("Add", ["x", "before"], ["after"]), helper.make_node("Mul", ["after", "START"], ["y"])]
    inputs = [("x", TensorProto.FLOAT, four), ("START", TensorProto.FLOAT, one), ("before", TensorProto.FLOAT, four)]
    return save(path, nodes, inputs, [("y", TensorProto.FLOAT, four), ("after", TensorProto.FLOAT, four)])


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[tuple[str, int, list[str | int | None] | None]],
    outputs: list[tuple[str, int, list[str | int | None] | None]],
    initializers: list[onnx.TensorProto] | None = None,
    *,
    opset: int = 17,
    ir_version: int = 9,
) -> Path:
    """Write a graph; a shape of None leaves the shape out of the file."""
    values = [[helper.make_tensor_value_info(name, elem_type, shape) for name, elem_type, shape in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "test", values[0], values[1], initializers or [])
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version), path)
    return path
