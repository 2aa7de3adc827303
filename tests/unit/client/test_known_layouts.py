"""Requests whose like was sent before: what is remembered of their layout lets nothing else pass."""

import numpy as np
import pytest
import scripted_grpc
from scripted_triton import ROW, answer

from tritongen.client.core import Described
from tritongen.client.metadata import model_meta
from tritongen.client.requests import Fit
from tritongen.errors import InferenceError, InvalidInput

NUMBERS = np.array([[3, 9, 3, 9]], np.float32)


@pytest.fixture
def talking():
    """The same model over gRPC."""
    with scripted_grpc.serve() as script:
        yield script


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"x": np.ones((1, 3), np.float32)}, "must have the shape"),
        ({"x": np.ones(2, np.float32)}, "must have the shape"),
        ({"x": np.ones((1, 2))}, "must be FP32"),
        ({"x": np.ones((0, 2), np.float32)}, "the batch has no rows"),
        ({"x": np.array([["a", 1]], object)}, "input 'x'"),
        ({"x": ROW, "z": ROW}, "no input 'z'"),
        ({"z": ROW}, "input 'x' is missing"),
        ({}, "input 'x' is missing"),
    ],
)
def test_what_does_not_fit_is_refused_after_what_did(triton, run, inputs, words):
    async def use(client):
        for _ in range(2):
            await client.infer("m", x=ROW)
        with pytest.raises(InvalidInput, match=words):
            await client.infer("m", inputs)

    run(use, triton.url)
    assert len(triton.asked) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"outputs": ["z"]}, "no output 'z'"),
        ({"cast": "any"}, "cast is 'any'"),
        ({"add_batch_axis": 0}, "add_batch_axis is 0"),
        ({"request_id": "a\n"}, "control characters"),
        ({"deadline_s": 0}, "a time limit of 0 s"),
    ],
)
def test_options_are_checked_whatever_is_known_of_the_inputs(triton, run, options, words):
    async def use(client):
        for _ in range(2):
            await client.infer("m", x=ROW)
        with pytest.raises(InvalidInput, match=words):
            await client.infer("m", x=ROW, **options)

    run(use, triton.url)
    assert len(triton.asked) == 2


def test_what_fitted_is_checked_again_once_another_model_is_loaded(triton, run):
    async def use(client):
        for _ in range(2):
            await client.infer("m", x=ROW)
        triton.datatype, triton.infer = "INT64", lambda asked: (400, {}, b'{"error": "another datatype"}')
        with pytest.raises(InvalidInput, match="must be INT64"):
            await client.infer("m", x=ROW)

    run(use, triton.url)


def test_requests_of_one_layout_carry_their_own_values(talking, run):
    carried = []

    def keeping(request, context):
        carried.append(np.frombuffer(request.raw_input_contents[0], "<f4").tolist())
        return scripted_grpc.answer(request, context)

    async def use(client):
        for values in (ROW, ROW * 2, NUMBERS[:, ::2], (ROW * 4).astype(">f4"), ROW * 5):
            await client.infer("m", x=values)

    talking.infer = keeping
    run(use, talking.url)
    assert carried == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]]


def test_requests_of_ever_new_sizes_are_not_all_remembered():
    described = Described(model_meta({"name": "m"}, {}), 0.0, {})
    for size in range(5000):
        described.remember((("x", np.dtype(np.float32), (size, 2)),), Fit((), 0.0))
    assert len(described.fits) <= 1024


def test_parts_with_other_outputs_make_no_answer(triton, run):
    def infer(asked):
        rows = asked.said["inputs"][0]["shape"][0]
        status, headers, body = answer(rows)
        return status, headers, body if rows == 4 else body.replace(b'"y"', b'"z"')

    async def use(client):
        with pytest.raises(InferenceError, match=r"have the outputs \['y'\] and \['z'\], which make no one answer"):
            await client.infer("m", x=np.ones((6, 2), np.float32))

    triton.infer = infer
    run(use, triton.url)
