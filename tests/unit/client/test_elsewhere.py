"""Which of several servers is asked: some lack the model, hang, were lost, or are no Triton."""

import time

import pytest
import scripted_grpc
import scripted_triton
from scripted_triton import ROW

from tritongen import errors
from tritongen.client.policy import Balancer

HANG_S = 60.0


@pytest.fixture
def other():
    with scripted_triton.serve() as script:
        yield script


def test_live_servers_share_the_requests(triton, other, run):
    async def use(client):
        for _ in range(10):
            await client.infer("m", x=ROW)

    run(use, [triton.url, other.url])
    assert len(triton.asked) == len(other.asked) == 5


@pytest.mark.parametrize("lack", [{"ready": False}, {"present": False}])
def test_a_server_that_lacks_the_model_costs_no_request(triton, other, run, lack):
    async def use(client):
        for _ in range(6):
            await client.infer("m", x=ROW)
        # Also where the model went after it was described.
        for name, value in lack.items():
            setattr(triton, name, not value)
            setattr(other, name, value)
        other.infer = lambda asked: (400, {}, b'{"error": "no"}')
        for _ in range(6):
            await client.infer("m", x=ROW)

    for name, value in lack.items():
        setattr(triton, name, value)
    run(use, [triton.url, other.url])


def test_a_sequence_goes_to_a_server_that_has_the_model(triton, other, run):
    triton.ready = False

    async def use(client):
        for _ in range(4):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW)
                await sequence.infer(x=ROW, end=True)

    run(use, [triton.url, other.url])
    assert other.flags == [(True, False), (False, True)] * 4


def test_each_server_is_asked_however_few_retries_there_are(triton, other, run):
    triton.ready = False

    async def use(client):
        for _ in range(4):
            await client.infer("m", x=ROW)

    run(use, [triton.url, triton.url, triton.url, other.url], retries=0)


def test_a_server_gets_requests_again_once_a_model_was_loaded_there(triton, other, run):
    async def use(client):
        triton.ready = False
        for _ in range(2):
            await client.infer("m", x=ROW)
        triton.ready = True
        await client.load("m")
        for _ in range(4):
            await client.infer("m", x=ROW)

    run(use, [triton.url, other.url])
    assert (len(triton.asked), len(other.asked)) == (2, 4)


def test_a_proxy_that_has_no_server_behind_it_is_left_out(triton, other, run):
    async def use(client):
        for _ in range(2):
            await client.infer("m", x=ROW)
        triton.instead = (503, {}, b"no healthy upstream")
        failed = 0
        for _ in range(10):
            try:
                await client.infer("m", x=ROW)
            except errors.Unavailable:  # it may have been executed
                failed += 1
        assert failed <= 1
        for _ in range(4):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW, end=True)

    run(use, [triton.url, other.url])


def test_a_server_that_hangs_costs_sequences_one_probe(other, run, hole):
    async def use(client):
        await client.meta("m")
        client._core.balancer.trusted[0] = True  # as if it had answered until now
        start = time.monotonic()
        for _ in range(30):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW, end=True, deadline_s=600)
        assert time.monotonic() - start < HANG_S / 2, "one probe of two seconds, and not one for each"

    run(use, [f"http://127.0.0.1:{hole}", other.url], deadline_s=600)


def test_an_outage_of_any_length_is_a_lost_connection(run, gone):
    """Two thousand times in a row: rests that double are bounded before they are numbers that nothing holds."""

    async def use(client):
        for _ in range(2_000):
            client._core.balancer._resting_until[0] = 0.0  # as if its rest were over
            client._core.balancer.lost(0)
        with pytest.raises(errors.ConnectionFailed):
            await client.infer("m", x=ROW)
        assert not await client.live()
        assert client._core.balancer._resting_until[0] < time.monotonic() + 31

    run(use, f"http://127.0.0.1:{gone}", retries=0)


def test_what_was_under_way_when_a_server_was_lost_makes_its_rest_no_longer():
    balancer = Balancer(2)
    for _ in range(24):
        balancer.lost(0)
    assert balancer._resting_until[0] <= time.monotonic() + 1.0


def test_a_model_that_no_server_has_is_not_found(triton, other, run):
    triton.present = other.present = False

    async def use(client):
        with pytest.raises(errors.ModelNotFound, match="no model 'm'"):
            await client.infer("m", x=ROW)

    run(use, [triton.url, other.url])


@pytest.mark.parametrize("place", [0, 1])
def test_health_is_known_soon_where_one_server_of_several_hangs(triton, run, hole, place):
    urls = [triton.url, triton.url]
    urls[place] = f"http://127.0.0.1:{hole}"

    async def use(client):
        start = time.monotonic()
        assert await client.ready(deadline_s=600)
        assert await client.health(deadline_s=600) == (True, True)
        await client.wait_ready("m", deadline_s=600)
        assert time.monotonic() - start < HANG_S

    run(use, urls)


@pytest.mark.parametrize("place", [0, 1])
def test_whichever_server_comes_back_first_is_used_at_once(triton, run, gone, place):
    urls = [f"http://127.0.0.1:{gone}", f"http://127.0.0.1:{gone}"]
    urls[place] = triton.url

    async def use(client):
        for index in range(2):  # both were lost, and the other one rests for less long
            client._core.balancer._rests[index] = 4 - (index == 1 - place)
            client._core.balancer.lost(index)
        assert await client.ready("m")
        assert await client.live()
        for index in range(2):
            client._core.balancer.lost(index)
        await client.infer("m", x=ROW)

    run(use, urls)


def test_a_page_that_says_yes_to_everything_is_no_triton(triton, other, run):
    """As Triton's own page of metrics does."""
    other.instead = (200, {}, b"")

    async def alone(client):
        assert not await client.live()
        assert not await client.ready("nope")
        with pytest.raises(errors.DeadlineExceeded, match="no Triton"):
            await client.wait_ready("m", deadline_s=0.5)
        with pytest.raises(errors.NotTriton, match="no Triton"):
            await client.infer("m", x=ROW)

    async def beside(client):
        for _ in range(6):
            await client.infer("m", x=ROW)

    run(alone, other.url)
    run(beside, [other.url, triton.url])


def test_a_grpc_server_that_starts_after_its_client_is_no_stranger(run, gone):
    async def use(client):
        with pytest.raises(errors.ConnectionFailed) as error:
            await client.infer("m", x=ROW)
        assert not isinstance(error.value, errors.NotTriton)
        with scripted_grpc.serve(port=gone):
            end = time.monotonic() + HANG_S
            while True:
                try:
                    await client.infer("m", x=ROW)
                except errors.NotTriton:
                    raise
                except errors.ConnectionFailed:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)
                else:
                    break

    run(use, f"grpc://127.0.0.1:{gone}", retries=0)
