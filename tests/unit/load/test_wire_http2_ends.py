"""The gRPC sender of load tests: requests and connections that end early, and servers that break the rules."""

import asyncio

import pytest
from hpack import Decoder, Encoder
from wire_peers import TIMEOUT_S, answer_all, exchange, message_bytes, served, speaking, turns

from tritongen.errors import ConnectionFailed
from tritongen.load.wire import Outcome, frames, http2
from tritongen.load.wire.frames import ErrorCode, Kind, Setting

END = frames.END_HEADERS | frames.END_STREAM


def test_goaway_fails_what_was_not_taken_and_lets_the_rest_end():
    async def script(peer):
        first = (await peer.request())[0]
        await peer.request()
        peer.write(Kind.GOAWAY, 0, 0, frames.number(first) + frames.number(ErrorCode.NO_ERROR) + b"draining")
        await turns()
        peer.writer.write(peer.answer(first))
        await peer.reader.read()

    async def run():
        async with served(speaking(script), "grpc") as server:
            both = await asyncio.gather(server.send(), server.send())
            return both, await server.send(0.05), server.connections

    (first, second), third, connections = asyncio.run(run())
    assert first.outcome is Outcome.OK
    assert (second.outcome, second.sent) == (Outcome.CONNECTION, False)
    assert "NO_ERROR: draining" in second.error
    assert (third.outcome, connections) == (Outcome.DEADLINE, 2)


def test_goaway_on_an_idle_connection_closes_it_and_the_next_request_makes_another():
    async def run():
        closed = asyncio.get_running_loop().create_future()

        async def script(peer):
            if closed.done():
                await answer_all(peer)
            peer.writer.write(peer.answer((await peer.request())[0]))
            peer.write(Kind.GOAWAY, 0, 0, frames.number(1) + frames.number(0))
            closed.set_result(await peer.reader.read())

        async with served(speaking(script), "grpc") as server:
            first = await server.send()
            await asyncio.wait_for(closed, TIMEOUT_S)
            return first, await server.send(), server.connections

    first, second, connections = asyncio.run(run())
    assert (first.outcome, second.outcome, connections) == (Outcome.OK, Outcome.OK, 2)


def test_a_server_that_sends_everybody_away_is_not_sent_to():
    async def handler(reader, writer):
        goaway = frames.frame(Kind.GOAWAY, 0, 0, frames.number(0) + frames.number(ErrorCode.ENHANCE_YOUR_CALM))
        writer.write(frames.settings({}) + goaway)
        await reader.read()

    async def run():
        async with served(handler, "grpc", opened=False) as server:
            return await server.send()

    answer = asyncio.run(run())
    assert (answer.outcome, answer.sent, answer.error) == (Outcome.CONNECTION, False, "the connection was closed at once")


def test_a_pool_that_is_closed_ends_requests_on_connections_that_drain_too():
    async def script(peer):
        first = (await peer.request())[0]
        peer.write(Kind.GOAWAY, 0, 0, frames.number(first) + frames.number(0))
        await peer.reader.read()

    async def run():
        async with served(speaking(script), "grpc") as server:
            sending = asyncio.ensure_future(server.send())
            await turns()
            await server.pool.close()
            return await asyncio.wait_for(sending, TIMEOUT_S / 2)

    answer = asyncio.run(run())
    assert (answer.outcome, answer.error) == (Outcome.CONNECTION, "the pool is closed")


@pytest.mark.parametrize(
    ("code", "outcome", "sent"), [(ErrorCode.REFUSED_STREAM, "rejected", False), (ErrorCode.INTERNAL_ERROR, "failed", True), (77, "failed", True)]
)
def test_a_stream_that_is_reset_fails_alone(code, outcome, sent):
    async def script(peer):
        number, _ = await peer.request()
        peer.write(Kind.RST_STREAM, 0, number, frames.number(code))
        await answer_all(peer)

    (first, second), connections = exchange(script, 2)
    assert (first.outcome, first.sent, second.outcome, connections) == (outcome, sent, Outcome.OK, 1)
    assert (code.name if isinstance(code, ErrorCode) else "error 77") in first.error


def test_a_deadline_is_told_to_the_server_and_takes_the_request_back():
    seen = []

    async def script(peer):
        found = await peer.until(Kind.HEADERS)
        headers = dict(Decoder().decode(found.payload))
        seen.append(headers["grpc-timeout"])
        seen.append(frames.read_number((await peer.until(Kind.RST_STREAM)).payload))
        await answer_all(peer)

    async def run():
        async with served(speaking(script), "grpc") as server:
            return await server.send(0.1), await server.send(), server.connections

    late, second, connections = asyncio.run(run())
    assert (late.outcome, late.status, late.error) == (Outcome.DEADLINE, "DEADLINE_EXCEEDED", "no answer in time")
    assert 0.09 < late.received_s - late.sent_s < TIMEOUT_S / 2
    assert (second.outcome, connections, seen) == (Outcome.OK, 1, ["100m", ErrorCode.CANCEL])


def test_a_request_that_nobody_waits_for_is_taken_back():
    resets = []

    async def script(peer):
        await peer.request()
        resets.append((await peer.until(Kind.RST_STREAM)).stream)
        await answer_all(peer)

    async def run():
        async with served(speaking(script), "grpc") as server:
            sending = asyncio.ensure_future(server.send())
            await turns()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            return await server.send(), server.connections

    answer, connections = asyncio.run(run())
    assert (answer.outcome, connections, resets) == (Outcome.OK, 1, [1])


def test_pings_are_answered():
    async def script(peer):
        number, _ = await peer.request()
        peer.write(Kind.PING, 0, 0, b"12345678")
        peer.write(Kind.PING, frames.ACK, 0, b"87654321")
        echo = await peer.until(Kind.PING)
        peer.writer.write(peer.answer(number, echo.payload + bytes([echo.flags])))
        await peer.reader.read()

    (answer,), _ = exchange(script)
    assert answer.payload == b"12345678\x01"


def test_a_table_of_headers_that_the_server_still_uses_is_read_right():
    """Before a server has acknowledged our settings it may use a table, where equal bytes mean different things in turn."""

    async def script(peer):
        peer.hpack = Encoder()
        for status in ("0", "14", "0", "5"):
            number, _ = await peer.request()
            peer.writer.write(
                frames.frame(Kind.HEADERS, frames.END_HEADERS, number, peer.block({":status": "200", "grpc-accept-encoding": "identity"}))
                + frames.frame(Kind.DATA, 0, number, message_bytes(b""))
                + peer.trailers(number, {"grpc-status": status, "x": status})
            )
        peer.write(Kind.SETTINGS, frames.ACK, 0)
        for size in (0, 0, 4096, 4096, 4096):
            peer.hpack.header_table_size = size
            peer.writer.write(peer.answer((await peer.request())[0]))
        await peer.reader.read()

    answers, _ = exchange(script, 9)
    assert [answer.status for answer in answers] == ["OK", "UNAVAILABLE", "OK", "NOT_FOUND"] + ["OK"] * 5


def test_a_server_that_keeps_its_table_after_it_agreed_to_none_is_read_right():
    async def script(peer):
        peer.hpack = Encoder()
        peer.write(Kind.SETTINGS, frames.ACK, 0)
        await answer_all(peer)

    answers, _ = exchange(script, 3)
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 3


def test_the_answer_that_grpcs_server_makes_by_hand_to_a_deadline_is_read():
    """It says nothing of the table that was agreed on, though it is the first block after that."""
    parts = [(b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-status", b"4"), (b"grpc-message", b"Deadline Exceeded")]
    block = b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in parts)

    async def script(peer):
        peer.write(Kind.SETTINGS, frames.ACK, 0)
        number, _ = await peer.request()
        for _ in range(3):
            peer.write(Kind.HEADERS, END, number, block)
            peer.write(Kind.RST_STREAM, 0, number, bytes(4))
        await answer_all(peer)

    (first, second), connections = exchange(script, 2)
    assert (first.outcome, first.status, first.error) == (Outcome.DEADLINE, "DEADLINE_EXCEEDED", "Deadline Exceeded")
    assert (second.outcome, connections) == (Outcome.OK, 1)


def test_stream_numbers_that_run_out_bring_another_connection(monkeypatch):
    monkeypatch.setattr(http2.Http2Connection, "FIRST_STREAM", frames.MAX_STREAM - 2)
    answers, connections = exchange(answer_all, 5)
    assert [answer.outcome for answer in answers] == [Outcome.OK] * 5
    assert connections == 3


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (frames.frame(Kind.PUSH_PROMISE, frames.END_HEADERS, 1, b"\0\0\0\2"), "a push"),
        (frames.frame(Kind.CONTINUATION, frames.END_HEADERS, 1), "a continuation of nothing"),
        (frames.frame(Kind.HEADERS, 0, 1, b"\x88") + frames.frame(Kind.PING, 0, 0, bytes(8)), "headers without their end"),
        (frames.frame(Kind.HEADERS, 0, 1, b"\x88") + frames.frame(Kind.CONTINUATION, 0, 1, bytes(16384)) * 5, "headers of more than 65536 bytes"),
        (frames.frame(Kind.HEADERS, END, 1, b"\xff\xff\xff\xff"), "headers that cannot be read"),
        (frames.frame(Kind.HEADERS, END | 0x8, 1, b""), "padding without its length"),
        (frames.frame(Kind.DATA, 0x8, 1, b"\x09abc"), "more padding than payload"),
        (frames.frame(Kind.WINDOW_UPDATE, 0, 0, bytes(4)), "widened by 0 bytes"),
        (frames.frame(Kind.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), "cannot be widened"),
        (frames.frame(Kind.WINDOW_UPDATE, 0, 0, b"\x7f"), "a number of 1 bytes"),
        (frames.frame(Kind.SETTINGS, 0, 0, b"abc"), "settings of 3 bytes"),
        (frames.settings({Setting.INITIAL_WINDOW_SIZE: 2**31}), "a window of 2147483648 bytes"),
        (frames.settings({Setting.MAX_FRAME_SIZE: 1}), "frames of 1 bytes"),
        (frames.frame(Kind.GOAWAY, 0, 0, b"abc"), "a number of 3 bytes"),
        (b"\xff\xff\xff" + bytes(6), "a frame of 16777215 bytes"),
    ],
)
def test_what_breaks_the_rules_ends_the_connection_with_what_it_was(frame, words):
    async def run():
        told = asyncio.get_running_loop().create_future()

        async def script(peer):
            await peer.request()
            peer.writer.write(frame)
            told.set_result((await peer.until(Kind.GOAWAY)).payload[4:8])

        async with served(speaking(script), "grpc") as server:
            return await server.send(), await asyncio.wait_for(told, TIMEOUT_S)

    answer, code = asyncio.run(run())
    assert answer.outcome is Outcome.CONNECTION
    assert words in answer.error
    assert code == frames.number(ErrorCode.PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", frames.frame(Kind.PING, 0, 0, bytes(8))]
)
def test_a_server_of_another_protocol_is_said_to_be_one(said):
    async def handler(reader, writer):
        writer.write(said)
        await reader.read()

    async def run():
        async with served(handler, "grpc", opened=False) as server:
            with pytest.raises(ConnectionFailed, match="no gRPC server") as error:
                await server.pool.open(TIMEOUT_S)
            return error.value, await server.send()

    error, answer = asyncio.run(run())
    assert "is a Triton listening" in error.hint
    assert (answer.outcome, answer.sent) == (Outcome.CONNECTION, False)


def test_a_server_that_says_nothing_is_given_up_in_time():
    async def run():
        async with served(lambda reader, writer: reader.read(), "grpc", opened=False) as server:
            with pytest.raises(ConnectionFailed, match=r"no connection within 0\.1 s"):
                await server.pool.open(0.1)
            return await server.send(0.1)

    answer = asyncio.run(run())
    assert (answer.outcome, answer.sent) == (Outcome.DEADLINE, False)
