"""When a sequence begins and ends: START with the first request that reached a server, END with the last, and nothing for what never began."""

import asyncio
import json
import threading
import time

import numpy as np
import pytest
from scripted_triton import ROW, answer, serve

import tritongen
from tritongen.client.sequence import SequenceState
from tritongen.errors import ConnectionFailed, InferenceError, InvalidInput, ModelNotReady, Overloaded

GONE = "http://127.0.0.1:1"


def error_of(status, words="no"):
    return lambda asked: (status, {}, json.dumps({"error": words}).encode())


async def attempt(sequence, kind, **options):
    with pytest.raises(kind) as error:
        await sequence.infer(**options)
    return error.value


def test_what_was_refused_here_is_not_begun(triton, run):
    async def use(client):
        async with client.sequence("m") as sequence:
            await attempt(sequence, InvalidInput, x=ROW.astype(np.int64))
        async with client.sequence("m") as sequence:
            await attempt(sequence, InvalidInput, x=np.ones((5, 2), np.float32))
            await sequence.infer(x=ROW)

    run(use, triton.url)
    assert triton.flags == [(True, False), (False, True)]


def test_a_model_that_is_not_ready_begins_no_sequence(triton, run):
    async def use(client):
        async with client.sequence("m") as sequence:
            triton.ready = False
            await attempt(sequence, ModelNotReady, x=ROW)
            triton.ready = True
            await client.infer("m", x=ROW)  # the model is known from here on
            triton.ready, triton.infer = False, error_of(503)
            await attempt(sequence, ModelNotReady, x=ROW)
            triton.ready, triton.infer = True, lambda asked: answer()
            triton.asked.clear()
            await sequence.infer(x=ROW, end=True)

    run(use, triton.url, retries=0)
    assert triton.flags == [(True, True)]


def test_a_server_that_is_not_there_begins_no_sequence(run):
    async def use(client):
        async with client.sequence("m") as sequence:
            assert not (await attempt(sequence, ConnectionFailed, x=ROW)).sent

    run(use, GONE, retries=0)


def test_what_the_server_may_have_taken_is_ended(triton, run):
    async def use(client):
        async with client.sequence("m") as sequence:
            triton.infer = error_of(503)
            await attempt(sequence, Overloaded, x=ROW)
            triton.infer = lambda asked: answer()

    run(use, triton.url, retries=0)
    assert triton.flags == [(True, False), (False, True)]


def test_an_end_that_never_left_is_sent_with_the_block(triton, run):
    async def use(client):
        async with client.sequence("m") as sequence:
            await sequence.infer(x=ROW)
            await attempt(sequence, InvalidInput, x=ROW.astype(np.int64), end=True)

    run(use, triton.url)
    assert triton.flags == [(True, False), (False, True)]


def test_a_sequence_goes_to_a_server_that_lives_and_stays_there(triton, run):
    async def use(client):
        for _ in range(4):
            async with client.sequence("m") as sequence:
                await sequence.infer(x=ROW)
                await sequence.infer(x=ROW, end=True)

    with serve() as other:
        run(use, [GONE, triton.url, other.url], retries=0)
        ids = [{asked.said["parameters"]["sequence_id"] for asked in script.asked} for script in (triton, other)]
    assert not ids[0] & ids[1]
    assert sum(map(len, ids)) == 4


def test_a_cancelled_sequence_is_ended_although_its_client_closes(triton):
    async def use(begun):
        async with tritongen.AsyncClient(triton.url) as client, client.sequence("m") as sequence:
            await sequence.infer(x=ROW)
            begun.set_result(None)
            await asyncio.sleep(60)

    async def cancel():
        begun = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(use(begun))
        await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert triton.flags == [(True, False), (False, True)]


WRONG = [
    (([1],), {}, "given as list, without names"),
    ((ROW,), {}, "given as ndarray, without names"),
    (({"x": ROW},), {"x": ROW}, "'x' is given twice"),
    ((), {"x": ROW, "end": 1}, "end is 1, not True or False"),
    ((), {"x": ROW, "end": "no"}, "end is 'no'"),
    ((), {"x": ROW, "idempotent": True}, "never sent twice"),
    ((), {"x": ROW, "version": "1"}, "the version is settled already"),
]


@pytest.mark.parametrize(("inputs", "options", "words"), WRONG, ids=[item[2] for item in WRONG])
def test_arguments_that_no_step_can_have_are_refused(triton, run, inputs, options, words):
    async def use(client):
        async with client.sequence("m") as sequence:
            with pytest.raises(InvalidInput, match=words):
                await sequence.infer(*inputs, **options)

    run(use, triton.url)
    assert triton.asked == []


def test_flags_and_ids_of_numpy_are_taken(triton, run):
    async def use(client):
        async with client.sequence("m", sequence_id=np.int64(7)) as sequence:
            await sequence.infer(x=ROW, end=np.True_)

    run(use, triton.url)
    assert (triton.flags, triton.asked[0].said["parameters"]["sequence_id"]) == ([(True, True)], 7)


def test_a_sequence_lives_in_its_block_alone(triton, run):
    async def use(client):
        sequence = client.sequence("m")
        await attempt_outside(sequence)
        async with sequence:
            await sequence.infer(x=ROW)
        await attempt_outside(sequence)
        with pytest.raises(InvalidInput, match="had its `with` block already"):
            await sequence.__aenter__()

    async def attempt_outside(sequence):
        assert "outside its `with` block" in str(await attempt(sequence, InvalidInput, x=ROW))

    run(use, triton.url)
    assert triton.flags == [(True, False), (False, True)]


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "", True, "\ud800", 1.5, None, np.zeros(2)], ids=repr)
def test_an_id_that_is_none_is_refused(wrong):
    with pytest.raises(InvalidInput, match="cannot be the id"):
        SequenceState("m", "", wrong)


def test_leaving_says_what_kept_the_end_from_being_sent(triton, run):
    async def use(client):
        async with client.sequence("m") as sequence:
            await sequence.infer(x=ROW)
            triton.infer = error_of(500, "no end")

    with pytest.raises(InferenceError, match="no end"):
        run(use, triton.url, retries=0)


def test_one_request_after_another():
    """Two at once would both say START, and the model would have two states of which one is lost."""
    state = SequenceState("m", "", 1)
    state.enter()
    first = state.next(None, {"x": ROW}, False)
    with pytest.raises(InvalidInput, match="has a request under way, and takes one after another"):
        state.next(None, {"x": ROW}, False)
    with state.sending(first):
        pass
    second = state.next(None, {"x": ROW}, True)
    assert [(step.parameters["sequence_start"], step.parameters["sequence_end"]) for step in (first, second)] == [(True, False), (False, True)]


def test_tasks_that_send_at_once_are_told(triton):
    async def use():
        async with tritongen.AsyncClient(triton.url) as client, client.sequence("m") as sequence:
            return await asyncio.gather(sequence.infer(x=ROW), sequence.infer(x=ROW), return_exceptions=True)

    answer, refused = asyncio.run(use())
    assert not isinstance(answer, BaseException)
    assert isinstance(refused, InvalidInput)
    assert triton.flags == [(True, False), (False, True)]


@pytest.mark.parametrize("held", [False, True])
def test_a_task_that_is_cancelled_as_its_block_ends_ends_the_sequence(triton, held):
    """The cancellation arrives at the first step of leaving, or while the server has the END."""
    leaving = threading.Event()

    def infer(asked):
        if asked.said["parameters"]["sequence_end"]:
            leaving.set()
            time.sleep(0.2)
        return answer()

    async def use(client):
        async with client.sequence("m") as sequence:
            await sequence.infer(x=ROW)
            if not held:
                asyncio.current_task().cancel()

    async def main():
        triton.infer = infer
        async with tritongen.AsyncClient(triton.url) as client:
            task = asyncio.ensure_future(use(client))
            if held:
                await asyncio.to_thread(leaving.wait, 60)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert triton.flags == [(True, False), (False, True)]
