import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritongen import dtypes
from tritongen.samples import SampleError, as_array, random_values, raw_bytes, rows, zeros

INT64, UINT64, UINT8, FP32, FP16, BOOL, BYTES, BF16 = (dtypes.from_wire(name) for name in ["INT64", "UINT64", "UINT8", "FP32", "FP16", "BOOL", "BYTES", "BF16"])


@pytest.mark.parametrize(("shape", "want"), [((), ()), ((1,), (1,)), ((-1,), (1,)), ((1, -1), (1, 1)), (None, ())])
def test_a_single_value_fits_every_shape_of_one_element(shape, want):
    array = as_array(16000, INT64, shape)
    assert (array.shape, array.dtype, array.item()) == (want, np.int64, 16000)


@pytest.mark.parametrize(
    ("value", "dtype", "shape", "words"),
    [
        ([1, 2], INT64, (3,), "expected the shape [3], got [2]"),
        ([[1], [2, 3]], INT64, (-1, -1), "different lengths"),
        (1.5, INT64, (), "does not fit INT64"),
        (300, UINT8, (), "does not fit UINT8"),
        (-1, UINT8, (), "does not fit UINT8"),
        (float("nan"), INT64, (), "does not fit INT64"),
        ("a", INT64, (), "expected numbers"),
        (True, INT64, (), "true or false"),
        (2, BOOL, (), "does not fit BOOL"),
        (1, BYTES, (), "expected text"),
        ("\ud800", BYTES, (), "not valid Unicode"),
        (1e30, FP16, (), "does not fit FP16: 1e+30"),
        (70000, FP16, (), "does not fit FP16: 70000"),
        (1e39, BF16, (), "does not fit BF16"),
        (np.array([0, 1e300]), FP32, (2,), "does not fit FP32: 1e+300"),
        ([1, 10**400], FP32, (2,), "does not fit FP32"),
        ([1, 2**64 - 1], INT64, (2,), "does not fit INT64: 18446744073709551615"),
        (["1", "a"], FP32, (2,), "the text '1'"),
        ([1, "a"], INT64, (2,), "the text 'a'"),
        ([1, None], FP32, (2,), "null"),
        ({"a": 1}, FP32, (), "dict"),
        (1j, FP32, (), "complex128"),
        (np.zeros(2, [("a", "f4")]), FP32, (2,), "expected numbers"),
        (np.zeros(2, "V2"), FP32, (2,), "expected numbers"),
    ],
)
def test_a_value_that_would_be_changed_is_refused(value, dtype, shape, words):
    with pytest.raises(SampleError) as error:
        as_array(value, dtype, shape)
    assert words in str(error.value)


def test_what_a_float_can_hold_within_its_rounding_is_taken_without_a_word():
    assert as_array(np.array([0.1, 1e-300]), FP32, None).tolist() == [np.float32(0.1), 0]
    assert np.isinf(as_array(np.array([np.inf, -np.inf]), FP16, None)).all()
    assert np.isnan(as_array(float("nan"), BF16, None).astype(np.float32))
    assert as_array([1, 2**70], FP32, None).tolist() == [1, 2.0**70]


def test_integers_beyond_a_float_stay_exact():
    assert as_array([1, 2**64 - 1], UINT64, None).tolist() == [1, 2**64 - 1]


def test_bfloat16_comes_back_from_a_npy_file(tmp_path):
    np.save(tmp_path / "x.npy", np.array([1.5, -2], BF16.numpy))
    assert as_array(np.load(tmp_path / "x.npy"), BF16, (2,)).astype(np.float32).tolist() == [1.5, -2]


@pytest.mark.parametrize(("value", "dtype"), [(3, FP32), (0.5, FP16), (0.5, BF16), (True, BOOL), (2.0, INT64), ([1, 2], UINT8)])
def test_values_keep_their_meaning(value, dtype):
    array = as_array(value, dtype, None)
    assert array.dtype == dtype.numpy
    assert np.array_equal(np.asarray(array, np.float64), np.asarray(value, np.float64))


def test_text_becomes_bytes_and_keeps_trailing_zeros():
    array = as_array(["é", b"a\0"], BYTES, (2,))
    assert array.tolist() == ["é".encode(), b"a\0"]
    assert raw_bytes(array, BYTES) == b"\x02\0\0\0\xc3\xa9\x02\0\0\0a\0"


@given(st.sampled_from(dtypes.DTYPES), st.lists(st.integers(0, 4), max_size=3), st.integers(0, 2**32 - 1))
def test_made_up_values_have_the_dtype_and_shape_and_are_finite(dtype, shape, seed):
    for array in (random_values(dtype, shape, np.random.default_rng(seed)), zeros(dtype, shape)):
        assert array.shape == tuple(shape)
        assert array.dtype == dtype.numpy
        if dtype.itemsize:
            assert np.isfinite(array.astype(np.float64)).all()
            assert len(raw_bytes(array, dtype)) == array.size * dtype.itemsize


@pytest.mark.parametrize("dtype", [FP32, FP16, BF16, INT64, UINT8, BOOL])
def test_large_arrays_have_the_values_that_one_draw_gives(dtype):
    """They are made in pieces of a million; what a seed gives does not depend on that."""
    count = (1 << 20) + 12345
    rng = np.random.default_rng(5)
    want = rng.standard_normal(count) if dtype.is_float else rng.integers(0, 2, size=count)
    assert np.array_equal(random_values(dtype, (count,), np.random.default_rng(5)), want.astype(dtype.numpy))


def test_rows_repeat_one_item():
    batch = rows(np.arange(3), 2)
    assert batch.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_the_table_of_dtypes_agrees_with_triton_numpy_and_onnx():
    import onnx
    from tritonclient.grpc.model_config_pb2 import DataType
    from tritonclient.utils import np_to_triton_dtype

    for dtype in dtypes.DTYPES:
        assert DataType.Value(dtype.config) == dtype.config_value
        if dtype.itemsize:
            assert np.dtype(dtype.numpy).itemsize == dtype.itemsize
            assert onnx.helper.tensor_dtype_to_np_dtype(dtype.onnx) == dtype.numpy
        assert np_to_triton_dtype(dtype.numpy) == dtype.wire
    assert {dtype.config for dtype in dtypes.DTYPES} == set(DataType.keys()) - {"TYPE_INVALID"}
