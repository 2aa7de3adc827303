"""The gRPC sender of load tests against servers that answer rightly, oddly and wrongly."""

import asyncio

import pytest
from hpack import Decoder
from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2
from wire_peers import Http2Peer, answer_all, call, exchange, message_bytes, once, served, speaking

from tritongen.client.endpoint import Access
from tritongen.load.wire import Outcome, frames, http2
from tritongen.load.wire.frames import Frame, FrameReader, Kind, Setting

END = frames.END_HEADERS | frames.END_STREAM


def test_many_requests_share_a_connection():
    answers, connections = exchange(answer_all, 50, together=True)
    assert [(answer.outcome, answer.status, answer.size, answer.payload) for answer in answers] == [(Outcome.OK, "OK", 6, b"answer")] * 50
    assert connections == 1


def test_answers_find_their_requests_in_any_order():
    async def script(peer):
        numbers = [(await peer.request())[0] for _ in range(5)]
        for number in reversed(numbers):
            peer.writer.write(peer.answer(number, b"%d" % number))
        await peer.reader.read()

    answers, _ = exchange(script, 5, together=True)
    assert [answer.payload for answer in answers] == [b"1", b"3", b"5", b"7", b"9"]


@pytest.mark.parametrize(
    ("trailers", "outcome", "status", "words"),
    [
        ({"grpc-status": "14", "grpc-message": "queue%20full%3A 100%25"}, "rejected", "UNAVAILABLE", "queue full: 100%"),
        ({"grpc-status": "3", "grpc-message": "unexpected shape"}, "invalid", "INVALID_ARGUMENT", "unexpected shape"),
        ({"grpc-status": "5"}, "gone", "NOT_FOUND", ""),
        ({"grpc-status": "13", "grpc-message": "h%C3%A9 %zz"}, "failed", "INTERNAL", "hé %zz"),
        ({"grpc-status": "4"}, "deadline", "DEADLINE_EXCEEDED", ""),
        ({"grpc-status": "16"}, "invalid", "UNAUTHENTICATED", ""),
        ({"grpc-status": "99"}, "failed", "UNKNOWN", ""),
        ({"x": "y"}, "failed", "", "ended without a gRPC status"),
        ({"grpc-status": "9" * 5000}, "failed", "", "ended without a gRPC status"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_status_is_told_in_the_servers_words(trailers, outcome, status, words, alone):
    def write(peer, number):
        if alone:
            return peer.trailers(number, {":status": "200", **trailers})
        return frames.frame(Kind.HEADERS, frames.END_HEADERS, number, peer.block({":status": "200"})) + peer.trailers(number, trailers)

    (answer,), _ = exchange(once(write))
    assert (answer.outcome, answer.status) == (outcome, status)
    assert words in answer.error


@pytest.mark.parametrize(("http", "outcome"), [("503", "rejected"), ("502", "connection"), ("404", "gone"), ("500", "failed")])
def test_a_proxys_answer_without_grpc_is_told_by_its_http_status(http, outcome):
    for more in ({}, {"grpc-status": "0"}):
        (answer,), _ = exchange(once(lambda peer, number, more=more: peer.trailers(number, {":status": http, **more})))
        assert (answer.outcome, answer.status) == (outcome, http)
        assert f"status {http}" in answer.error


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\0\0", message_bytes(b"abc")[:-1], message_bytes(b"abc") + b"d", message_bytes(b"abc") * 2, b"\1" + message_bytes(b"abc")[1:]],
    ids=["none", "no head", "short", "long", "two", "compressed"],
)
def test_an_answer_that_is_not_one_plain_message_has_failed(data):
    def write(peer, number):
        head = frames.frame(Kind.HEADERS, frames.END_HEADERS, number, peer.block({":status": "200"}))
        return head + frames.frame(Kind.DATA, 0, number, data) + peer.trailers(number, {"grpc-status": "0"})

    (answer,), _ = exchange(once(write))
    assert answer.outcome is Outcome.FAILED
    assert "no plain message" in answer.error


def test_an_answer_may_come_in_the_smallest_pieces():
    def write(peer, number):
        block = peer.block({":status": "200", "content-type": "application/grpc"})
        out = frames.frame(Kind.HEADERS, 0x20, number, bytes(5) + block[:1])
        out += b"".join(frames.frame(Kind.CONTINUATION, 0, number, block[place : place + 1]) for place in range(1, len(block)))
        out += frames.frame(Kind.CONTINUATION, frames.END_HEADERS, number)
        out += b"".join(frames.frame(Kind.DATA, 0, number, bytes([byte])) for byte in message_bytes(b"answer"))
        return out + frames.frame(Kind.DATA, 0x8, number, b"\3" + bytes(3)) + peer.trailers(number, {"grpc-status": "0"})

    (answer,), _ = exchange(once(write))
    assert (answer.outcome, answer.payload) == (Outcome.OK, b"answer")


@pytest.mark.parametrize("window", [0, 1, 7, 100_000])
def test_a_request_waits_for_room_and_arrives_whole(window):
    got = []

    async def script(peer):
        number = (await peer.until(Kind.HEADERS)).stream
        body, room, room_of_all = b"", window, frames.FIRST_WINDOW
        while True:
            if room <= 0:
                more = 5000 - len(body) // 50  # less and less, so that what was given before is noticed when it is used twice
                peer.write(Kind.WINDOW_UPDATE, 0, number, frames.number(more))
                room += more
            if room_of_all <= 0 or len(body) % 2 == 0:
                peer.write(Kind.WINDOW_UPDATE, 0, 0, frames.number(3000))
                room_of_all += 3000
            found = await peer.until(Kind.DATA)
            body += found.payload
            room -= len(found.payload)
            room_of_all -= len(found.payload)
            assert min(room, room_of_all) >= 0
            if found.flags & frames.END_STREAM:
                break
        got.append(body)
        peer.writer.write(peer.answer(number))
        await peer.reader.read()

    async def run():
        async with served(speaking(script, {Setting.INITIAL_WINDOW_SIZE: window}), "grpc") as server:
            server.prepared = server.pool.prepare(call(50_000))
            return await server.send(), server.prepared.body

    answer, body = asyncio.run(run())
    assert answer.outcome is Outcome.OK
    assert got == [body]


def test_more_room_by_the_settings_is_taken_once_they_are_acknowledged():
    """A server that judges by the acknowledged settings, as gRPC's do, resets a stream that takes the room before."""
    seen = []

    async def script(peer):
        number = (await peer.until(Kind.HEADERS)).stream
        first = await peer.until(Kind.DATA)
        peer.writer.write(frames.settings({Setting.INITIAL_WINDOW_SIZE: 100_000, Setting.MAX_FRAME_SIZE: 20_000}))
        peer.seen.clear()
        while not (await peer.until(Kind.DATA)).flags & frames.END_STREAM:
            pass
        seen.append((len(first.payload), [(found.kind, len(found.payload)) for found in peer.seen]))
        peer.writer.write(peer.answer(number))
        await peer.reader.read()

    async def run():
        async with served(speaking(script, {Setting.INITIAL_WINDOW_SIZE: 1000}), "grpc") as server:
            server.prepared = server.pool.prepare(call(10_000))
            return await server.send(), len(server.prepared.body)

    answer, size = asyncio.run(run())
    assert answer.outcome is Outcome.OK
    assert seen == [(1000, [(Kind.SETTINGS, 0), (Kind.DATA, 20_000), (Kind.DATA, size - 21_000)])]


def test_an_answer_before_the_request_was_read_is_an_answer_and_takes_the_rest_back():
    resets = []

    async def script(peer):
        number = (await peer.until(Kind.HEADERS)).stream
        peer.writer.write(peer.trailers(number, {":status": "200", "grpc-status": "14"}))
        resets.append((await peer.until(Kind.RST_STREAM)).stream == number)
        peer.writer.write(peer.answer((await peer.until(Kind.HEADERS)).stream))
        await peer.reader.read()

    (first, second), connections = exchange(script, 2, values={Setting.INITIAL_WINDOW_SIZE: 0})
    assert (first.outcome, second.outcome, resets, connections) == (Outcome.REJECTED, Outcome.OK, [True], 1)


def test_no_more_requests_are_under_way_than_the_server_takes():
    most, limit = [0], 3

    async def script(peer):
        waiting = []

        async def answer():
            while True:
                await asyncio.sleep(0.005)
                if waiting:
                    peer.writer.write(peer.answer(waiting.pop(0)))

        task = asyncio.ensure_future(answer())
        try:
            while True:
                waiting.append((await peer.request())[0])
                most[0] = max(most[0], len(waiting))
        finally:
            task.cancel()

    async def run():
        async with served(speaking(script, {Setting.MAX_CONCURRENT_STREAMS: limit}), "grpc", limit=1) as server:
            return await asyncio.gather(*(server.send() for _ in range(20))), server.connections

    answers, connections = asyncio.run(run())
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 20
    assert (most, connections) == ([limit], 1)


async def _slowly(peer):
    while True:
        number, _ = await peer.request()
        asyncio.get_running_loop().call_later(0.1, peer.writer.write, peer.answer(number))


def test_where_a_connection_is_full_another_one_is_made():
    async def run():
        async with served(speaking(_slowly, {Setting.MAX_CONCURRENT_STREAMS: 2}), "grpc", limit=8) as server:
            return await asyncio.gather(*(server.send() for _ in range(6))), server.connections

    answers, connections = asyncio.run(run())
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 6
    assert connections == 3


def test_the_request_is_what_triton_reads():
    seen = []

    async def script(peer):
        head = await peer.until(Kind.HEADERS)
        seen.append(dict(Decoder().decode(head.payload)))
        peer.writer.write(peer.answer(head.stream))
        await peer.reader.read()

    async def run():
        async with served(speaking(script), "grpc", access=Access(headers={"x-trace": "7"})) as server:
            server.prepared = server.pool.prepare(call(2))
            await server.send(3)
            return server.prepared.body, f"127.0.0.1:{server.server.sockets[0].getsockname()[1]}"

    body, authority = asyncio.run(run())
    assert seen == [
        {
            ":method": "POST",
            ":scheme": "http",
            ":path": "/inference.GRPCInferenceService/ModelInfer",
            ":authority": authority,
            "te": "trailers",
            "content-type": "application/grpc",
            "x-trace": "7",
            "grpc-timeout": "3000m",
        }
    ]
    assert body.endswith(bytes.fromhex("000000000000803f"))


def test_headers_longer_than_a_frame_are_continued():
    async def script(peer):
        head = await peer.until(Kind.HEADERS)
        block = head.payload
        while not peer.seen[-1].flags & frames.END_HEADERS:
            block += (await peer.until(Kind.CONTINUATION)).payload
        headers = dict(Decoder().decode(block))
        peer.writer.write(peer.answer(head.stream, b"%d" % len(headers["x-long"])))
        await peer.reader.read()

    async def run():
        async with served(speaking(script), "grpc", access=Access(headers={"x-long": "~" * 40_000})) as server:
            return await server.send(keep=True)

    assert asyncio.run(run()).payload == b"40000"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 6))
def test_answers_do_not_depend_on_how_they_are_split(sizes, count):
    async def script(peer):
        numbers = [(await peer.request())[0] for _ in range(count)]
        out, place = b"".join(peer.answer(number, b"x" * number * 20) for number in numbers), 0
        while place < len(out):
            for size in sizes:
                peer.writer.write(out[place : place + size])
                place += size
                await asyncio.sleep(0)
        await peer.reader.read()

    answers, _ = exchange(script, count, together=True)
    assert [(answer.outcome, answer.size) for answer in answers] == [(Outcome.OK, (2 * index + 1) * 20) for index in range(count)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.builds(frames.frame, st.sampled_from(list(Kind)), st.integers(0, 255), st.sampled_from([0, 1, 2, 3]), st.binary(max_size=12)),
        ),
        max_size=6,
    )
)
def test_no_bytes_of_a_server_break_the_sender(noise):
    connections = []

    async def script(peer):
        connections.append(peer)
        if len(connections) > 1:
            await answer_all(peer)
        await peer.request()
        peer.writer.write(b"".join(noise))

    async def run():
        async with served(speaking(script), "grpc") as server:
            return await server.send(1), await server.send(), await server.send()

    connections.clear()
    first, *_, last = asyncio.run(run())
    assert first.outcome in set(Outcome)
    assert last.outcome is Outcome.OK


@given(st.lists(st.tuples(st.sampled_from(list(Kind)), st.integers(0, 255), st.integers(0, frames.MAX_STREAM), st.binary(max_size=30)), max_size=6), st.data())
def test_frames_are_read_as_they_were_written(parts, data):
    written = b"".join(frames.frame(*part) for part in parts)
    reader, read, place = FrameReader(), [], 0
    while place < len(written):
        size = data.draw(st.integers(1, len(written) - place))
        read += reader.feed(written[place : place + size])
        place += size
    assert read == [Frame(*part) for part in parts]


def test_large_answers_come_without_our_windows_running_dry(monkeypatch):
    """As a strict server counts: what it sent never exceeds what it was allowed to send."""
    monkeypatch.setattr(http2, "_RENEWED", 1 << 20)
    room = [frames.FIRST_WINDOW]

    async def script(peer: Http2Peer):
        while True:
            number = (await _counted(peer, Kind.HEADERS, room)).stream
            await _counted(peer, Kind.DATA, room)
            message = bytes(3 << 20)
            peer.writer.write(frames.frame(Kind.HEADERS, frames.END_HEADERS, number, peer.block({":status": "200"})))
            data = message_bytes(message)
            for place in range(0, len(data), 16384):
                peer.write(Kind.DATA, 0, number, data[place : place + 16384])
                room[0] -= len(data[place : place + 16384])
            await peer.writer.drain()
            peer.writer.write(peer.trailers(number, {"grpc-status": "0"}))

    answers, _ = exchange(script, 4)
    assert [answer.size for answer in answers] == [3 << 20] * 4
    assert room[0] > frames.MAX_WINDOW - (7 << 20)


async def _counted(peer, kind, room):
    while (found := await peer.frame()).kind != kind:
        if found.kind == Kind.WINDOW_UPDATE and found.stream == 0:
            room[0] += frames.read_number(found.payload)
    return found


def response(**fields):
    """A ModelInferResponse as bytes, with its one output unless `output=False`."""
    output = fields.pop("output", True)
    message = service_pb2.ModelInferResponse(model_name="m", model_version="1", **fields)
    if output:
        message.outputs.add(name="y", datatype="FP32", shape=[1])
        message.raw_output_contents.append(bytes(4000))
    return message


def with_parameter(size, **fields):
    """The same with a parameter of so many bytes, which stands before the outputs."""
    made = response(**fields)
    made.parameters["why"].string_param = "x" * size
    return made


@pytest.mark.parametrize(
    ("message", "hollow"),
    [
        (response().SerializeToString(), False),
        (response(id="7" * 300).SerializeToString(), False),
        (with_parameter(500).SerializeToString(), False),
        (with_parameter(5000).SerializeToString(), False),
        (b"", True),
        (response(output=False).SerializeToString(), True),
        (with_parameter(500, output=False).SerializeToString(), True),
        (service_pb2.ModelInferResponse(raw_output_contents=[b"1234"]).SerializeToString(), True),
        (b"garbage", True),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", True),
        (b"\x2a", True),
        (b"\x2a\x50abc", True),
    ],
)
@pytest.mark.parametrize("piece", [3, 100, 16_000])
def test_an_answer_without_outputs_is_an_error_of_its_own(message, hollow, piece):
    def write(peer, number):
        data = message_bytes(message)
        pieces = [frames.frame(Kind.DATA, 0, number, data[place : place + piece]) for place in range(0, len(data), piece)]
        head = frames.frame(Kind.HEADERS, frames.END_HEADERS, number, peer.block({":status": "200", "content-type": "application/grpc"}))
        return head + b"".join(pieces) + peer.trailers(number, {"grpc-status": "0"})

    (answer,), _ = exchange(once(write))
    assert (answer.outcome, answer.hollow) == (Outcome.OK, hollow)
    assert answer.judged == ((Outcome.HOLLOW, "the answer (OK) holds no outputs") if hollow else (Outcome.OK, ""))
