"""What holds for load tests' senders over both protocols: limits, order, loss, endings, garbage."""

import asyncio
import contextlib
import gc
import random
import socket
import ssl
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from wire_peers import TIMEOUT_S, answer_all, answering, call, http_answer, http_request, quiet, served, speaking, stamped_ends, turns

from tritongen.client.endpoint import Access, Tls, parse_url
from tritongen.errors import ConnectionFailed, InputError
from tritongen.load.wire import Outcome, frames, open_pool

_TCP = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
RIGHT = {"http": answering(http_answer(), last=True), "grpc": speaking(answer_all)}


@pytest.fixture(params=["http", "grpc"])
def scheme(request):
    return request.param


@pytest.fixture
def nobody():
    """A port where nothing listens, and stays so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_nobody_there_is_said_at_once(scheme, nobody):
    async def run():
        pool = open_pool(parse_url(f"{scheme}://127.0.0.1:{nobody}"))
        with pytest.raises(ConnectionFailed, match="refused") as error:
            await pool.open()
        return error.value, await asyncio.gather(*(pool.send(pool.prepare(call()), TIMEOUT_S) for _ in range(20)))

    error, answers = asyncio.run(run())
    assert not error.sent
    assert {(answer.outcome, answer.sent) for answer in answers} == {(Outcome.CONNECTION, False)}
    assert "refused" in answers[0].error
    assert answers[0].received_s > 0


def test_a_host_without_an_address_is_said_so(scheme):
    pool = open_pool(parse_url(f"{scheme}://no-such-host.invalid"))
    with pytest.raises(ConnectionFailed, match=r"no-such-host\.invalid"):
        asyncio.run(pool.open())


def test_a_server_that_comes_back_is_sent_to_again(scheme):
    async def run():
        async with served(RIGHT[scheme], scheme) as server:
            port = server.server.sockets[0].getsockname()[1]
            before = await server.send()
            server.server.close()
            await server.drop()
            gone = await server.send()
            await asyncio.sleep(0.06)
            again = await asyncio.start_server(RIGHT[scheme], "127.0.0.1", port)
            after = await server.send()
            await server.pool.close()
            again.close()
            return before, gone, after

    outcomes = [answer.outcome for answer in asyncio.run(run())]
    assert outcomes == [Outcome.OK, Outcome.CONNECTION, Outcome.OK]


def test_requests_that_come_while_a_connection_is_made_get_their_answers(scheme):
    async def run():
        async with served(RIGHT[scheme], scheme, opened=False) as server:
            return await asyncio.gather(*(server.send() for _ in range(30))), server.connections

    answers, connections = asyncio.run(run())
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 30
    assert connections == 1 if scheme == "grpc" else connections <= 30


def test_at_the_limit_requests_wait_for_their_turn_in_order():
    async def handler(reader, writer):
        while True:
            await http_request(reader)
            await asyncio.sleep(0.01)
            writer.write(http_answer())

    async def run():
        order = []
        async with served(handler, "http", limit=2) as server:

            async def send(index):
                assert (await server.send()).outcome is Outcome.OK
                order.append(index)

            await asyncio.gather(*(send(index) for index in range(12)))
            return order, server.connections

    order, connections = asyncio.run(run())
    assert connections == 2
    assert all(abs(place - index) <= 1 for place, index in enumerate(order))


def test_who_sends_again_at_once_does_not_overtake_those_who_wait():
    async def run():
        order = []
        async with served(RIGHT["http"], "http", limit=1) as server:

            async def send(name, count):
                for _ in range(count):
                    await server.send()
                    order.append(name)

            await asyncio.gather(send("a", 5), send("b", 5), send("c", 5))
            return order

    assert asyncio.run(run()) == ["a", "b", "c"] * 5


def test_who_waits_too_long_for_a_turn_is_not_sent_and_blocks_nobody():
    async def handler(reader, writer):
        await http_request(reader)
        await asyncio.sleep(0.1)
        writer.write(http_answer())
        await answering(http_answer(), last=True)(reader, writer)

    async def run():
        async with served(handler, "http", limit=1) as server:
            long = asyncio.ensure_future(server.send())
            await asyncio.sleep(0)
            cancelled = asyncio.ensure_future(server.send())
            late = await server.send(0.02)
            cancelled.cancel()
            return late, await long, await server.send()

    late, long, after = asyncio.run(run())
    assert (late.outcome, late.sent, late.sent_s, late.error) == (Outcome.DEADLINE, False, 0.0, "no connection had a place in time")
    assert (long.outcome, after.outcome) == (Outcome.OK, Outcome.OK)


def test_closing_answers_everything_under_way(scheme):
    async def run():
        async with served(lambda reader, writer: reader.read(), "http", limit=1) as server:
            sends = [asyncio.ensure_future(server.send()) for _ in range(3)]
            await turns()
            await server.pool.close()
            return [*await asyncio.wait_for(asyncio.gather(*sends), TIMEOUT_S / 2), await server.send()]

    assert {(answer.outcome, answer.error) for answer in asyncio.run(run())} == {(Outcome.CONNECTION, "the pool is closed")}


@pytest.mark.parametrize("there", [True, False])
def test_requests_leave_nothing_to_collect(scheme, there):
    """Senders switch the collection of garbage off, since it stops the event loop: what requests leave behind would stay for ever."""

    async def run():
        async with served(RIGHT[scheme], scheme, limit=4) as server:
            if not there:
                server.server.close()
                await server.drop()
            await asyncio.gather(*(server.send() for _ in range(8)))
            gc.collect()
            gc.disable()
            try:
                for _ in range(100):
                    await asyncio.gather(*(server.send() for _ in range(4)))
                return gc.collect()
            finally:
                gc.enable()

    assert asyncio.run(run()) < 400  # less than one object a request


def test_connections_leave_little_to_collect():
    """What asyncio leaves behind for each is its own matter; what was read on it must not stay."""

    async def run():
        async with served(answering(http_answer(200, b"x", "Connection: close")), "http") as server:
            await server.send()
            gc.collect()
            gc.disable()
            try:
                for _ in range(50):
                    await server.send()
                gc.set_debug(gc.DEBUG_SAVEALL)
                gc.collect()
                return [type(found).__name__ for found in gc.garbage]
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
                gc.enable()

    assert "Http1Connection" not in asyncio.run(run())


def test_a_request_above_what_grpc_carries_is_refused(monkeypatch):
    monkeypatch.setattr("tritongen.client.requests.MAX_REQUEST_BYTES", 1000)
    with pytest.raises(InputError, match="the limit is 1000"):
        open_pool(parse_url("grpc://127.0.0.1")).prepare(call(1000))


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_a_file_that_is_no_certificate_is_named_as_the_problem(scheme, tmp_path):
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(InputError, match="no certificates in PEM form"):
        open_pool(parse_url(f"{scheme}://127.0.0.1"), Access(Tls(ca=tmp_path / "ca.pem")))


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_a_server_without_tls_is_told_apart(scheme):
    async def run():
        async with served(_garbage, scheme, opened=False) as server:
            return await server.send()

    answer = asyncio.run(run())
    assert (answer.outcome, answer.status, answer.sent) == (Outcome.CONNECTION, "TLS", False)


async def _garbage(reader, writer):
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await writer.drain()


CERTIFICATE = Path(__file__).parents[2] / "localhost.pem"


@contextlib.asynccontextmanager
async def listening(scheme, handler, alpn, access=None):
    """A pool for a server that runs `handler` for each connection; over TLS where the scheme says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    if alpn:
        context.set_alpn_protocols(alpn)
    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context if scheme.endswith("s") else None)
    pool = open_pool(parse_url(f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}"), access or Access(Tls(ca=CERTIFICATE)))
    try:
        yield pool
    finally:
        await pool.close()
        server.close()
        await turns()


async def asked(scheme, handler, alpn, access, size=100_000):
    """What two requests come to, one after another; over TLS where the scheme says so."""
    async with listening(scheme, handler, alpn, access) as pool:
        return [await pool.send(pool.prepare(call(size)), TIMEOUT_S) for _ in range(2)]


@pytest.mark.parametrize(("scheme", "alpn"), [("https", []), ("https", ["http/1.1"]), ("grpcs", ["h2"])])
def test_requests_go_over_tls(scheme, alpn):
    answers = asyncio.run(asked(scheme, quiet(RIGHT[scheme.removesuffix("s")]), alpn, Access(Tls(ca=CERTIFICATE))))
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 2


def test_grpc_needs_a_server_that_agrees_on_http2():
    answers = asyncio.run(asked("grpcs", quiet(RIGHT["http"]), [], Access(Tls(ca=CERTIFICATE))))
    assert {(answer.outcome, answer.sent, answer.error) for answer in answers} == {(Outcome.CONNECTION, False, "it does not agree on h2 by ALPN")}


@pytest.mark.parametrize("scheme", ["https", "grpcs"])
def test_a_certificate_that_is_not_trusted_is_told_as_such(scheme):
    answers = asyncio.run(asked(scheme, quiet(RIGHT["http"]), [], Access()))
    assert {(answer.outcome, answer.status, answer.sent) for answer in answers} == {(Outcome.CONNECTION, "TLS", False)}
    assert "self-signed" in answers[0].error


async def _erratic_http(reader, writer, rng, done):
    while True:
        await http_request(reader)
        await asyncio.sleep(rng.choice([0, 0, 0.002]))
        done.add(what := rng.randrange(12))
        if what == 0:
            return
        if what == 1:
            await reader.read()  # nothing is said until the connection ends
        writer.write({2: b"no HTTP\r\n", 3: http_answer(200, b"last", "Connection: close"), 4: http_answer()[:-1]}.get(what, http_answer()))
        if what in (3, 4):
            return


async def _erratic_grpc(peer, rng, done):
    while True:
        number, _ = await peer.request()
        done.add(what := rng.randrange(25))
        if what == 0:
            return
        if what == 1:
            peer.write(frames.Kind.GOAWAY, 0, 0, frames.number(max(number - 4, 0)) + frames.number(0))
        elif what == 2:
            peer.write(frames.Kind.RST_STREAM, 0, number, frames.number(rng.choice([2, 7])))
        elif what == 3:
            peer.writer.write(frames.settings({frames.Setting.MAX_CONCURRENT_STREAMS: rng.randrange(0, 4)}))
        elif what == 4:
            peer.writer.write(frames.settings({frames.Setting.MAX_CONCURRENT_STREAMS: 100, frames.Setting.INITIAL_WINDOW_SIZE: rng.randrange(200)}))
        elif what == 5:
            peer.write(frames.Kind.DATA, 0x8, number, b"\xff")
        elif what > 6:
            asyncio.get_running_loop().call_later(rng.choice([0, 0.002]), peer.writer.write, peer.answer(number))


@pytest.mark.parametrize("seed", range(3))
def test_whatever_a_server_does_every_request_ends_in_time(scheme, seed):
    rng = random.Random(seed)
    right, done = [], set()

    async def erratic(reader, writer):
        if right:
            await RIGHT[scheme](reader, writer)
        elif scheme == "http":
            await _erratic_http(reader, writer, rng, done)
        else:
            await speaking(lambda peer: _erratic_grpc(peer, rng, done), {frames.Setting.MAX_CONCURRENT_STREAMS: 5})(reader, writer)

    async def send(server, timeout_s):
        start = asyncio.get_running_loop().time()
        sending = asyncio.ensure_future(server.send(timeout_s))
        if rng.randrange(8) == 0:
            asyncio.get_running_loop().call_later(rng.random() * 0.02, sending.cancel)
        answer = (await asyncio.gather(sending, return_exceptions=True))[0]
        return answer, asyncio.get_running_loop().time() - start

    async def run():
        async with served(erratic, scheme, limit=3) as server:
            found = []
            for _ in range(4):
                found += await asyncio.gather(*(send(server, rng.choice([0.01, 0.1, 0.2])) for _ in range(40)))
            right.append(True)
            await server.drop()
            await asyncio.sleep(0.06)
            return found, [await server.send() for _ in range(3)]

    found, after = asyncio.run(run())
    answers = [answer for answer, _ in found if not isinstance(answer, asyncio.CancelledError)]
    assert answers
    assert {answer.outcome for answer in answers} <= set(Outcome)
    assert len(done) > 3, "the server did several things, some of them wrong"
    assert max(seconds for _, seconds in found) < 10
    assert [answer.outcome for answer in after] == [Outcome.OK] * 3


@pytest.mark.parametrize("scheme", ["http", "grpc", "https", "grpcs"])
def test_an_answer_that_is_read_late_came_when_it_was_written(scheme):
    """Server and pool share an event loop here: while what the server wrote lies on this machine, it stands still."""
    written = []

    async def slow(reader, writer):
        write = writer.write

        def stand_still(data):
            write(data)
            written.append(time.perf_counter())
            time.sleep(0.2)

        writer.write = stand_still
        await quiet(RIGHT[scheme.removesuffix("s")])(reader, writer)

    with stamped_ends():
        answers = asyncio.run(asked(scheme, slow, ["h2"] if scheme == "grpcs" else [], Access(Tls(ca=CERTIFICATE)), 4))
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 2
    assert all(answer.unread_s > 0.15 for answer in answers)
    assert all(min(abs(answer.received_s - instant) for instant in written) < 0.1 for answer in answers)


def test_an_answer_takes_its_time_though_the_clock_is_set_meanwhile(scheme, monkeypatch):
    """Stamps are of the wall's clock: when that was set an hour forward, they are from before the request."""

    async def run():
        async with served(RIGHT[scheme], scheme) as server:
            return [await server.send() for _ in range(3)]

    wall = time.time_ns
    with stamped_ends():
        monkeypatch.setattr(time, "time_ns", lambda: wall() + 3600 * 10**9)
        answers = asyncio.run(run())
    assert [answer.unread_s for answer in answers] == [None] * 3
    assert all(answer.received_s > answer.sent_s for answer in answers)


def test_an_address_that_says_nothing_does_not_keep_a_host_from_being_reached(scheme, monkeypatch):
    """Linux drops who knocks at a full queue, as a route that leads nowhere does."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, *_, **__: [(*_TCP, "", (address, port)) for address in ("127.0.0.1", "127.0.0.2")])

    async def run():
        server = await asyncio.start_server(quiet(RIGHT[scheme]), "127.0.0.2", 0)
        port = server.sockets[0].getsockname()[1]
        with contextlib.ExitStack() as open_sockets:
            deaf = open_sockets.enter_context(socket.create_server(("127.0.0.1", port), backlog=0))
            for _ in range(4):
                knocking = open_sockets.enter_context(socket.socket())
                knocking.setblocking(False)
                knocking.connect_ex(deaf.getsockname())
            async with open_pool(parse_url(f"{scheme}://both.test:{port}")) as pool:
                answer = await pool.send(pool.prepare(call()), TIMEOUT_S)
        server.close()
        await turns()
        return answer

    assert asyncio.run(run()).outcome == Outcome.OK


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_http_requests_that_a_slow_server_makes_wait_take_little_memory_and_arrive_whole(scheme):
    """Over gRPC what is under way is bounded by the room that the server gives."""
    size, count, taken = 2_000_000, 6, []
    begin = asyncio.Event()

    async def slow(reader, writer):
        await begin.wait()
        taken.append(await http_request(reader))
        writer.write(http_answer())

    async def run():
        async with listening(scheme, quiet(slow), []) as pool:
            prepared = pool.prepare(call(size))
            tracemalloc.start()
            try:
                sends = [asyncio.ensure_future(pool.send(prepared, TIMEOUT_S)) for _ in range(count)]
                await turns(100)
                held = tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
            begin.set()
            return held, [answer.outcome for answer in await asyncio.gather(*sends)]

    held, outcomes = asyncio.run(run())
    assert outcomes == [Outcome.OK] * count
    assert held < size * 4
    assert len(taken) == count
    assert all(body.endswith(np.arange(size, dtype=np.float32).tobytes()) for body in taken)
