"""FP16 out of FP32: graphs that the converter alone would break, what stays in FP32, and what is refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import networks
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from rewrite_graphs import FLOAT, Graph, floats, ints, node, scalar, subgraph

from tritongen.errors import ModelFileError
from tritongen.rewrite import Convert, convert
from tritongen.rewrite.document import graphs
from tritongen.rewrite.elementtypes import infer_types
from tritongen.signature import read_onnx

HALF = TensorProto.FLOAT16
FP16 = Convert("fp16")


def converted(path, tmp_path, how=FP16):
    return convert(path, tmp_path / "out" / "model.onnx", how)


def run(path, **feed):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feed)


def check(tmp_path, nodes, *, x=("N", 4), y=None, stored=(), how=FP16, value=None, atol=2e-3, opset=17):
    """Convert a graph, run both files, and give the types of the converted one's tensors by name."""
    path = Graph(list(x), nodes, list(y or x), list(stored), opset).save(tmp_path / "m.onnx")
    done = converted(path, tmp_path, how)
    value = np.random.default_rng(0).standard_normal([size if isinstance(size, int) else 3 for size in x]).astype(np.float32) if value is None else value
    given = value.astype(np.float16) if not how.keep_io_types else value
    for want, got in zip(run(path, x=value), run(done.path, x=given), strict=True):
        np.testing.assert_allclose(got.astype(want.dtype), want, atol=atol, rtol=atol)
    model = onnx.load(done.path)
    return model, {name: found.type.tensor_type.elem_type for known in infer_types(model) for name, found in known.items()}


def test_weights_and_results_are_fp16_and_inputs_and_outputs_as_they_were(tmp_path):
    model, types = check(tmp_path, [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])], stored=[floats("w", 4, 4)])
    assert (types["x"], types["y"], types["w"], types["h"]) == (FLOAT, FLOAT, HALF, HALF)
    assert [value.type.tensor_type.shape.dim[0].dim_param for value in (*model.graph.input, *model.graph.output)] == ["N", "N"]


def test_inputs_and_outputs_can_become_fp16_too(tmp_path):
    _, types = check(tmp_path, [node("MatMul", ["x", "w"], ["y"])], stored=[floats("w", 4, 4)], how=Convert("fp16", keep_io_types=False))
    assert set(types.values()) == {HALF}


def test_an_output_that_is_read_again_and_an_input_that_many_read_keep_their_types(tmp_path):
    nodes = [node("Tanh", ["x"], ["a"]), node("Add", ["a", "x"], ["y"]), node("Exp", ["y"], ["b"]), node("Mul", ["b", "y"], ["c"])]
    path = networks.save(tmp_path / "m.onnx", nodes, [("x", FLOAT, ["N", 4])], [("y", FLOAT, ["N", 4]), ("c", FLOAT, ["N", 4])])
    value = np.full((2, 4), 0.5, np.float32)
    for want, got in zip(run(path, x=value), run(converted(path, tmp_path).path, x=value), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3)


def test_operators_without_fp16_kernels_stay_and_casts_that_cancel_are_gone(tmp_path):
    nodes = [node("Resize", ["x", "", "scales"], ["y"], mode="nearest")]
    model, types = check(tmp_path, nodes, x=("N", 1, 4, 4), y=("N", 1, 8, 8), stored=[numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")])
    assert types["scales"] == FLOAT
    assert Counter(each.op_type for each in model.graph.node) == {"Resize": 1, "Identity": 1}


def test_a_constant_that_nodes_of_both_kinds_read_is_there_twice(tmp_path):
    nodes = [node("Max", ["x", "c"], ["a"]), node("Mul", ["a", "c"], ["y"])]
    _, types = check(tmp_path, nodes, stored=[scalar("c", np.float32(0.3))])
    assert types["c"] == HALF
    assert [kind for name, kind in types.items() if name.startswith("c/fp32")] == [FLOAT]


def test_casts_and_constants_that_state_fp32_state_fp16(tmp_path):
    nodes = [
        node("Cast", ["x"], ["i"], to=TensorProto.INT32),
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Constant", [], ["two"], value_float=2.0),
        node("Constant", [], ["four"], value_floats=[1.0, 2.0, 3.0, 4.0]),
        node("ConstantOfShape", ["n"], ["zeros"]),
        node("Mul", ["f", "two"], ["a"]),
        node("Add", ["a", "four"], ["b"]),
        node("Add", ["b", "zeros"], ["y"]),
    ]
    _, types = check(tmp_path, nodes, stored=[ints("n", 4)], value=np.array([[1, 2, 3, 4]], np.float32))
    assert {types[name] for name in ("f", "two", "four", "zeros", "a")} == {HALF}


def test_sizes_that_are_computed_in_floats_stay_exact(tmp_path):
    """4,099 rows are 4,100 in FP16."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["f"], to=FLOAT),
        node("Mul", ["f", "one"], ["g"]),
        node("Cast", ["g"], ["t"], to=TensorProto.INT64),
        node("Reshape", ["x", "t"], ["r"]),
        node("Relu", ["r"], ["y"]),
    ]
    model, types = check(tmp_path, nodes, x=("N", 1), stored=[scalar("one", np.float32(1))], value=np.ones((4099, 1), np.float32))
    multiplied = next(each.output[0] for each in model.graph.node if each.op_type == "Mul")
    assert (types[multiplied], types["r"]) == (FLOAT, HALF)
    assert Counter(each.op_type for each in model.graph.node)["Cast"] == 4, "two of the model's own, and one at each end"


def test_graphs_inside_nodes_and_what_they_take_from_outside_are_converted(tmp_path):
    then = subgraph([node("Mul", ["h", "w"], ["one"])], [("one", FLOAT, [3, 4])])
    other = subgraph([node("Add", ["h", "x"], ["two"])], [("two", FLOAT, [3, 4])])
    nodes = [
        node("Tanh", ["x"], ["h"]),
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Cast", ["most"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["z"], then_branch=then, else_branch=other),
        node("Relu", ["z"], ["y"]),
    ]
    _, types = check(tmp_path, nodes, x=(3, 4), stored=[floats("w", 4)])
    assert {types[name] for name in ("h", "one", "two", "z", "w")} == {HALF}


def test_local_functions_are_converted_where_they_are_called(tmp_path):
    twice = helper.make_function("mine", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    graph = helper.make_graph(
        [node("Twice", ["x"], ["y"], domain="mine")],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", FLOAT, ["N", 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], functions=[twice], ir_version=9)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    done = onnx.load(converted(path, tmp_path).path)
    assert "Add" in {each.op_type for each in done.graph.node}
    np.testing.assert_allclose(run(tmp_path / "out/model.onnx", x=np.ones((1, 4), np.float32))[0], 2)


def test_an_operator_of_another_domain_is_left_in_fp32(tmp_path):
    nodes = [node("Tanh", ["x"], ["h"]), node("Mine", ["h"], ["z"], domain="mine"), node("Relu", ["z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, ["N", 4])], [helper.make_tensor_value_info("y", FLOAT, ["N", 4])])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=9), path)
    model = onnx.load(converted(path, tmp_path).path)
    makers = {name: each for each in model.graph.node for name in each.output}
    mine = next(each for each in model.graph.node if each.op_type == "Mine")
    before, after = makers[mine.input[0]], next(each for each in model.graph.node if mine.output[0] in each.input)
    assert [(each.op_type, each.attribute[0].i) for each in (before, after)] == [("Cast", FLOAT), ("Cast", HALF)]


def test_files_of_old_list_their_weights_as_inputs_and_need_not(tmp_path):
    path = networks.light("squeezenet", tmp_path)
    done = onnx.load(converted(path, tmp_path).path)
    assert [value.name for value in done.graph.input] == ["data_0"]
    assert {tensor.data_type for tensor in done.graph.initializer} <= {HALF, TensorProto.INT64}


def test_weights_beside_the_file_stay_beside_it(tmp_path):
    path = Graph(["N", 300], [node("MatMul", ["x", "w"], ["y"])], ["N", 300], [floats("w", 300, 300)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data")
    done = converted(path, tmp_path)
    assert done.external == ("model.onnx.data",)
    assert (tmp_path / "out/model.onnx.data").stat().st_size == 300 * 300 * 2
    assert read_onnx(done.path).external_data


@pytest.mark.parametrize("how", [Convert("fp16", fp32_operators=("Exp",)), Convert("fp16", fp32_nodes=("second",)), Convert("fp16", fp32_nodes=("b",))])
def test_what_is_named_stays_in_fp32(how, tmp_path):
    second = node("Exp", ["a"], ["b"], name="" if "b" in how.fp32_nodes else "second")
    model, types = check(tmp_path, [node("Tanh", ["x"], ["a"], name="first"), second, node("Relu", ["b"], ["y"], name="third")], how=how)
    exp = next(each for each in model.graph.node if each.op_type == "Exp")
    assert (types[exp.input[0]], types[exp.output[0]], types["a"]) == (FLOAT, FLOAT, HALF)


def test_a_name_that_is_none_is_refused_with_the_closest(tmp_path):
    path = Graph(["N", 4], [node("Softmax", ["x"], ["y"], name="scores")], ["N", 4]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError) as caught:
        converted(path, tmp_path, Convert("fp16", fp32_operators=("SoftMax", "LayerNormalization"), fp32_nodes=("score", "y")))
    assert [(found.code, found.message, found.hint) for found in caught.value.diagnostics][:2] == [
        ("TG166", "there is no operator 'SoftMax' to keep in FP32 (conversion.fp32_operators)", "did you mean 'Softmax'?"),
        ("TG166", "the graph has no node 'score' to keep in FP32 (conversion.fp32_nodes)", "did you mean 'scores'?"),
    ]
    assert len(caught.value.diagnostics) == 3, "y is the name of what the node computes, which counts for nodes without a name"
    assert not (tmp_path / "out/model.onnx").exists()


def test_operators_that_onnx_gives_no_fp16_stay_in_fp32(tmp_path):
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("LayerNormalization", ["d", "w"], ["y"]),
    ]
    stored = [scalar("s", np.float32(0.1)), scalar("z", np.int8(0)), floats("w", 4)]
    _, types = check(tmp_path, nodes, stored=stored, atol=5e-3)
    assert (types["s"], types["w"]) == (FLOAT, HALF), "a layer normalization has FP32 results besides its own, which nobody asks for here"
    _, types = check(tmp_path, nodes, stored=stored, atol=5e-3, opset=21)
    assert types["s"] == HALF


def test_sequences_are_of_fp16(tmp_path):
    nodes = [
        node("SequenceEmpty", [], ["none"]),
        node("SequenceInsert", ["none", "x"], ["s"]),
        node("SequenceAt", ["s", "i"], ["a"]),
        node("Add", ["a", "w"], ["y"]),
    ]
    _, types = check(tmp_path, nodes, stored=[scalar("i", np.int64(0)), floats("w", 4)])
    assert types["a"] == HALF


def test_what_no_cast_can_mend_is_refused_and_not_written(tmp_path):
    """A node that stays in FP32 as a whole, with graphs inside that read what becomes FP16."""
    branches = {f"{word}_branch": subgraph([node("Mul", ["h", "w"], [word])], [(word, FLOAT, [3, 4])]) for word in ("then", "else")}
    nodes = [
        node("Tanh", ["x"], ["h"]),
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Cast", ["most"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["y"], name="fork", **branches),
    ]
    path = Graph([3, 4], nodes, [3, 4], [floats("w", 4)]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError) as caught:
        converted(path, tmp_path, Convert("fp16", fp32_nodes=("fork",)))
    (found,) = caught.value.diagnostics
    assert found.code == "TG166"
    assert "a node would get types that do not fit each other" in found.message
    assert "fork" in found.message
    assert not (tmp_path / "out/model.onnx").exists()


def test_a_model_without_fp32_has_nothing_to_convert(tmp_path):
    path = networks.save(tmp_path / "m.onnx", [node("Add", ["x", "x"], ["y"])], [("x", HALF, ["N", 4])], [("y", HALF, ["N", 4])])
    assert converted(path, tmp_path).notes == ()


def test_numbers_that_fp16_does_not_hold_become_its_largest_and_smallest(tmp_path):
    weights = numpy_helper.from_array(np.array([1e6, -np.inf, 1e-12, 1], np.float32), "w")
    path = Graph(["N", 4], [node("Mul", ["x", "w"], ["y"])], ["N", 4], [weights]).save(tmp_path / "m.onnx")
    done = converted(path, tmp_path)
    assert any("had values that FP16 does not hold" in note for note in done.notes)
    (stored,) = (numpy_helper.to_array(tensor) for tensor in onnx.load(done.path).graph.initializer)
    np.testing.assert_array_equal(stored, np.array([65504, -np.inf, np.finfo(np.float16).smallest_subnormal, 1], np.float16))


@pytest.mark.system
@pytest.mark.parametrize("name", [networks.RECOGNIZER, networks.CLASSIFIER, *networks.SILERO])
def test_trained_models_load_with_their_interface(name, tmp_path):
    path = networks.packaged(name)
    done = converted(path, tmp_path)
    before, after = (onnxruntime.InferenceSession(str(each), providers=["CPUExecutionProvider"]) for each in (path, done.path))
    for side in ("get_inputs", "get_outputs"):
        assert [(value.name, value.type, value.shape) for value in getattr(after, side)()] == [
            (value.name, value.type, value.shape) for value in getattr(before, side)()
        ]
    model = onnx.load(done.path)
    counts = Counter()
    for known in infer_types(model):
        counts.update(value.type.tensor_type.elem_type for value in known.values())
    assert counts[HALF] > counts[FLOAT]
    assert not any(tensor.data_type == FLOAT and np.prod(tensor.dims) > 4 for graph in graphs(model.graph) for tensor in graph.initializer)


def test_equal_files_become_equal_files(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tritongen.rewrite import Convert, convert; convert(Path(sys.argv[1]), Path(sys.argv[2]), Convert('fp16'))"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(networks.packaged(networks.SILERO[0])), str(tmp_path / f"{seed}.onnx")]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
    one, two = (hashlib.sha256((tmp_path / f"{seed}.onnx").read_bytes()).hexdigest() for seed in ("1", "2"))
    assert one == two
