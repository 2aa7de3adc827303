"""The HTTP sender of load tests against servers that answer rightly, oddly and wrongly."""

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_peers import TIMEOUT_S, answering, call, http_answer, http_error, http_request, served, turns

from tritongen.client.calls import CallFailed
from tritongen.client.endpoint import Access
from tritongen.load.wire import Outcome

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"
UNFRAMED = b"HTTP/1.0 200 OK\r\n\r\nabcdefg"


def exchange(handler, count=1, **options):
    """The answers to so many requests, one after another, and how many connections they took."""

    async def run():
        async with served(handler, "http", **options) as server:
            return [await server.send(keep=True) for _ in range(count)], server.connections

    return asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        http_answer(200, b"abcdefg"),
        CHUNKED,
        b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + http_answer(200, b"abcdefg"),
        http_answer(200, b"abcdefg", "Connection: keep-alive"),
    ],
)
def test_an_answer_is_read_and_the_connection_kept(answer):
    answers, connections = exchange(answering(answer, last=True), 3)
    assert [(answer.outcome, answer.status, answer.size, answer.payload) for answer in answers] == [(Outcome.OK, "200", 7, b"abcdefg")] * 3
    assert connections == 1
    assert all(answer.sent and 0 < answer.sent_s < answer.received_s for answer in answers)


@pytest.mark.parametrize("answer", [UNFRAMED, http_answer(200, b"abcdefg", "Connection: close"), UNFRAMED.replace(b"1.0", b"1.1")])
def test_an_answer_may_end_its_connection(answer):
    answers, connections = exchange(answering(answer), 3)
    assert [(answer.outcome, answer.size) for answer in answers] == [(Outcome.OK, 7)] * 3
    assert connections == 3


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(400, "invalid"), (401, "invalid"), (403, "invalid"), (404, "gone"), (501, "invalid"), (503, "rejected"), (500, "failed"), (302, "failed")],
)
def test_an_error_of_triton_is_told_in_its_words(status, outcome):
    (answer,), _ = exchange(answering(http_error(status, "exceeds maximum queue size")))
    assert (answer.outcome, answer.status, answer.error) == (outcome, str(status), "exceeds maximum queue size")


def test_an_error_of_a_proxy_is_told_with_its_body_cut_short():
    (answer,), _ = exchange(answering(http_answer(502, b"<html>" + b"x" * 1_000_000)))
    assert (answer.outcome, answer.size) == (Outcome.CONNECTION, 1_000_006)
    assert answer.error.startswith("status 502: '<html>xxx")
    assert len(answer.error) < 300


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closed without an answer"),
        (http_answer(200, b"abcdefg")[:-1], "closed in the middle of its answer"),
        (CHUNKED[:-3], "closed in the middle of its answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "its answer is no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "its answer is no HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "its answer is no HTTP"),
    ],
)
def test_a_damaged_answer_fails_its_request_and_no_other(answer, words):
    (first, second), connections = exchange(_first_then(answer), 2)
    assert first.outcome is Outcome.CONNECTION
    assert words in first.error
    assert (second.outcome, connections) == (Outcome.OK, 2)


def _first_then(answer):
    """A server whose first connection answers so, and whose later ones are right."""
    connections = []

    async def handler(reader, writer):
        connections.append(writer)
        await answering(answer if len(connections) == 1 else http_answer())(reader, writer)

    return handler


def test_an_answer_that_nobody_asked_for_meets_no_request():
    answers, connections = exchange(answering(http_answer(200, b"mine") + http_answer(200, b"stray")), 3)
    assert [answer.payload for answer in answers] == [b"mine"] * 3
    assert connections == 3


def test_bytes_on_an_idle_connection_end_it():
    async def handler(reader, writer):
        await http_request(reader)
        writer.write(http_answer(200, b"mine"))
        await turns()
        writer.write(http_answer(200, b"stray"))
        await reader.read()

    async def run():
        async with served(handler, "http") as server:
            first = await server.send(keep=True)
            await turns(60)
            return first.payload, (await server.send(keep=True)).payload, server.connections

    assert asyncio.run(run()) == (b"mine", b"mine", 2)


def test_a_connection_that_is_closed_while_idle_is_made_again():
    async def run():
        async with served(answering(http_answer()), "http") as server:
            first = await server.send()
            await turns()
            return first, await server.send(), server.connections

    first, second, connections = asyncio.run(run())
    assert (first.outcome, second.outcome, connections) == (Outcome.OK, Outcome.OK, 2)


def test_a_late_answer_is_no_answer_to_the_next_request():
    connections = []

    async def handler(reader, writer):
        connections.append(writer)
        await http_request(reader)
        if len(connections) == 1:
            await asyncio.sleep(0.1)
        writer.write(http_answer(200, b"%d" % len(connections)))

    async def run():
        async with served(handler, "http") as server:
            return await server.send(0.05), await server.send(keep=True)

    late, second = asyncio.run(run())
    assert (late.outcome, late.error, late.sent) == (Outcome.DEADLINE, "no answer in time", True)
    assert 0.04 < late.received_s - late.sent_s < TIMEOUT_S / 2
    assert (second.outcome, second.payload) == (Outcome.OK, b"2")


def test_an_answer_before_the_request_was_read_is_an_answer_and_ends_the_connection():
    async def handler(reader, writer):
        await reader.readexactly(10)
        writer.write(http_error(400, "too large"))
        await asyncio.sleep(TIMEOUT_S)

    async def run():
        async with served(handler, "http") as server:
            server.prepared = server.pool.prepare(call(8 << 20))
            return await server.send(), await server.send(), server.connections

    first, second, connections = asyncio.run(run())
    assert (first.outcome, first.error, second.error) == (Outcome.INVALID, "too large", "too large")
    assert connections == 2


def test_the_request_is_what_triton_reads():
    seen = []

    async def handler(reader, writer):
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        seen.append(await reader.read(1 << 16))
        writer.write(http_answer())

    async def run():
        async with served(handler, "http", access=Access(headers={"x-trace": "7"})) as server:
            server.prepared = server.pool.prepare(call(2, request_id="r"))
            await server.send()

    asyncio.run(run())
    head, body = seen[0].decode().split("\r\n"), seen[1]
    headers = dict(line.split(": ") for line in head[1:-2])
    assert head[0] == "POST /v2/models/m/infer HTTP/1.1"
    assert headers["x-trace"] == "7"
    assert int(headers["content-length"]) == len(body)
    size = int(headers["inference-header-content-length"])
    assert b'"id": "r"' in body[:size]
    assert body[size:] == bytes.fromhex("000000000000803f")


def test_an_answer_that_was_not_kept_has_no_arrays():
    async def run():
        async with served(answering(http_answer(200, b"abc")), "http") as server:
            answer = await server.send()
            with pytest.raises(CallFailed):
                server.pool.decode(answer)
            return answer.payload

    assert asyncio.run(run()) is None


STREAM = [CHUNKED, http_error(503, "full"), b"HTTP/1.1 100 Continue\r\n\r\n" + http_answer(200, b"z" * 300), http_answer(404, b""), http_answer(200, b"")]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 400), max_size=12), min_size=len(STREAM), max_size=len(STREAM)))
def test_answers_do_not_depend_on_how_they_are_split(cuts):
    async def handler(reader, writer):
        for answer, places in zip(STREAM, cuts, strict=True):
            await http_request(reader)
            edges = sorted({place % (len(answer) + 1) for place in places} | {0, len(answer)})
            for start, stop in itertools.pairwise(edges):
                writer.write(answer[start:stop])
                await asyncio.sleep(0)
        await reader.read()

    answers, connections = exchange(handler, len(STREAM))
    assert [(answer.status, answer.size, answer.outcome) for answer in answers] == [
        ("200", 7, "ok"),
        ("503", len(b'{"error": "full"}'), "rejected"),
        ("200", 300, "ok"),
        ("404", 0, "gone"),
        ("200", 0, "ok"),
    ]
    assert connections == 1


def test_an_answer_may_come_byte_by_byte():
    async def handler(reader, writer):
        await http_request(reader)
        for byte in CHUNKED:
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        await reader.read()

    (answer,), _ = exchange(handler)
    assert (answer.outcome, answer.payload) == (Outcome.OK, b"abcdefg")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_no_bytes_of_a_server_break_the_sender(noise, after_a_head):
    answer = (b"HTTP/1.1 200 OK\r\n" if after_a_head else b"") + noise
    (first, second), _ = exchange(_first_then(answer), 2)
    assert first.outcome in set(Outcome)
    assert second.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("body", "hollow"),
    [
        (b'{"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[0.0]}]}', False),
        (b'{"model_name": "m", "outputs": [ {"name": "y"}]}', False),
        (b'{"model_name":"m","outputs":[]}', True),
        (b'{"error":"there is no \\"outputs\\":[{ here"}', True),
        (b"", True),
        (b"{}", True),
        (b"<html>" + b"x" * 300_000, True),
    ],
    ids=["JSON", "spaces", "no output", "words of an error", "empty", "nothing", "a page"],
)
@pytest.mark.parametrize("chunk", [1, 7, 1_000_000])
def test_an_answer_without_outputs_is_an_error_of_its_own(body, hollow, chunk):
    if chunk * 1000 < len(body):
        chunk = 50_000
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[place : place + chunk] for place in range(0, len(body), chunk)))
    (answer,), _ = exchange(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"))
    assert (answer.outcome, answer.hollow) == (Outcome.OK, hollow)
    assert answer.judged == ((Outcome.HOLLOW, "the answer (200) holds no outputs") if hollow else (Outcome.OK, ""))


def test_outputs_are_looked_for_in_each_answer_anew():
    full = http_answer(200, b'{"outputs":[{"name":"y"}]}')
    answers, connections = exchange(answering(full, http_answer(200, b"{}"), full, last=True), 3)
    assert [answer.hollow for answer in answers] == [False, True, False]
    assert connections == 1
