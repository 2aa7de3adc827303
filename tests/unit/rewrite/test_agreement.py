"""How near a converted model is to its original: as a device with FP16 kernels computes it."""

from __future__ import annotations

import networks
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper
from rewrite_graphs import FLOAT, Graph, floats, node, scalar

from tritongen.rewrite import Comparison, Convert, compare, convert, rebatch
from tritongen.rewrite.agreement import agreement_of

SIZES = (1, 4)


def both(tmp_path, path, *, how=None, sizes=SIZES, shapes=None, samples=None, **options):
    done = convert(path, tmp_path / "out.onnx", how or Convert("fp16"))
    return compare(path, done.path, sizes=sizes, shapes=shapes or {}, samples=samples or {}, **options)


def steep(path):
    """1.4e6 between two products with 300 and a factor of 1e-5: more than FP16 holds."""
    wide = numpy_helper.from_array(np.full((4, 4), 300, np.float32), "w")
    nodes = [node("MatMul", ["x", "w"], ["a"], name="one"), node("MatMul", ["a", "w"], ["b"], name="two"), node("Mul", ["b", "s"], ["y"], name="three")]
    return Graph(["N", 4], nodes, ["N", 4], [wide, scalar("s", np.float32(1e-5))]).save(path)


def test_what_overflows_on_a_gpu_is_seen_though_the_cpu_gets_it_right(tmp_path):
    path = steep(tmp_path / "m.onnx")
    found = both(tmp_path, path)
    assert all(not each.is_within(cosine=0.5, top1=False) and "numbers are infinite or none" in each.reason for each in found.agreements)
    assert found.blame == "the MatMul node 'two' leaves the range of FP16"
    feed = {"x": np.ones((1, 4), np.float32)}
    want, got = (onnxruntime.InferenceSession(str(each), providers=["CPUExecutionProvider"]).run(None, feed)[0] for each in (path, tmp_path / "out.onnx"))
    np.testing.assert_allclose(got, want, rtol=2e-3)


def test_the_node_that_is_named_is_the_one_to_keep(tmp_path):
    found = both(tmp_path, steep(tmp_path / "m.onnx"), how=Convert("fp16", fp32_nodes=("two", "three")))
    assert (found.blame, min(each.cosine for each in found.agreements) > 0.999) == ("", True)


def test_what_loses_its_digits_is_blamed_with_how_many(tmp_path):
    nodes = [node("Add", ["x", "c"], ["a"], name="lift"), node("Sub", ["a", "c"], ["y"], name="drop")]
    found = both(tmp_path, Graph(["N", 4], nodes, ["N", 4], [scalar("c", np.float32(9000))]).save(tmp_path / "m.onnx"))
    assert found.blame.startswith("the Sub node 'drop' is off by ")
    assert {each.size for each in found.agreements} == set(SIZES)


def test_figures_are_those_of_the_worst_row(tmp_path):
    found = both(tmp_path, networks.mlp(tmp_path / "m.onnx"))
    assert [(each.output, each.size, each.rows) for each in found.agreements] == [("y", 1, 1), ("y", 4, 4)]
    assert all(0 < each.max_abs < 5e-3 and 0.9999 < each.cosine <= 1 and each.same_top1 == each.rows for each in found.agreements)
    assert found.agreements[0].numbers.startswith("max abs ")
    assert found.agreements[0].numbers.endswith(", the same top-1 in 1 of 1 rows")


@pytest.mark.parametrize(("keep", "inputs"), [(True, FLOAT), (False, TensorProto.FLOAT16)])
def test_both_kinds_of_inputs_are_fed(keep, inputs, tmp_path):
    found = both(tmp_path, networks.mlp(tmp_path / "m.onnx"), how=Convert("fp16", keep_io_types=keep))
    assert onnx.load(tmp_path / "out.onnx").graph.input[0].type.tensor_type.elem_type == inputs
    assert (found.skipped, len(found.agreements)) == ("", 2)


def test_rows_of_a_batch_that_was_fixed_are_asked_for_in_turns(tmp_path):
    source = networks.mlp(tmp_path / "m.onnx", batch=2)
    batched = rebatch(source, tmp_path / "n.onnx").path
    done = convert(batched, tmp_path / "out.onnx", Convert("fp16"))
    found = compare(source, done.path, sizes=(1, 2, 5), shapes={}, samples={})
    assert [(each.size, each.is_within(cosine=0.9999, top1=True)) for each in found.agreements] == [(1, True), (2, True), (5, True)]


def test_winners_that_change_places_are_seen_unless_fp16_cannot_tell_them_apart(tmp_path):
    """Scores between 99 and 101 less 100, in steps of a sixteenth."""
    nodes = [node("Add", ["x", "c"], ["a"]), node("Sub", ["a", "c"], ["y"])]
    path = Graph(["N", 3], nodes, ["N", 3], [scalar("c", np.float32(100))]).save(tmp_path / "m.onnx")
    lost = both(tmp_path, path, sizes=(1,), samples={"x": [[0.93, 0.95, 0.1]]}).agreements[0]
    assert (lost.rows, lost.same_top1, lost.cosine > 0.99) == (1, 0, True)
    assert not lost.is_within(cosine=0.9, top1=True)
    assert lost.is_within(cosine=0.9, top1=False)
    tied = both(tmp_path, path, sizes=(1,), samples={"x": [[0.950, 0.951, 0.1]]}).agreements[0]
    assert tied.is_within(cosine=0.9, top1=True)


@pytest.mark.parametrize(
    ("want", "got", "numbers"),
    [
        ([1, 2, 3, 4], [9, 2, 3, 4], "75 % of the values are equal (3 of 4), max abs 8, max rel 2"),
        ([True, False], [True, True], "50 % of the values are equal (1 of 2)"),
        (["a", "b", "c"], ["a", "b", "c"], "100 % of the values are equal (3 of 3)"),
    ],
)
def test_of_values_that_are_no_floats_it_is_said_how_many_are_equal(want, got, numbers):
    found = agreement_of("y", 1, np.array([want]), np.array([got]))
    assert found.numbers == numbers
    assert found.is_within(cosine=0.999, top1=False) is (want == got)
    assert found.is_within(cosine=0.5, top1=False)


@pytest.mark.parametrize(
    ("want", "got"), [([np.inf, 1], [-np.inf, 1]), ([np.nan, 1], [np.inf, 1]), ([np.nan, 1], [3, 1]), ([np.inf, 1], [np.inf, np.nan]), ([1, 1], [np.inf, 1])]
)
def test_infinities_have_signs_and_what_is_no_number_is_no_infinity(want, got):
    found = agreement_of("y", 1, np.array([want], np.float32), np.array([got], np.float32))
    assert not found.is_within(cosine=0.1, top1=False)
    assert found.numbers.startswith("1 of ")
    assert agreement_of("y", 1, np.array([want], np.float32), np.array([want], np.float32)).is_within(cosine=1, top1=True)


@pytest.mark.parametrize("values", [np.full((2, 3), np.nan), np.array([[np.inf, -np.inf]]), np.zeros((2, 0)), np.zeros((0,), np.int64)])
def test_where_there_is_nothing_to_compare_nothing_was_compared(values):
    with np.errstate(all="raise"):
        found = Comparison(agreements=(agreement_of("y", 1, values, values), agreement_of("z", 1, np.ones((1, 2)), np.ones((1, 2)))))
    assert [*found.unseen] == ["y"]
    assert [each.output for each in found.worst] == ["z"]


def test_outputs_of_other_shapes_do_not_compare():
    found = agreement_of("y", 1, np.ones(3), np.ones(2))
    assert (found.reason, found.is_within(cosine=0.1, top1=False)) == ("it has the shape [2], and the original's [3]", False)


def test_values_that_decide_how_many_answers_there_are_show_as_another_shape(tmp_path):
    nodes = [node("Greater", ["x", "c"], ["g"]), node("NonZero", ["g"], ["n"]), node("Cast", ["n"], ["y"], to=FLOAT)]
    path = Graph(["N", 4], nodes, [2, None], [scalar("c", np.float32(1.0001))]).save(tmp_path / "m.onnx")
    found = both(tmp_path, path, sizes=(), shapes={"x": (1, 4)}, samples={"x": [[1.0002, 1.00005, 2, 0]]})
    assert "it has the shape [2, 1], and the original's [2, 2]" in found.agreements[0].reason


def test_what_cannot_be_run_is_said(tmp_path):
    path = networks.mlp(tmp_path / "m.onnx")
    assert both(tmp_path, path, limit_bytes=0).skipped == "proofs are switched off (--prove-limit 0)"
    assert "above 256 MiB are not run here" in both(tmp_path, path, sizes=(1, 1 << 24)).not_run[1 << 24]
    picky = Graph(["N", "L"], [node("MatMul", ["x", "w"], ["y"])], ["N", 3], [floats("w", 7, 3)]).save(tmp_path / "p.onnx")
    assert both(tmp_path, picky).skipped.startswith("the original does not run on made-up inputs: ")


@pytest.mark.system
@pytest.mark.parametrize(("name", "width"), [(networks.RECOGNIZER, 160), (networks.CLASSIFIER, 192)])
def test_trained_models_are_near(name, width, tmp_path):
    found = both(tmp_path, networks.packaged(name), sizes=(1, 2), shapes={"x": (3, 48, width)})
    assert all(each.is_within(cosine=0.999, top1=True) and each.rows for each in found.agreements)


@pytest.mark.system
@pytest.mark.parametrize(("operators", "near"), [((), False), (("BatchNormalization",), True)])
def test_a_trained_model_whose_variances_fp16_has_few_bits_for(operators, near, tmp_path):
    """A dark box with a light one in it, which the detector takes for text: on noise it finds nothing, and nothing has no digits to compare."""
    page = np.ones((3, 64, 64), np.float32)
    page[:, 20:40, 10:50], page[:, 24:30, 14:18] = -1, 1
    found = both(tmp_path, networks.packaged(networks.DETECTOR), how=Convert("fp16", fp32_operators=operators), sizes=(1, 2), samples={"x": page})
    assert all(each.is_within(cosine=0.999, top1=True) for each in found.agreements) == near
    assert ("the BatchNormalization node" in found.blame) is not near
