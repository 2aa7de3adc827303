"""A fixed batch made variable: what is repaired is proved by running it, what is not is refused with the node."""

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rewrite_graphs import FLOAT, Graph, branches, floats, ints, loop, node, scalar, subgraph, zeros

from tritongen.errors import ModelFileError
from tritongen.rewrite import prove_batch, rebatch
from tritongen.signature import read_onnx

QUICK = ("squeezenet", "shufflenet", "inception_v1", "densenet121")
RECURRENT = [floats("W", 1, 8, 3), floats("R", 1, 8, 2)]
REPAIRED = {
    "reshape": Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["y"])], [1, 6], [ints("s", 1, 6)]),
    "reshape-with-inferred-size": Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["y"])], [1, 6], [ints("s", 1, -1)]),
    "reshape-allowzero": Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["y"], allowzero=1)], [1, 6], [ints("s", 1, -1)]),
    "reshape-constant-node": Graph([1, 2, 3], [node("Constant", [], ["s"], value=ints("", 1, 6)), node("Reshape", ["x", "s"], ["y"])], [1, 6]),
    "reshape-attribute": Graph([1, 2, 3], [node("Reshape", ["x"], ["y"], shape=[1, 6])], [1, 6], opset=1),
    "reshape-variable-length": Graph(
        [1, "t", 4],
        [node("Reshape", ["x", "s"], ["h"]), node("Transpose", ["h"], ["q"], perm=[0, 2, 1, 3]), node("Reshape", ["q", "r"], ["y"])],
        [1, 2, "k"],
        [ints("s", 1, -1, 2, 2), ints("r", 1, 2, -1)],
    ),
    "reshape-folding-rows": Graph(
        [1, 5, 3],
        [node("Reshape", ["x", "s"], ["a"]), node("MatMul", ["a", "w"], ["b"]), node("Reshape", ["b", "r"], ["y"])],
        [1, 5, 2],
        [ints("s", 5, 3), ints("r", 1, 5, 2), floats("w", 3, 2)],
    ),
    "reshape-that-moves-one-row": Graph(
        [1, 5, 3],
        [
            node("Reshape", ["x", "s"], ["a"]),
            node("LSTM", ["a", "W", "R", "", "", "h", "c"], ["", "last"], hidden_size=2),
            node("Squeeze", ["last", "axis"], ["y"]),
        ],
        [1, 2],
        [ints("s", 5, 1, 3), ints("axis", 0), zeros("h", 1, 1, 2), floats("c", 1, 1, 2), *RECURRENT],
    ),
    "initial-states-of-four": Graph(
        [4, 5, 3],
        [
            node("Transpose", ["x"], ["a"], perm=[1, 0, 2]),
            node("LSTM", ["a", "W", "R", "", "lengths", "h", "h"], ["", "last"], hidden_size=2),
            node("Reshape", ["last", "s"], ["y"]),
        ],
        [4, 2],
        [ints("s", 4, 2), zeros("h", 1, 4, 2), numpy_helper.from_array(np.full(4, 5, dtype=np.int32), "lengths"), *RECURRENT],
    ),
    "class-token": Graph(
        [1, 3, 2], [node("Concat", ["token", "x"], ["a"], axis=1), node("Add", ["a", "p"], ["y"])], [1, 4, 2], [floats("token", 1, 1, 2), floats("p", 1, 4, 2)]
    ),
    "zeros-made-in-the-graph": Graph([2, 4], [node("ConstantOfShape", ["s"], ["z"]), node("Concat", ["x", "z"], ["y"], axis=1)], [2, 6], [ints("s", 2, 2)]),
    "rows-all-the-same": Graph(
        [4, 3], [node("Add", ["x", "b"], ["y"])], [4, 3], [numpy_helper.from_array(np.tile(np.arange(3, dtype=np.float32), (4, 1)), "b")]
    ),
    "expand": Graph([4, 1, 3], [node("Expand", ["x", "s"], ["y"])], [4, 2, 3], [ints("s", 4, 2, 3)]),
    "resize-sizes": Graph([1, 2, 3, 3], [node("Resize", ["x", "", "", "s"], ["y"])], [1, 2, 6, 6], [ints("s", 1, 2, 6, 6)]),
    "flatten-from-axis-0": Graph([1, 4], [node("Flatten", ["x"], ["y"], axis=0)], [1, 4]),
    "slice-of-all-rows": Graph([1, 4], [node("Slice", ["x", "a", "b", "axes"], ["y"])], [1, 4], [ints("a", 0), ints("b", 1), ints("axes", 0)]),
    "gather-of-all-rows": Graph([2, 4], [node("Gather", ["x", "i"], ["y"])], [2, 4], [ints("i", 0, 1)]),
    "split-into-one": Graph([1, 4], [node("Split", ["x"], ["y"], axis=0)], [1, 4], opset=13),
    "squeeze-without-axes": Graph([2, 1, 4], [node("Squeeze", ["x"], ["y"])], [2, 4]),
    "batch-normalization": Graph(
        [1, 4], [node("BatchNormalization", ["x", "s", "s", "s", "v"], ["y"])], [1, 4], [floats("s", 4), numpy_helper.from_array(np.ones(4, np.float32), "v")]
    ),
    "operator-of-onnxruntime": Graph(
        [1, 2, 2], [node("Gelu", ["x"], ["a"], domain="com.microsoft"), node("Reshape", ["a", "s"], ["y"])], [1, 4], [ints("s", 1, 4)]
    ),
    "shape-computed-already": Graph(
        [1, 2, 3],
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "i"], ["n"]),
            node("Concat", ["n", "rest"], ["s"], axis=0),
            node("Reshape", ["x", "s"], ["y"]),
        ],
        [1, 6],
        [ints("i", 0), ints("rest", -1)],
    ),
    "declared-but-pinned": Graph(["N", 2, 3], [node("Reshape", ["x", "s"], ["y"])], ["N", 6], [ints("s", 1, 6)]),
    "if": branches(node("Flatten", ["x"], ["e"])),
    "loop": loop(zeros("start", 1, 4)),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repaired_model_treats_rows_one_by_one_and_answers_as_before(name, tmp_path):
    path = REPAIRED[name].save(tmp_path / "fixed.onnx")
    done = rebatch(path, tmp_path / "free.onnx")
    proof = prove_batch(done.path, sizes=(1, 2, 3, 8), original=path)
    assert proof.proven, proof.diagnostics
    signature = read_onnx(done.path)
    assert {tensor.shape[0] for tensor in (*signature.inputs, *signature.outputs) if tensor.shape} == {"N" if name.startswith("declared") else "batch"}
    if name not in ("declared-but-pinned", "reshape-attribute"):
        assert signature.opsets == read_onnx(path).opsets


REFUSED = {
    "reduction": (
        Graph([1, 4], [node("ReduceMean", ["x"], ["m"], axes=[0], name="mean"), node("Sub", ["x", "m"], ["y"])], [1, 4]),
        "TG154 the ReduceMean node 'mean'",
    ),
    "softmax": (Graph([1, 4], [node("Softmax", ["x"], ["y"], axis=0, name="soft")], [1, 4]), "TG154 the Softmax node 'soft'"),
    "training": (
        Graph([1, 4], [node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y", "m", "v"], training_mode=1, name="norm")], [1, 4], [floats("s", 4)]),
        "TG154 the BatchNormalization node 'norm'",
    ),
    "split": (
        Graph([2, 4], [node("Split", ["x", "s"], ["a", "b"], axis=0, name="halves"), node("Add", ["a", "b"], ["y"])], [1, 4], [ints("s", 1, 1)]),
        "TG154 the Split node 'halves' fixes the batch size (input 1, 's')",
    ),
    "one-row": (
        Graph([1, 4], [node("Gather", ["x", "i"], ["a"], name="pick"), node("Unsqueeze", ["a", "axis"], ["y"])], [1, 4], [scalar("i", 0), ints("axis", 0)]),
        "TG154 the Gather node 'pick' fixes the batch size (input 1, 'i'): it picks row 0",
    ),
    "part-of-rows": (Graph([4, 2], [node("Slice", ["x", "a", "b"], ["y"], name="cut")], [2, 2], [ints("a", 1), ints("b", 3)]), "TG154 the Slice node 'cut'"),
    "squeeze": (
        Graph([1, 1, 4], [node("Squeeze", ["x"], ["y"], name="flat")], [4]),
        "TG154 the Squeeze node 'flat' fixes the batch size (input 0, 'x'): it removes axis 0",
    ),
    "tile": (Graph([1, 4], [node("Tile", ["x", "s"], ["y"])], [2, 4], [ints("s", 2, 1)]), "TG154 the Tile node that computes 'y'"),
    "rows-that-differ": (
        Graph([4, 3], [node("Add", ["x", "b"], ["y"], name="add")], [4, 3], [floats("b", 4, 3)]),
        "TG154 the Add node 'add' fixes the batch size (input 1, 'b')",
    ),
    "time-first": (
        Graph(
            [2, 2, 3],
            [node("LSTM", ["x", "W", "R"], ["", "last"], hidden_size=2, name="rnn"), node("Reshape", ["last", "s"], ["y"])],
            [2, 2],
            [ints("s", 2, 2), *RECURRENT],
        ),
        "TG154 the LSTM node 'rnn'",
    ),
    "branch": (branches(node("Identity", ["k"], ["e"]), floats("k", 1, 4)), "TG154 the If node 'choice'"),
    "transposed-output": (
        Graph([1, 4], [node("Transpose", ["x"], ["y"])], [4, 1]),
        "TG153 axis 0 of output 'y' [4, 1] is not the batch: its batch is on axis 1",
    ),
    "constant-output": (
        Graph([1, 4], [node("Identity", ["k"], ["y"])], [1, 3], [floats("k", 1, 3)]),
        "TG153 axis 0 of output 'y' [1, 3] is not the batch: it does not depend",
    ),
    "lost-rows": (
        Graph([1, 4], [node("MatMul", ["w", "x"], ["y"], name="mix")], [3, 4], [floats("w", 3, 1)]),
        "TG154 the MatMul node 'mix' fixes the batch size (input 0, 'w')",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_repaired_is_refused_with_what_pins_it(name, tmp_path):
    graph, message = REFUSED[name]
    path = graph.save(tmp_path / "fixed.onnx")
    with pytest.raises(ModelFileError) as caught:
        rebatch(path, tmp_path / "free.onnx")
    diagnostic = caught.value.diagnostics[0]
    assert message in str(diagnostic)
    assert diagnostic.location.path == str(path)
    assert diagnostic.consequence
    assert diagnostic.hint
    assert not (tmp_path / "free.onnx").exists()


def test_every_pin_is_reported(tmp_path):
    nodes = [node("Softmax", ["x"], ["a"], axis=0, name="first"), node("CumSum", ["x", "axis"], ["b"], name="second"), node("Add", ["a", "b"], ["y"])]
    path = Graph([1, 4], nodes, [1, 4], [scalar("axis", 0)]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError) as caught:
        rebatch(path, tmp_path / "free.onnx")
    assert ["'first'" in str(each) or "'second'" in str(each) for each in caught.value.diagnostics] == [True, True]


def test_notes_name_nodes_and_tensors(tmp_path):
    graph = branches(node("Flatten", ["x"], ["e"]))
    done = rebatch(graph.save(tmp_path / "m.onnx"), tmp_path / "free.onnx")
    assert done.notes == (
        "Axis 0 of input 'x' is 'batch'; it was 1",
        "Axis 0 of output 'y' is 'batch'; it was 1",
        "The Reshape node 'inner' in the If node 'choice' has the target [0, 4] instead of [1, 4]",
    )


def test_tensors_that_cannot_batch_are_all_named(tmp_path):
    inputs = [("x", FLOAT, [1, 4]), ("rate", FLOAT, []), ("state", FLOAT, [2, 1, 4])]
    path = networks.save(tmp_path / "m.onnx", [node("Add", ["x", "rate"], ["a"]), node("Add", ["a", "state"], ["y"])], inputs, [("y", FLOAT, [2, 1, 4])])
    with pytest.raises(ModelFileError) as caught:
        rebatch(path, tmp_path / "free.onnx")
    assert {each.code for each in caught.value.diagnostics} == {"TG153"}
    assert [name for name in ("'rate'", "'state'") if name in str(caught.value)] == ["'rate'", "'state'"]


def test_the_state_of_silero_is_named(tmp_path):
    with pytest.raises(ModelFileError) as caught:
        rebatch(networks.packaged(networks.SILERO[1]), tmp_path / "free.onnx")
    assert "axis 0 of input 'state' is not the batch: its batch is on axis 1 (state FP32 [2, batch, 128])" in str(caught.value)


def test_a_symbol_that_names_something_else_is_refused(tmp_path):
    path = Graph([1, "batch"], [node("Relu", ["x"], ["y"])], [1, "batch"]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match="'batch' names another dimension"):
        rebatch(path, tmp_path / "free.onnx")
    assert read_onnx(rebatch(path, tmp_path / "free.onnx", symbol="rows").path).inputs[0].shape == ("rows", "batch")


@pytest.mark.parametrize("model", [networks.CLASSIFIER, networks.DETECTOR, networks.RECOGNIZER])
def test_a_model_that_is_free_already_keeps_its_graph(model, tmp_path):
    path = networks.packaged(model)
    done = rebatch(path, tmp_path / "free.onnx")
    assert onnx.load(done.path).graph.node == onnx.load(path).graph.node


def test_the_same_input_gives_the_same_bytes_and_stays_as_it_is(tmp_path):
    path = loop(zeros("start", 1, 4)).save(tmp_path / "m.onnx")
    content = path.read_bytes()
    first, second = (rebatch(path, tmp_path / name / "free.onnx").path.read_bytes() for name in ("a", "b"))
    assert first == second
    assert path.read_bytes() == content
    with pytest.raises(ModelFileError, match="TG164"):
        rebatch(path, path)


def test_metadata_functions_and_external_weights_stay(tmp_path):
    path = Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["a"]), node("Gemm", ["a", "w"], ["y"])], [1, 2000], [ints("s", 1, 6), floats("w", 6, 2000)]).save(
        tmp_path / "m.onnx"
    )
    model = onnx.load(path)
    model.metadata_props.add(key="licence", value="ours")
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(helper.make_function("own", "Same", ["a"], ["b"], [node("Identity", ["a"], ["b"])], [helper.make_opsetid("", 17)]))
    onnx.save(model, path, save_as_external_data=True, location="m.data")
    done = rebatch(path, tmp_path / "free.onnx")
    assert done.external == ("m.data",)
    assert done.path.stat().st_size < 2000
    assert prove_batch(done.path, sizes=(1, 2, 3), original=path).proven
    written = onnx.load(done.path, load_external_data=False)
    assert written.metadata_props == model.metadata_props
    assert written.functions == model.functions
    onnx.checker.check_model(str(done.path))


def test_a_target_in_an_external_file_is_read(tmp_path):
    path = Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["y"])], [1, 6], [ints("s", 1, 6)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data", size_threshold=0)
    done = rebatch(path, tmp_path / "free.onnx")
    assert done.external == ()
    assert prove_batch(done.path).proven


def test_a_pin_inside_a_function_or_a_scan_is_told_by_its_node(tmp_path):
    path = Graph([1, 2, 3], [node("Flat", ["x"], ["y"], domain="own", name="call")], [1, 6]).save(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid("own", 1))
    inside = [node("Constant", [], ["s"], value=ints("", 1, 6)), node("Reshape", ["a", "s"], ["b"])]
    model.functions.append(helper.make_function("own", "Flat", ["a"], ["b"], inside, [helper.make_opsetid("", 17)]))
    onnx.save(model, path)
    with pytest.raises(ModelFileError, match=r"TG15[34].*the Flat node 'call'"):
        rebatch(path, tmp_path / "free.onnx")
    body = subgraph([node("Reshape", ["item", "s"], ["out"])], [("out", FLOAT, [4])], [("item", FLOAT, [2, 2])])
    path = Graph([1, 2, 2], [node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1, name="scan")], [1, 4], [ints("s", 4)]).save(tmp_path / "scan.onnx")
    assert prove_batch(rebatch(path, tmp_path / "scanned.onnx").path).proven, "a scan over the batch takes row by row"
    path = Graph(
        [1, 3, 4],
        [
            node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
            node("Scan", ["t"], ["u"], body=pinned_body(), num_scan_inputs=1, name="scan"),
            node("Transpose", ["u"], ["y"], perm=[1, 0, 2]),
        ],
        [1, 3, 4],
        [ints("s", 1, 4)],
    ).save(tmp_path / "pinned.onnx")
    with pytest.raises(ModelFileError, match=r"TG15[34].*the Scan node 'scan'"):
        rebatch(path, tmp_path / "free.onnx")


def pinned_body() -> onnx.GraphProto:
    return subgraph([node("Reshape", ["item", "s"], ["out"])], [("out", FLOAT, [1, 4])], [("item", FLOAT, [1, 4])])


def test_values_of_intermediate_tensors_are_declared_anew(tmp_path):
    path = Graph([1, 2, 3], [node("Reshape", ["x", "s"], ["a"]), node("Relu", ["a"], ["y"])], [1, 6], [ints("s", 1, 6)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.shape_inference.infer_shapes(onnx.load(path)), path)
    written = onnx.load(rebatch(path, tmp_path / "free.onnx").path)
    assert [dim.dim_param or dim.dim_value for dim in written.graph.value_info[0].type.tensor_type.shape.dim] == ["batch", 6]
    assert [tensor.name for tensor in written.graph.initializer] == [], "the old target is gone"
    onnx.shape_inference.infer_shapes(written, strict_mode=True, data_prop=True)


@pytest.mark.parametrize("name", QUICK)
def test_light_networks_are_proved(name, tmp_path):
    """More of them, and served, in tests/server/test_rewrite_live.py."""
    path = networks.light(name, tmp_path)
    done = rebatch(path, tmp_path / "free.onnx")
    onnx.checker.check_model(str(done.path))
    proof = prove_batch(done.path, sizes=(1, 3), original=path)
    assert proof.proven, proof.diagnostics
    assert all(tensor.shape[0] == "batch" for tensor in (*read_onnx(done.path).inputs, *read_onnx(done.path).outputs) if tensor.shape)


def test_an_int_model_of_tokens_is_proved(tmp_path):
    nodes = [node("Gather", ["table", "ids"], ["e"]), node("Reshape", ["e", "s"], ["y"])]
    path = networks.save(tmp_path / "m.onnx", nodes, [("ids", TensorProto.INT64, [1, 7])], [("y", FLOAT, [1, 21])], [floats("table", 50, 3), ints("s", 1, 21)])
    done = rebatch(path, tmp_path / "free.onnx")
    assert prove_batch(done.path, sizes=(1, 2, 3), original=path, samples={"ids": [[1, 2, 3, 4, 5, 6, 49], [0] * 7]}).proven
