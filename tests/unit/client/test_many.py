"""Many requests from a series: how far it is read, in which order results and errors come, and what happens when nobody wants them any more."""

import asyncio
import json
import threading
import time

import numpy as np
import pytest
from scripted_triton import ROW, answer

import tritongen
from tritongen.errors import InputError, InvalidInput, TritongenError


async def collected(results):
    """The results, and the error that ended them."""
    found = []
    try:
        async for result in results:
            found.append(result)  # noqa: PERF401 - those before the error count
    except (ZeroDivisionError, TritongenError) as error:
        return found, error
    return found, None


@pytest.mark.parametrize("window", [1, 3])
def test_the_series_is_read_no_further_than_the_window(triton, run, window):
    async def use(client):
        read = []

        def series():
            for number in range(6):
                read.append(number)
                yield {"x": ROW}

        ahead = []
        async for _ in client.infer_many("m", series(), window=window):
            ahead.append(len(read) - len(ahead))
            time.sleep(0.01)
        return ahead

    assert max(run(use, triton.url)) <= window


def test_a_series_that_fails_gives_first_what_came_before(triton, run):
    async def use(client):
        def series():
            yield from [{"x": ROW}] * 3
            raise ZeroDivisionError("the fourth")

        return await collected(client.infer_many("m", series(), window=8))

    results, error = run(use, triton.url)
    assert len(results) == 3
    assert isinstance(error, ZeroDivisionError)


def test_the_error_of_a_request_comes_in_its_place(triton, run):
    async def use(client):
        mixed = await collected(client.infer_many("m", [{"x": ROW}, {"x": "no number"}, {"x": ROW}]))
        triton.infer = lambda asked: (500, {}, json.dumps({"error": "a bad day"}).encode())
        return mixed, await collected(client.infer_many("m", [{"x": ROW}] * 3, window=1))

    (first, refused), (none, failed) = run(use, triton.url)
    assert (len(first), len(none)) == (1, 0)
    assert isinstance(refused, InvalidInput)
    assert "a bad day" in str(failed)


WRONG = [
    (5, {}, "given as int"),
    ({"x": 1}, {}, "given as dict"),
    ("x", {}, "given as str"),
    (None, {}, "given as NoneType"),
    ([], {"window": 0}, "window is 0"),
    ([], {"window": 1.5}, "window is 1.5"),
    ([], {"deadline_s": -1}, "cannot be kept"),
    ([], {"cast": "bogus"}, "cast is 'bogus'"),
]


@pytest.mark.parametrize(("requests", "options", "words"), WRONG, ids=[item[2] for item in WRONG])
@pytest.mark.parametrize("kind", [tritongen.Client, tritongen.AsyncClient])
def test_what_is_no_series_is_refused_by_the_call_itself(kind, requests, options, words):
    with pytest.raises(InputError, match=words):
        kind("http://127.0.0.1:1").infer_many("m", requests, **options)


def test_a_blocking_client_takes_no_asynchronous_series():
    async def series():
        yield {"x": ROW}

    with tritongen.Client("http://127.0.0.1:1") as client, pytest.raises(InvalidInput, match="given as async_generator"):
        client.infer_many("m", series())


def test_results_are_not_withheld_while_the_next_request_is_waited_for(triton):
    async def use():
        more = asyncio.Event()

        async def series():
            yield {"x": ROW}
            await more.wait()
            yield {"x": ROW}

        async with tritongen.AsyncClient(triton.url) as client:
            results = client.infer_many("m", series())
            first = await asyncio.wait_for(results.__anext__(), 10)
            more.set()
            return [first, *[result async for result in results]]

    assert len(asyncio.run(use())) == 2


def test_leaving_sends_nothing_more(triton, run):
    async def use(client):
        results = client.infer_many("m", [{"x": ROW}] * 50, window=2)
        await results.__anext__()
        await results.aclose()

    run(use, triton.url)
    assert len(triton.asked) <= 1 + 2


def test_closing_the_iterator_cancels_what_is_under_way(triton):
    free = threading.Event()
    triton.infer = lambda asked: (free.wait(10), answer())[1]

    async def use():
        async with tritongen.AsyncClient(triton.url) as client:
            await client.meta("m")
            results = client.infer_many("m", [{"x": ROW}] * 4)
            waiting = asyncio.ensure_future(results.__anext__())
            while not triton.asked:
                await asyncio.sleep(0.01)
            waiting.cancel()
            start = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return time.monotonic() - start

    try:
        assert asyncio.run(use()) < 5
    finally:
        free.set()


def test_rows_of_numpy_are_a_series_of_their_own(triton, run):
    async def use(client):
        return [result["y"].shape async for result in client.infer_many("m", ({"x": row} for row in np.ones((3, 1, 2), np.float32)))]

    assert run(use, triton.url) == [(1, 2)] * 3
