"""What is counted of a graph: weights, what is alive at once, and what has no size."""

import json
import subprocess
import sys

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rewrite_graphs import Graph, floats, ints, node, subgraph

from tritongen.errors import ModelFileError
from tritongen.memory import read_outline
from tritongen.rewrite import rebatch

MIB = 1 << 20


def sized(tmp_path, nodes, *, x=("N", 8), y=None, stored=(), batch=4, **how):
    path = Graph(list(x), nodes, list(y or x), list(stored)).save(tmp_path / "m.onnx")
    return read_outline(path, **how).footprint({"x": (batch, *x[1:])})


def test_two_neighbours_are_alive_at_once_and_no_more(tmp_path):
    found = sized(tmp_path, [node("Relu", ["x"], ["a"]), node("Tanh", ["a"], ["b"]), node("Relu", ["b"], ["y"])])
    assert (found.weights, found.activations, found.scratch, found.unknown) == (0, 2 * 4 * 8 * 4, 2 * 4 * 8 * 4, ())


def test_what_is_read_again_later_stays_alive(tmp_path):
    found = sized(tmp_path, [node("Relu", ["x"], ["a"]), node("Tanh", ["a"], ["b"]), node("Exp", ["b"], ["c"], name="third"), node("Add", ["c", "x"], ["y"])])
    assert found.activations == 3 * 4 * 8 * 4, "x, b and c at the third node; x, c and y at the last"
    assert found.peak == "Tanh 'b'", "x, a and b come first"


def test_views_share_the_memory_of_what_they_view(tmp_path):
    nodes = [node("Reshape", ["x", "s"], ["a"]), node("Reshape", ["a", "t"], ["b"]), node("Relu", ["b"], ["y"])]
    assert sized(tmp_path, nodes, stored=[ints("s", -1, 2, 4), ints("t", -1, 8)]).activations == 2 * 4 * 8 * 4


def test_weights_count_once_and_in_the_precision_that_is_served(tmp_path):
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "w"], ["y"])]
    assert sized(tmp_path, nodes, stored=[floats("w", 8, 8)]).weights == 8 * 8 * 4
    halved = sized(tmp_path, nodes, stored=[floats("w", 8, 8)], float_bytes=2)
    assert (halved.weights, halved.activations) == (8 * 8 * 2, 2 * 4 * 8 * 2)


def test_what_follows_from_constants_alone_is_a_weight(tmp_path):
    nodes = [node("Transpose", ["w"], ["v"]), node("MatMul", ["x", "v"], ["y"])]
    found = sized(tmp_path, nodes, stored=[floats("w", 2000, 8)], y=("N", 2000))
    assert found.weights == 2 * 2000 * 8 * 4, "the tensor, and its transpose"
    assert found.activations == 4 * 8 * 4 + 4 * 2000 * 4


def calling(path, function, *, domain="own"):
    """`x → y` by one call of a function."""
    graph = helper.make_graph(
        [node(function.name, ["x"], ["y"], domain=domain)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=[function]), path)
    return path


def test_what_functions_of_the_model_hold_counts(tmp_path):
    """A weight of 256 KiB, which the result of the first product has the size of for 8 rows."""
    inner = [
        node("Constant", [], ["w"], value=floats("w", 8, 8192)),
        node("MatMul", ["a", "w"], ["wide"]),
        node("Transpose", ["w"], ["v"]),
        node("MatMul", ["wide", "v"], ["b"]),
    ]
    function = helper.make_function("own", "Block", ["a"], ["b"], inner, [helper.make_opsetid("", 17)])
    path = calling(tmp_path / "m.onnx", function)
    found = read_outline(path).footprint({"x": (8, 8)})
    assert (found.weights, found.activations, found.unknown) == (2 * 8 * 8192 * 4, (8 * 8192 + 8 * 8) * 4, ())
    assert read_outline(path).weights.weights >= 8 * 8192 * 4


def test_a_function_that_cannot_be_looked_into_is_not_known(tmp_path):
    function = helper.make_function("own", "Block", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 13)])
    found = read_outline(calling(tmp_path / "m.onnx", function)).footprint({"x": (8, 8)})
    assert (found.unknown, found.missing) == (("Block 'y'",), 1)
    endless = helper.make_function("own", "Block", ["a"], ["b"], [node("Block", ["a"], ["b"], domain="own")], [helper.make_opsetid("own", 1)])
    with pytest.raises(ModelFileError, match=r"TG165 the graph cannot be read: .*recursive"):
        read_outline(calling(tmp_path / "m.onnx", endless))


def test_sparse_weights_count_as_dense_ones(tmp_path):
    sparse = helper.make_sparse_tensor(floats("w", 1), ints("w.places", 5), [8, 512])
    path = Graph(["N", 8], [node("MatMul", ["x", "w"], ["y"])], ["N", 512]).save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.sparse_initializer.append(sparse)
    onnx.save(model, path)
    found = read_outline(path).footprint({"x": (2, 8)})
    assert (found.weights, found.activations, found.unknown) == (8 * 512 * 4, 2 * (8 + 512) * 4, ())


def test_of_the_branches_of_an_if_the_larger_one_counts(tmp_path):
    def branch(name, size):
        nodes = [
            node("Expand", ["x", f"{name}.size"], [f"{name}.wide"]),
            node("ReduceSum", [f"{name}.wide", f"{name}.axis"], [f"{name}.y"], keepdims=0),
        ]
        graph = subgraph(nodes, [(f"{name}.y", TensorProto.FLOAT, [4, 8])])
        graph.initializer.extend([ints(f"{name}.size", size, 4, 8), ints(f"{name}.axis", 0)])
        return graph

    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Cast", ["most"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["y"], name="fork", then_branch=branch("one", 10), else_branch=branch("two", 100)),
    ]
    found = sized(tmp_path, nodes, x=(4, 8))
    assert (found.peak, found.unknown) == ("If 'fork'", ())
    assert found.activations == (100 + 1 + 1 + 1) * 4 * 8 * 4 + 1, "the wide tensor and its sum inside; x, y and the condition around"


def test_what_depends_on_values_is_said_once_with_where_it_begins(tmp_path):
    nodes = [node("NonZero", ["x"], ["i"], name="found"), node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), node("Relu", ["f"], ["y"])]
    found = sized(tmp_path, nodes, y=(2, None))
    assert (found.unknown, found.missing) == (("NonZero 'found'",), 3)


def test_sizes_that_the_graph_does_not_take_are_not_known(tmp_path):
    path = Graph(["N", "L"], [node("MatMul", ["x", "w"], ["y"], name="mul")], ["N", 4], [floats("w", 8, 4)]).save(tmp_path / "m.onnx")
    assert read_outline(path).footprint({"x": (2, 9)}).unknown == ("MatMul 'mul'",)
    path.unlink()
    with pytest.raises(ModelFileError, match=r"TG165 the graph cannot be read: .*No such file"):
        read_outline(path).footprint({"x": (2, 8)})


def test_gigabytes_of_weights_are_not_read(tmp_path):
    """A file of 3 GiB that has no bytes on the disk, and a limit on memory far below it."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3 << 18, 1024], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    path = Graph(["N", 3 << 18], [node("MatMul", ["x", "w"], ["y"])], ["N", 1024], [weight]).save(tmp_path / "m.onnx")
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(3 << 30)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)); from pathlib import Path; from tritongen.memory import read_outline; "
    )
    code += f"print(read_outline(Path({str(path)!r})).footprint({{'x': (1, {3 << 18})}}).weights)"
    assert int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout) == 3 << 30


def test_weights_inside_the_file_are_not_read_either(tmp_path):
    path = networks.save(
        tmp_path / "m.onnx",
        [node("MatMul", ["x", "w"], ["y"])],
        [("x", TensorProto.FLOAT, ["N", 2048])],
        [("y", TensorProto.FLOAT, ["N", 2048])],
        [numpy_helper.from_array(np.zeros((2048, 2048), np.float32), "w")],
    )
    content = path.read_bytes()
    damaged = content.replace(bytes(1 << 20), b"\xff" * (1 << 20), 1)
    assert damaged != content
    path.write_bytes(damaged)
    assert read_outline(path).footprint({"x": (1, 2048)}).weights == 16 * MIB


MEASURE = """
import json, sys
import numpy as np
import onnxruntime

def kib(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))

options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 4
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feed = {name: np.ones(shape, np.float32) for name, shape in json.loads(sys.argv[2]).items()}
loaded = kib("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
session.run(None, feed)
print(1024 * (kib("VmHWM") - loaded))
"""


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("squeezenet", (16, 3, 224, 224)),
        pytest.param("shufflenet", (16, 3, 224, 224), marks=pytest.mark.system),
        pytest.param(networks.RECOGNIZER, (8, 3, 48, 320), marks=pytest.mark.system),
    ],
)
def test_what_onnxruntime_takes_for_a_run_is_of_that_size(name, shape, tmp_path):
    """Its arena keeps more than is alive, and computes in place: both within a factor of about two."""
    path = rebatch(networks.light(name, tmp_path), tmp_path / "n.onnx").path if name in networks.LIGHT else networks.packaged(name)
    model = onnx.load(path, load_external_data=False)
    stored = {tensor.name for tensor in model.graph.initializer}
    (name,) = (value.name for value in model.graph.input if value.name not in stored)
    estimated = read_outline(path).footprint({name: shape})
    assert not estimated.missing
    command = [sys.executable, "-c", MEASURE, str(path), json.dumps({name: shape})]
    measured = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.4 < measured / estimated.activations < 2.5
    assert 0.9 * path.stat().st_size < estimated.weights < 1.1 * path.stat().st_size
