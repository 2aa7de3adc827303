"""ONNX Runtime's optimised graph: saved, checked against the original, refused where it would not travel."""

import networks
import numpy as np
import onnx
import pytest
from rewrite_graphs import Graph, floats, node

from tritongen.errors import ModelFileError
from tritongen.rewrite import optimize, prove_batch
from tritongen.signature import read_onnx


@pytest.mark.parametrize("level", ["basic", "extended"])
def test_the_optimised_graph_is_smaller_and_answers_the_same(level, tmp_path):
    path = networks.light("shufflenet", tmp_path)
    done = optimize(path, tmp_path / "o.onnx", level=level, onnxruntime="1.23.0")
    before, after = (onnx.load(each) for each in (path, done.path))
    assert len(after.graph.node) < len(before.graph.node)
    assert read_onnx(done.path).inputs == read_onnx(path).inputs
    assert read_onnx(done.path).outputs == read_onnx(path).outputs
    assert {entry.domain for entry in after.opset_import} == ({""} if level == "basic" else {"", "com.microsoft"})
    assert ("FusedConv" in " ".join(done.notes)) == (level == "extended")
    onnx.checker.check_model(str(done.path))
    assert optimize(path, tmp_path / "again.onnx", level=level).path.read_bytes() == done.path.read_bytes()


def test_metadata_and_batch_axis_stay(tmp_path):
    path = networks.mlp(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.producer_name = "me"
    model.metadata_props.add(key="licence", value="ours")
    onnx.save(model, path)
    done = optimize(path, tmp_path / "o.onnx")
    written = onnx.load(done.path)
    assert (written.producer_name, written.metadata_props) == ("me", model.metadata_props)
    assert prove_batch(done.path, sizes=(1, 2, 3)).proven


def test_levels_that_do_not_travel_are_refused(tmp_path):
    path = networks.mlp(tmp_path / "m.onnx")
    for level in ("all", "best"):
        with pytest.raises(ModelFileError, match="TG156"):
            optimize(path, tmp_path / "o.onnx", level=level)
    done = optimize(path, tmp_path / "o.onnx", level="all", hardware="the build machine")
    assert "its layout is made for the build machine" in done.notes


def quantised(path):
    """`x · dequantised 4-bit weights`, which ONNX Runtime fuses into an operator that came with 1.17."""
    packed = onnx.helper.make_tensor("w", onnx.TensorProto.UINT4, [32, 32], np.random.default_rng(0).integers(0, 15, 1024).tolist())
    zero = onnx.helper.make_tensor("z", onnx.TensorProto.UINT4, [1, 32], [8] * 32)
    nodes = [node("DequantizeLinear", ["w", "scale", "z"], ["f"], axis=0, block_size=32), node("MatMul", ["x", "f"], ["y"])]
    return Graph(["N", 32], nodes, ["N", 32], [packed, floats("scale", 1, 32), zero], opset=21).save(path)


def test_an_operator_that_the_target_lacks_is_refused(tmp_path):
    path = quantised(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError) as caught:
        optimize(path, tmp_path / "o.onnx", level="extended", onnxruntime="1.16.3")
    assert "TG157 the optimised graph has the operator com.microsoft.MatMulNBits" in str(caught.value)
    assert not (tmp_path / "o.onnx").exists()
    assert "MatMulNBits" in " ".join(optimize(path, tmp_path / "o.onnx", level="extended", onnxruntime="1.23.0").notes)


def test_answers_that_differ_are_refused(tmp_path):
    """Noise is never the same twice, so that the comparison must fail."""
    path = Graph([2, 8], [node("RandomNormalLike", ["x"], ["n"]), node("Add", ["x", "n"], ["y"])], [2, 8]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match="TG158 output 'y' of the optimised model differs"):
        optimize(path, tmp_path / "o.onnx")
    assert not (tmp_path / "o.onnx").exists()


def test_external_weights_get_a_file_of_their_own(tmp_path):
    path = Graph(["N", 4], [node("MatMul", ["x", "w"], ["h"]), node("Identity", ["h"], ["y"])], ["N", 400], [floats("w", 4, 400)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data")
    done = optimize(path, tmp_path / "elsewhere/o.onnx")
    assert done.external == ("o.onnx.data",)
    assert prove_batch(done.path, sizes=(1, 2)).proven


def test_what_does_not_run_is_refused_with_the_reason(tmp_path):
    path = Graph(["N", "t"], [node("MatMul", ["x", "w"], ["y"])], ["N", 2], [floats("w", 7, 2)]).save(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match=r"TG159 the optimised model cannot be checked"):
        optimize(path, tmp_path / "o.onnx")
    assert optimize(path, tmp_path / "o.onnx", shapes={"x": [3, 7]}).path.exists()
    bad = Graph(["N", 4], [node("NoSuchOperator", ["x"], ["y"])], ["N", 4]).save(tmp_path / "bad.onnx")
    with pytest.raises(ModelFileError, match=r"TG159 ONNX Runtime cannot optimise the model: .*NoSuchOperator"):
        optimize(bad, tmp_path / "o2.onnx")


def test_a_trained_model_with_a_scalar_input(tmp_path):
    shapes = {"input": [1, 512], "state": [2, 1, 128]}
    done = optimize(networks.packaged(networks.SILERO[1]), tmp_path / "o.onnx", shapes=shapes, samples={"sr": 16000})
    assert len(onnx.load(done.path).graph.node) < len(onnx.load(networks.packaged(networks.SILERO[1])).graph.node)
    assert "differ from the original's by at most" in done.notes[-1]
