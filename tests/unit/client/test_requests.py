"""Values that a request is made of: each is sent as it is, or refused with a reason."""

from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest

from tritongen.client.metadata import model_meta
from tritongen.client.requests import prepare
from tritongen.client.splitting import parts_of
from tritongen.errors import InvalidInput
from tritongen.workflow.inputs import make_inputs


def meta(datatype="FP32", shape=(-1, -1), **config):
    tensors = [{"name": "x", "datatype": datatype, "shape": list(shape)}]
    return model_meta({"name": "m", "inputs": tensors, "outputs": []}, {"max_batch_size": 8, **config})


def refusal(values, *, datatype="FP32", **options):
    with pytest.raises(InvalidInput) as error:
        prepare(meta(datatype), values, **options)
    (found,) = error.value.diagnostics
    return found.message


HALVES = [np.full(64, 0.1), np.full(64, 0.2)]


@pytest.mark.parametrize("value", [HALVES, tuple(HALVES), [HALVES[0], [0.1] * 64], [HALVES[0].astype(np.float32), HALVES[1]]])
def test_a_list_of_arrays_is_no_way_around_their_dtype(value):
    assert "must be FP32 (float32), got float64" in refusal({"x": value})
    assert "got float64" in refusal({"x": value}, cast="safe")


def test_arrays_in_lists_are_sent_as_one_array_is():
    rows = [np.arange(3, dtype=np.float32), np.ones(3, np.float32)]
    assert np.array_equal(prepare(meta(), {"x": rows}).arrays["x"], np.stack(rows))
    assert np.array_equal(prepare(meta(), {"x": [rows[0], [1, 1, 1]]}).arrays["x"], np.stack(rows))
    halves = [row.astype(np.float16) for row in rows]
    assert "cast='safe' converts it" in refusal({"x": halves})
    assert np.array_equal(prepare(meta(), {"x": halves}, cast="safe").arrays["x"], np.stack(rows))
    brain = [row.astype(ml_dtypes.bfloat16) for row in rows]
    assert prepare(meta("BF16"), {"x": brain}).arrays["x"].dtype == ml_dtypes.bfloat16
    words = [np.array([b"a\0"], object), np.array(["é"], object)]
    assert prepare(meta("BYTES"), {"x": words}).arrays["x"].tolist() == [[b"a\0"], ["é".encode()]]


@pytest.mark.parametrize(
    ("datatype", "number"),
    [("FP32", 16777217), ("FP32", -16777217), ("FP16", 2049), ("BF16", 257), ("FP64", 2**53 + 1), ("FP32", 2**64 - 1), ("FP32", 10**30)],
)
def test_a_whole_number_is_never_rounded(datatype, number):
    for value in ([[number]], [[0.5, number]], [[number, 2**64 - 1]]):
        assert f"does not fit {datatype}" in refusal({"x": value}, datatype=datatype)
    assert str(number) in refusal({"x": [[number]]}, datatype=datatype)


@pytest.mark.parametrize(
    ("datatype", "number"), [("FP32", 16777218), ("FP32", 2**100), ("FP16", 2050), ("BF16", 256), ("FP64", 2**60), ("FP32", -(2**63)), ("FP32", 0)]
)
def test_a_whole_number_that_the_dtype_holds_is_sent(datatype, number):
    assert float(prepare(meta(datatype), {"x": [[number, 0.5]]}).arrays["x"][0, 0]) == number


def test_fractions_become_the_nearest_and_large_ones_stay_large():
    assert prepare(meta(), {"x": [[0.1, -1e30, 16777217.0]]}).arrays["x"].tolist() == [[np.float32(0.1), np.float32(-1e30), 16777216.0]]


def test_a_mask_that_hides_something_is_refused():
    masked = np.ma.array(np.ones((2, 3), np.float32), mask=[[0, 1, 0], [0, 0, 1]])
    assert "its mask hides 2 elements" in refusal({"x": masked})
    assert "its mask hides 1 elements" in refusal({"x": list(masked)})
    assert "its mask hides 1 elements" in refusal({"x": [[1.0, np.ma.masked]]})
    assert prepare(meta(), {"x": np.ma.array(np.ones((2, 3), np.float32))}).arrays["x"].tolist() == np.ones((2, 3)).tolist()
    assert prepare(meta(), {"x": masked.filled(0)}).rows == 2


class Refusing:
    """An array of another library that does not convert itself."""

    def __init__(self, error):
        self._error = error

    def __array__(self, dtype=None, copy=None):
        raise self._error

    def __repr__(self):
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("it requires grad"),
        TypeError("it is on a GPU"),
        NotImplementedError(),
        ValueError("z" * 10_000),
        ZeroDivisionError(),
        OSError("its file is gone"),
        ImportError("no torch"),
        AssertionError(),
        StopIteration(),
    ],
    ids=repr,
)
def test_an_array_that_does_not_convert_itself_is_refused(error):
    for value in (Refusing(error), [Refusing(error)], [[1.0], Refusing(error)]):
        found = refusal({"x": value})
        assert f"{type(error).__name__}: {error}"[:50] in found
        assert len(found) < 400


def test_a_list_that_holds_itself_is_refused():
    value: list = []
    value.append(value)
    assert refusal({"x": value})
    assert refusal({"x": value}, add_batch_axis=True)


@pytest.mark.parametrize("datatype", ["FP32", "BYTES"])
@pytest.mark.parametrize("value", [{"a": "v" * 100_000}, [{"a": "v" * 100_000}], object()], ids=["mapping", "list", "object"])
def test_no_message_shows_a_long_value_whole(datatype, value):
    for given in (np.array([[value]], dtype=object), [[value]]):
        assert len(refusal({"x": given}, datatype=datatype)) < 200


def test_a_long_text_and_a_long_name_are_cut():
    assert len(refusal({"x": [["v" * 100_000]]})) < 200
    assert len(refusal({"x": [["\ud800" * 100_000]]}, datatype="BYTES")) < 200
    with pytest.raises(InvalidInput) as error:
        prepare(meta(), {"x": [[1]], "n" * 100_000: 1, 5: 2, "\ud800": 3}, outputs=["o" * 100_000])
    assert max(len(item.message) for item in error.value.diagnostics) < 200
    assert str(error.value).encode()


def test_text_of_a_fixed_width_loses_trailing_zeros_and_objects_keep_them():
    """Numpy's own rule for dtype S, as docs/client.md says."""
    assert prepare(meta("BYTES"), {"x": np.array([[b"ab\0"]])}).arrays["x"].tolist() == [[b"ab"]]
    assert prepare(meta("BYTES"), {"x": np.array([[b"ab\0"]], object)}).arrays["x"].tolist() == [[b"ab\0"]]


def test_an_output_that_is_asked_for_twice_is_refused_once():
    with pytest.raises(InvalidInput) as error:
        prepare(meta(), {"x": [[1]]}, outputs=["y", "y", "y"])
    assert sum("asked for twice" in item.message for item in error.value.diagnostics) == 1


class Hiding:
    """An object that cannot even be asked what it is."""

    def __getattr__(self, name):
        raise OSError("the file behind it is gone")


def test_a_value_that_cannot_be_asked_is_refused():
    assert "OSError: the file behind it is gone" in refusal({"x": Hiding()})


@pytest.mark.parametrize("value", [[[None]], [["a", None]], np.array([[None]], object), None])
def test_nothing_is_no_text(value):
    assert "expected text, got null" in refusal({"x": value}, datatype="BYTES")


def test_an_array_of_one_value_fits_where_a_plain_one_does():
    assert prepare(meta(), {"x": np.array(3, np.float32)}).arrays["x"].tolist() == prepare(meta(), {"x": 3}).arrays["x"].tolist() == [[3.0]]
    assert prepare(meta("INT64", (1,), max_batch_size=0), {"x": np.array(3)}).arrays["x"].shape == (1,)
    assert prepare(meta(), {"x": np.array(3, np.float16)}, cast="safe").arrays["x"].shape == (1, 1)
    assert "must have the shape" in refusal_of(meta(shape=(-1, 2)), {"x": np.array(3, np.float32)})


def refusal_of(model, values):
    with pytest.raises(InvalidInput) as error:
        prepare(model, values)
    return str(error.value)


class TestShapeTensors:
    """TensorRT's inputs of sizes: one request has them once, whatever its rows, and every part of it has them whole."""

    META = model_meta(
        {"name": "m", "inputs": [{"name": name, "datatype": kind, "shape": [-1, 2]} for name, kind in (("x", "FP32"), ("sizes", "INT32"))], "outputs": []},
        {"max_batch_size": 2, "input": [{"name": "x", "dims": [2]}, {"name": "sizes", "dims": [2], "is_shape_tensor": True}]},
    )
    VALUES: ClassVar = {"x": np.ones((5, 2), np.float32), "sizes": np.array([3, 4], np.int32)}

    def test_they_have_no_rows(self):
        prepared = prepare(self.META, self.VALUES)
        assert prepared.rows == 5
        assert self.META.inputs_by_name["sizes"].shape == (2,)
        assert "must have the shape [2]" in refusal_of(self.META, {**self.VALUES, "sizes": np.ones((5, 2), np.int32)})

    def test_they_are_never_cut(self):
        *_, part = parts_of(prepare(self.META, self.VALUES), 5, 4)
        assert {name: array.tolist() for name, array in part.arrays.items()} == {"x": [[1, 1]], "sizes": [3, 4]}

    def test_they_get_no_batch_axis(self):
        prepared = prepare(self.META, {"x": np.ones(2, np.float32), "sizes": [3, 4]}, add_batch_axis=True)
        assert {name: array.shape for name, array in prepared.arrays.items()} == {"x": (1, 2), "sizes": (2,)}

    def test_they_are_made_up_without_rows(self):
        arrays = make_inputs(self.META, given={"sizes": [3, 4]}, shapes={}, batch=2)
        assert {name: array.shape for name, array in arrays.items()} == {"x": (2, 2), "sizes": (2,)}
