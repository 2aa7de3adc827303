"""The proof of a batch axis: lies are found, with the output, the row and the node; honest models pass, whatever their dtype."""

import networks
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from rewrite_graphs import FLOAT, Graph, floats, ints, loop, node, scalar, zeros

from tritongen.diagnostics import Severity
from tritongen.errors import ModelFileError
from tritongen.rewrite import prove_batch
from tritongen.rewrite.running import deviation

ROWS = ["N", 4]
MIXING = {
    "mean": (
        [node("Relu", ["x"], ["r"]), node("ReduceMean", ["r"], ["m"], axes=[0], name="mean"), node("Sub", ["x", "m"], ["y"])],
        "the ReduceMean node 'mean'",
    ),
    "softmax": ([node("Softmax", ["x"], ["y"], axis=0, name="soft")], "the Softmax node 'soft'"),
    "running-sum": ([node("CumSum", ["x", "axis"], ["c"], name="sum"), node("Relu", ["c"], ["y"])], "the CumSum node 'sum'"),
    "neighbours": (
        [
            node("Shape", ["x"], ["n"]),
            node("Reshape", ["x", "turned"], ["t"], name="turn"),
            node("Reshape", ["t", "n"], ["u"]),
            node("MatMul", ["t", "x"], ["v"], name="mix"),
            node("ReduceSum", ["v", "axis"], ["w"]),
            node("Add", ["u", "w"], ["y"]),
        ],
        "the Reshape node 'turn'",
    ),
}
STORED = [ints("turned", 4, -1), ints("axis", 0)]


@pytest.mark.parametrize("name", MIXING)
def test_rows_that_depend_on_each_other_are_found(name, tmp_path):
    nodes, cause = MIXING[name]
    proof = prove_batch(Graph(ROWS, nodes, ROWS, STORED).save(tmp_path / "m.onnx"), sizes=(1, 2, 3))
    assert not proof.proven
    failure = proof.failures[0]
    assert (failure.code, failure.size, failure.output, failure.node) == ("TG162", 2, "y", cause)
    assert f"row {failure.row} of output 'y'" in proof.diagnostics[0].message
    assert cause in proof.diagnostics[0].message


def test_normalisation_in_training_mode_is_found(tmp_path):
    """ONNX Runtime also updates the stored mean while it runs, so that not even a row alone gets the same answer twice."""
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "mean", "variance"], training_mode=1, name="norm")]
    stored = [numpy_helper.from_array(np.arange(1, 5, dtype=np.float32), name) for name in "sbmv"]
    failures = prove_batch(Graph(ROWS, nodes, ROWS, stored).save(tmp_path / "m.onnx"), sizes=(2, 3)).failures
    assert {(failure.code, failure.node) for failure in failures} == {("TG162", "the BatchNormalization node 'norm'")}


def test_a_size_that_fails_names_the_node(tmp_path):
    nodes = [node("Relu", ["x"], ["r"]), node("Reshape", ["r", "s"], ["z"], name="pinned"), node("Abs", ["z"], ["y"])]
    proof = prove_batch(Graph(ROWS, nodes, ROWS, [ints("s", 1, 4)]).save(tmp_path / "m.onnx"), sizes=(1, 2, 3))
    assert [(failure.code, failure.size, failure.node) for failure in proof.failures] == [("TG160", size, "the Reshape node 'pinned'") for size in (2, 3)]


def test_an_output_without_rows_names_the_node(tmp_path):
    nodes = [node("Relu", ["x"], ["r"]), node("Reshape", ["r", "s"], ["z"], name="folds"), node("Abs", ["z"], ["y"])]
    proof = prove_batch(Graph(ROWS, nodes, [1, "M"], [ints("s", 1, -1)]).save(tmp_path / "m.onnx"), sizes=(1, 3))
    assert proof.diagnostics[0].message == "with a batch of 3, output 'y' has the shape [1, 12] and not 3 rows; the cause is the Reshape node 'folds'"


def test_a_mean_over_everything_has_no_rows(tmp_path):
    path = Graph(ROWS, [node("ReduceMean", ["x"], ["y"], keepdims=0, name="mean")], []).save(tmp_path / "m.onnx")
    proof = prove_batch(path, sizes=(1, 2))
    assert {failure.code for failure in proof.failures} == {"TG161"}
    assert proof.failures[-1].node == "the ReduceMean node 'mean'"


def test_a_model_that_answers_anew_each_time_is_told_apart(tmp_path):
    path = Graph(ROWS, [node("RandomNormalLike", ["x"], ["n"]), node("Add", ["x", "n"], ["y"])], ROWS).save(tmp_path / "m.onnx")
    assert "the model does not answer the same twice" in prove_batch(path).failures[0].reason


def test_only_a_later_row_is_wrong(tmp_path):
    """Row 0 is right: a proof that compares only the first would pass."""
    nodes = [node("CumSum", ["x", "axis"], ["y"], name="sum")]
    proof = prove_batch(Graph(ROWS, nodes, ROWS, STORED).save(tmp_path / "m.onnx"), sizes=(2,))
    assert proof.failures[0].row == 1


def test_fixed_and_scalar_inputs_are_named_without_running(tmp_path):
    inputs = [("x", FLOAT, [1, 4]), ("rate", FLOAT, [])]
    path = networks.save(tmp_path / "m.onnx", [node("Mul", ["x", "rate"], ["y"])], inputs, [("y", FLOAT, [1, 4])])
    reasons = [failure.reason for failure in prove_batch(path).failures]
    assert reasons == ["axis 0 of input 'x' is fixed to 1 in the file (x FP32 [1, 4])", "input 'rate' is a scalar, which cannot have a row for each request"]


@pytest.mark.parametrize("model", [networks.CLASSIFIER, networks.DETECTOR, networks.RECOGNIZER])
def test_trained_models_are_proved(model):
    items = {networks.CLASSIFIER: (3, 48, 192), networks.DETECTOR: (3, 64, 64), networks.RECOGNIZER: (3, 48, 64)}
    proof = prove_batch(networks.packaged(model), sizes=(1, 2, 3, 8), shapes={"x": items[model]})
    assert proof.proven, proof.diagnostics
    assert proof.sizes == (1, 2, 3, 8)


HONEST = {
    "nan": ([node("Div", ["x", "zero"], ["a"]), node("Sub", ["a", "a"], ["y"])], FLOAT, FLOAT),
    "integers": ([node("ArgMax", ["x"], ["y"], axis=1)], FLOAT, TensorProto.INT64),
    "truth": ([node("Greater", ["x", "zero"], ["y"])], FLOAT, TensorProto.BOOL),
    "text": ([node("Identity", ["x"], ["y"])], TensorProto.STRING, TensorProto.STRING),
    "half": ([node("Softmax", ["x"], ["y"])], TensorProto.FLOAT16, TensorProto.FLOAT16),
}


@pytest.mark.parametrize("name", HONEST)
def test_answers_of_every_kind_are_compared(name, tmp_path):
    nodes, before, after = HONEST[name]
    shape = ["N", 1] if name == "integers" else ROWS
    path = networks.save(tmp_path / "m.onnx", nodes, [("x", before, ROWS)], [("y", after, shape)], [zeros("zero", 4)])
    assert prove_batch(path, sizes=(1, 2, 3, 7)).proven


def test_integers_must_be_equal(tmp_path):
    """The number of rows as an integer: off by one, which a float tolerance might let pass."""
    nodes = [node("Shape", ["x"], ["s"], start=0, end=1), node("Add", ["x", "s"], ["y"])]
    path = networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.INT64, ROWS)], [("y", TensorProto.INT64, ROWS)])
    assert [failure.code for failure in prove_batch(path, sizes=(1, 2)).failures] == ["TG162"]


def test_a_comparison_is_by_norm_and_knows_nan():
    want = np.array([1e-9, 1.0, np.nan, np.inf], dtype=np.float32)
    near, far = want.copy(), want.copy()
    near[0], far[1] = 5e-9, 1.1
    assert deviation(want, near, 1.0) < 1e-7
    assert deviation(want, far, 1.0) == pytest.approx(0.1, rel=1e-3)
    for position, value in ((2, 0.0), (3, -np.inf), (1, np.nan)):
        other = want.copy()
        other[position] = value
        assert deviation(want, other, 1.0) == float("inf")


def test_samples_reach_models_that_random_values_do_not_fit(tmp_path):
    """Ids below 7 point outside the table, so that only the given ones run."""
    nodes = [node("Sub", ["ids", "seven"], ["at"]), node("GatherElements", ["ids", "at"], ["y"], axis=1)]
    path = networks.save(tmp_path / "m.onnx", nodes, [("ids", TensorProto.INT64, ["N", 3])], [("y", TensorProto.INT64, ["N", 3])], [scalar("seven", 7)])
    without = prove_batch(path, sizes=(1, 2))
    assert without.failures[0].code == "TG160"
    assert without.failures[0].node.startswith("the GatherElements node")
    assert prove_batch(path, sizes=(1, 2), samples={"ids": [7, 8, 9]}).proven
    assert prove_batch(path, sizes=(1, 2), samples={"ids": [[7, 8, 9], [9, 8, 7]]}).proven


def test_what_fits_no_input_is_refused(tmp_path):
    path = networks.mlp(tmp_path / "m.onnx")
    for arguments in ({"samples": {"z": [1]}}, {"samples": {"x": [1, 2]}}, {"shapes": {"x": (9,)}}, {"shapes": {"q": (1,)}}):
        with pytest.raises(ModelFileError, match="TG151"):
            prove_batch(path, **arguments)


def test_the_original_has_a_say(tmp_path):
    """The rewritten model is honest about its rows, and gives other answers than the original."""
    original = networks.mlp(tmp_path / "a.onnx", batch=1, seed=3)
    other = networks.mlp(tmp_path / "b.onnx", seed=4)
    assert prove_batch(other).proven
    failures = prove_batch(other, original=original).failures
    assert [failure.code for failure in failures] == ["TG158"]
    assert "from that of a.onnx" in failures[0].reason


def test_a_model_above_the_limit_is_advice(tmp_path):
    proof = prove_batch(networks.mlp(tmp_path / "m.onnx"), limit_bytes=10)
    assert not proof.proven
    assert (proof.diagnostics[0].code, proof.diagnostics[0].severity) == ("TG163", Severity.ADVICE)


def test_a_model_that_does_not_load_is_a_failure(tmp_path):
    path = Graph(ROWS, [node("NoSuchOperator", ["x"], ["y"])], ROWS).save(tmp_path / "m.onnx")
    proof = prove_batch(path)
    assert proof.failures[0].code == "TG160"
    assert "NoSuchOperator" in proof.failures[0].reason


def test_external_weights_are_no_obstacle_to_blame(tmp_path):
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["y"], axis=0, name="soft")]
    path = Graph(ROWS, nodes, ["N", 300], [floats("w", 4, 300)]).save(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.data")
    assert prove_batch(path, sizes=(1, 2)).failures[0].node == "the Softmax node 'soft'"


def test_variable_lengths_are_tried(tmp_path):
    path = Graph(["N", "t"], [node("Reshape", ["x", "s"], ["y"])], ["N", "k", 16], [ints("s", 0, -1, 16)]).save(tmp_path / "m.onnx")
    assert prove_batch(path, sizes=(1, 2)).proven
    path = Graph(["N", "t"], [node("MatMul", ["x", "w"], ["y"])], ["N", 2], [floats("w", 128, 2)]).save(tmp_path / "n.onnx")
    assert prove_batch(path, sizes=(1, 2)).proven


def test_a_pinned_loop_is_found(tmp_path):
    model = onnx.load(loop(zeros("start", 1, 4)).save(tmp_path / "m.onnx"))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, tmp_path / "m.onnx")
    failure = prove_batch(tmp_path / "m.onnx", sizes=(1, 2)).failures[0]
    assert (failure.code, failure.node) == ("TG160", "the Loop node 'loop'")


def test_the_original_has_a_say_about_every_row(tmp_path):
    """The rewritten model is right for rows of positive sums alone, which the first row is."""
    original = Graph([1, 4], [node("Neg", ["x"], ["y"])], [1, 4]).save(tmp_path / "a.onnx")
    nodes = [
        node("ReduceSum", ["x", "one"], ["s"]),
        node("Greater", ["s", "zero"], ["p"]),
        node("Neg", ["x"], ["n"]),
        node("Where", ["p", "n", "x"], ["y"]),
    ]
    rewritten = Graph(ROWS, nodes, ROWS, [ints("one", 1), zeros("zero")]).save(tmp_path / "b.onnx")
    samples = {"x": [[1, 1, 1, 1], [-1, -1, -1, -1]]}
    (failure,) = prove_batch(rewritten, original=original, samples=samples).failures
    assert (failure.code, failure.row) == ("TG158", 1)
    assert "row 1 of output 'y'" in failure.reason


def test_a_row_of_zeros_alone_is_no_division_by_zero(tmp_path):
    nodes = [node("ReduceMean", ["x"], ["m"], axes=[0], name="mean"), node("Sub", ["x", "m"], ["y"])]
    failure = prove_batch(Graph(ROWS, nodes, ROWS).save(tmp_path / "m.onnx"), sizes=(1, 2)).failures[0]
    assert (failure.code, failure.size, failure.difference) == ("TG162", 2, 1.0)


def test_many_rows_are_compared_at_once(tmp_path):
    proof = prove_batch(networks.mlp(tmp_path / "m.onnx"), sizes=(1, 500_000))
    assert proof.proven
    assert proof.sizes == (1, 500_000)


def test_a_batch_that_is_too_large_is_left_out_and_said(tmp_path):
    proof = prove_batch(networks.mlp(tmp_path / "m.onnx"), sizes=(1, 2, 20_000_000))
    assert not proof.proven
    assert (proof.sizes, list(proof.not_run), proof.failures) == ((1, 2), [20_000_000], ())
    assert [(found.code, found.severity) for found in proof.diagnostics] == [("TG163", Severity.ADVICE)]
    assert "a batch of 20000000 was not run: its inputs have 610 MiB" in proof.diagnostics[0].message


def test_an_item_that_is_too_large_is_not_made(tmp_path):
    huge = Graph(["N", 2**31, 2**31], [node("Neg", ["x"], ["y"])], ["N", 2**31, 2**31]).save(tmp_path / "m.onnx")
    assert "one row of its inputs has" in prove_batch(huge).skipped


def test_a_scale_over_all_rows_only_rounds(tmp_path):
    nodes = [node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="scale"), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
    proof = prove_batch(Graph(ROWS, nodes, ROWS).save(tmp_path / "m.onnx"))
    assert all(failure.is_rounding and failure.operator == "DynamicQuantizeLinear" for failure in proof.failures)
    assert {found.severity for found in proof.diagnostics} == {Severity.WARNING}
    mixing = [node("ReduceMean", ["x"], ["m"], axes=[0]), node("Sub", ["x", "m"], ["y"])]
    assert not prove_batch(Graph(ROWS, mixing, ROWS).save(tmp_path / "n.onnx")).failures[0].is_rounding


def test_a_last_digit_that_becomes_a_step_only_rounds(tmp_path):
    """In a batch, a sum of another order may differ by a millionth; what is quantized behind it may then differ by a whole step."""
    nodes = [
        node("ReduceMax", ["x"], ["m"], axes=[0, 1], name="nearly-equal"),
        node("Mul", ["m", "part"], ["d"]),
        node("Add", ["x", "d"], ["z"]),
        node("QuantizeLinear", ["z", "one", "zero"], ["q"], name="step"),
        node("DequantizeLinear", ["q", "one", "zero"], ["y"]),
    ]
    stored = [numpy_helper.from_array(np.array(value, kind), name) for name, value, kind in (("part", 0.1, "f4"), ("one", 1, "f4"), ("zero", 0, "u1"))]
    samples = {"x": [[15.49999, 30, 40, 50.0], [15.49999, 30, 40, 50.0003]]}
    proof = prove_batch(Graph(ROWS, nodes, ROWS, stored).save(tmp_path / "m.onnx"), sizes=(2,), samples=samples)
    (failure,) = proof.failures
    assert (failure.operator, failure.is_rounding) == ("QuantizeLinear", True)
    (found,) = proof.diagnostics
    assert found.severity is Severity.WARNING
    assert "the QuantizeLinear node 'step', which rounds to whole steps" in found.message
