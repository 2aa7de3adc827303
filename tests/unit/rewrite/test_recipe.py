"""Recipes as text, and the files beside a rewritten one."""

import networks
import onnx
import pytest
from rewrite_graphs import Graph, floats, node

from tritongen.errors import ModelFileError
from tritongen.rewrite import Optimise, Recipe, changed_libraries, rebatch, rewritten_in


def test_equal_recipes_have_equal_texts_on_one_line():
    one = Recipe({"b": (1, 2), "a": (-1, 3)}, rebatch=True, optimise=Optimise("basic"))
    two = Recipe({"a": (-1, 3), "b": (1, 2)}, rebatch=True, optimise=Optimise("basic"))
    assert one.text(tritongen="1") == two.text(tritongen="1")
    assert "\n" not in Recipe({"a\nb": (1,)}).text(tritongen="1")
    assert Recipe().is_empty
    assert not one.is_empty


def test_only_an_optimisation_depends_on_onnxruntime():
    assert "onnxruntime" not in Recipe(rebatch=True).text(tritongen="1")
    assert "onnxruntime" in Recipe(optimise=Optimise("basic")).text(tritongen="1")


def test_libraries_that_alone_differ_are_named():
    old, new = (Recipe(rebatch=True).text(tritongen=version) for version in ("1", "2"))
    assert changed_libraries(old, new) == {"tritongen": ("1", "2")}
    assert changed_libraries(old, old) == {}
    assert changed_libraries(old, Recipe({"x": (1,)}, rebatch=True).text(tritongen="2")) == {}
    assert changed_libraries("no recipe", new) == {}
    assert changed_libraries("[1]", new) == {}


def test_weights_that_stay_where_they_are_lie_beside_the_result(tmp_path):
    path = Graph([1, 4], [node("MatMul", ["x", "w"], ["y"])], [1, 300], [floats("w", 4, 300)]).save(tmp_path / "src/m.onnx")
    (tmp_path / "src/deep").mkdir()
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="deep/m.data")
    done = rewritten_in(tmp_path / "out", path, rebatch)
    assert (done.path, done.external) == (tmp_path / "out/model.onnx", ("deep/m.data",))
    assert (tmp_path / "out/deep/m.data").read_bytes() == (tmp_path / "src/deep/m.data").read_bytes()
    onnx.checker.check_model(str(done.path))


def test_weights_that_are_gone_are_said(tmp_path):
    path = Graph([1, 4], [node("MatMul", ["x", "w"], ["y"])], [1, 300], [floats("w", 4, 300)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data")

    def work(source, target):
        done = rebatch(source, target)
        (tmp_path / "m.data").unlink()
        return done

    with pytest.raises(ModelFileError, match="TG164 the result cannot be written: No such file"):
        rewritten_in(tmp_path / "out", path, work)


def test_a_model_without_such_weights_has_nothing_beside_it(tmp_path):
    done = rewritten_in(tmp_path / "out", networks.mlp(tmp_path / "m.onnx", batch=1), rebatch)
    assert [path.name for path in done.path.parent.iterdir()] == ["model.onnx"]
