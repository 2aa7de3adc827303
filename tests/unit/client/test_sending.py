"""What is sent, to whom and until when: deadlines of requests that are cut, connections that could not be made, interrupts, and what spans say of it."""

import asyncio
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
import scripted_grpc
import scripted_triton
import spans

import tritongen
from tritongen import errors

BUSY_S = 1.0
ONE = np.ones((1, 2), np.float32)


def slowly(seconds):
    def infer(asked):
        time.sleep(seconds)
        return scripted_triton.answer(asked.said["inputs"][0]["shape"][0])

    return infer


def test_parts_whose_turn_comes_too_late_are_never_sent(triton, run):
    triton.infer = slowly(0.02)

    async def check(client):
        await client.meta("m")
        start = time.monotonic()
        with pytest.raises(errors.PartialFailure, match=r"of 2000 parts failed, with the rows .* to 7999; \d+ of them were not sent in time") as error:
            await client.infer("m", x=np.ones((8_000, 2), np.float32), deadline_s=2)
        assert time.monotonic() - start < 2 + 0.05 + BUSY_S
        return error.value

    error = run(check, triton.url, window=4)
    unsent = [part for part in error.failures.values() if isinstance(part, errors.DeadlineExceeded) and not part.sent]
    time.sleep(0.1)
    # A part that was just begun may have been too late for its connection.
    assert 0 <= 2000 - len(unsent) - len(triton.asked) <= 4
    assert len(str(error)) < 400


def test_a_request_of_which_no_part_succeeded_in_time_is_late_as_a_whole(triton, run):
    triton.infer = slowly(1.0)

    async def check(client):
        await client.meta("m")
        with pytest.raises(errors.DeadlineExceeded):
            await client.infer("m", x=np.ones((40, 2), np.float32), deadline_s=0.3)

    run(check, triton.url, window=4)
    assert len(triton.asked) <= 4


def test_ranges_of_failed_rows_are_few_in_a_message(triton, run):
    triton.infer = lambda asked: (500, {}, b'{"error": "odd"}') if len(triton.asked) % 2 else scripted_triton.answer(4)

    async def check(client):
        with pytest.raises(errors.PartialFailure, match=r"10 of 20 parts failed, .* and 5 more ranges; the first of them"):
            await client.infer("m", x=np.ones((80, 2), np.float32))

    run(check, triton.url, window=1)


def test_a_request_that_takes_too_long_to_write_is_not_sent(triton, run):
    async def check(client):
        await client.meta("m")
        with pytest.raises(errors.DeadlineExceeded, match="over before the request was sent") as error:
            await client.infer("m", x=ONE, deadline_s=1e-6)
        assert not error.value.sent

    run(check, triton.url)
    assert triton.asked == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_health_has_one_deadline_for_both_questions(run, hole, protocol):
    async def check(client):
        start = time.monotonic()
        assert await client.health(deadline_s=0.8) == (False, False)
        assert time.monotonic() - start < 1.5

    run(check, f"{protocol}://127.0.0.1:{hole}")


def test_an_interrupt_ends_a_request_that_was_cut_at_once(triton):
    triton.infer = slowly(2.0)
    with tritongen.Client(triton.url, window=2) as client:
        client.meta("m")
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            client.infer("m", x=np.ones((400, 2), np.float32))
        assert time.monotonic() - start < 1.5
        # What was under way is over by itself, and nothing follows it.
        for thread in [thread for thread in threading.enumerate() if thread.name.startswith("tritongen-parts")]:
            thread.join()
    assert len(triton.asked) == 2


async def noticed(client, index):
    """Wait until the client's channel to a server that was ended knows it."""
    transport = client._transports[index]
    give_up = time.monotonic() + 60
    while transport._watch.ready if hasattr(transport, "_watch") else transport._channel.get_state() is grpc.ChannelConnectivity.READY:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.01)


def test_a_server_that_is_gone_costs_none_of_many_requests_at_once(gone):
    with scripted_grpc.serve() as good, scripted_grpc.serve() as bad, tritongen.Client([good.url, bad.url]) as client, ThreadPoolExecutor(16) as pool:
        for _ in range(4):
            client.infer("m", x=ONE)
        bad.stop()
        asyncio.run(noticed(client, 1))
        results = list(pool.map(lambda _: client.infer("m", x=ONE)["y"].shape, range(320)))
    assert results == [(1, 2)] * 320


def test_a_server_that_is_gone_costs_none_of_many_tasks():
    async def main():
        with scripted_grpc.serve() as good, scripted_grpc.serve() as bad:
            async with tritongen.AsyncClient([good.url, bad.url]) as client:
                for _ in range(4):
                    await client.infer("m", x=ONE)
                bad.stop()
                await noticed(client, 1)
                return await asyncio.gather(*[client.infer("m", x=ONE) for _ in range(64)])

    assert len(asyncio.run(main())) == 64


def test_many_requests_to_a_closed_port_know_that_they_were_not_sent(gone):
    def one(client):
        with pytest.raises(errors.ConnectionFailed) as error:
            client.infer("m", x=ONE)
        return error.value.sent

    with tritongen.Client(f"grpc://127.0.0.1:{gone}", retries=0) as client, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, [client] * 24)) == [False] * 24


def test_streams_leave_out_a_server_that_is_gone(run):
    async def check(client):
        for _ in range(2):
            assert len([item async for item in client.stream("m", x=ONE)]) == 1
        bad.stop()
        await noticed(client, 1)
        for _ in range(6):
            assert len([item async for item in client.stream("m", x=ONE)]) == 1

    with scripted_grpc.serve() as good, scripted_grpc.serve() as bad:
        run(check, [good.url, bad.url])


def test_a_stream_that_found_no_server_was_not_sent(run):
    async def check(client):
        assert len([item async for item in client.stream("m", x=ONE)]) == 1
        server.stop()
        await noticed(client, 0)
        with pytest.raises(errors.ConnectionFailed) as error:
            [item async for item in client.stream("m", x=ONE)]
        assert not error.value.sent

    with scripted_grpc.serve() as server:
        run(check, server.url, retries=0)


@pytest.mark.parametrize(("delay_s", "queue_timeout_us", "kind"), [(0.0, 19_000, errors.Overloaded), (0.5, 300_000, errors.QueueTimeout)])
def test_time_in_the_queue_is_that_of_the_server_only(run, delay_s, queue_timeout_us, kind):
    """The channel takes 20 ms to be sure of its connection, and the model's readiness is asked about: neither is time in the queue."""

    def refuse(request, context):
        time.sleep(delay_s)
        context.abort(grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size")

    async def check(client):
        found = set()
        # A busy machine may take 19 ms for a request, but not for each.
        for _ in range(1 if delay_s else 10):
            with pytest.raises(errors.Overloaded) as error:
                await client.infer("m", x=ONE)
            found.add(type(error.value))
        assert kind in found

    with scripted_grpc.serve(refuse, queue_timeout_us=queue_timeout_us) as server:
        run(check, server.url, retries=0)


def test_a_cancelled_task_stays_cancelled_when_its_client_is_closed():
    seen = []

    def wait(request, context):
        seen.append(server.cancelled.wait(5))
        return scripted_grpc.answer(request, context)

    async def main(url):
        client = tritongen.AsyncClient(url)
        await client.meta("m")
        task = asyncio.ensure_future(client.infer("m", x=ONE))
        await asyncio.sleep(0.2)
        task.cancel()
        await client.close()
        await asyncio.wait([task])
        return task

    with scripted_grpc.serve(wait) as server:
        task = asyncio.run(main(server.url))
    # The server was told before its answer was there.
    assert seen == [True]
    # Python 3.10 does not say of a task whether somebody cancelled it.
    assert task.cancelled() or sys.version_info < (3, 11)


def test_a_span_names_the_server_that_answered_and_goes_along(triton, run, gone):
    async def check(client):
        await client.infer("m", x=ONE)

    with spans.collected() as seen:
        run(check, [f"http://127.0.0.1:{gone}", triton.url])
        (span,) = seen.get_finished_spans()
    assert (span.attributes["server.address"], span.attributes["server.port"]) == ("127.0.0.1", int(triton.url.rsplit(":", 1)[1]))
    _, trace_id, span_id, _ = triton.asked[0].headers["traceparent"].split("-")
    assert (int(trace_id, 16), int(span_id, 16)) == (span.context.trace_id, span.context.span_id)


def test_a_span_names_the_server_that_could_not_be_asked_about_the_model(run, gone):
    async def check(client):
        with pytest.raises(errors.ConnectionFailed):
            await client.infer("m", x=ONE)

    with spans.collected() as seen:
        run(check, f"http://127.0.0.1:{gone}", retries=0)
        (span,) = seen.get_finished_spans()
    assert (span.attributes["server.address"], span.attributes["server.port"]) == ("127.0.0.1", gone)


def test_a_request_with_a_trace_of_its_own_keeps_it(triton, run):
    own = f"00-{'1' * 32}-{'2' * 16}-01"

    async def check(client):
        await client.infer("m", x=ONE, headers={"Traceparent": own})

    with spans.collected():
        run(check, triton.url)
    assert triton.asked[0].headers["traceparent"] == own
    assert "tracestate" not in triton.asked[0].headers


def test_where_greenlets_stand_for_threads_and_grpc_was_not_told_requests_end_all_the_same(tmp_path):
    """gRPC's thread for news would be a greenlet that never gives way, and stop the process for ever."""
    import subprocess
    import sys
    from pathlib import Path

    script = tmp_path / "script.py"
    script.write_text(
        "from gevent import monkey\nmonkey.patch_all()\nimport tritongen\n"
        "with tritongen.Client('grpc://127.0.0.1:1') as client:\n"
        "    for _ in range(2):\n        print(client.live(deadline_s=2))\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, str(script)], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["False", "False"]
