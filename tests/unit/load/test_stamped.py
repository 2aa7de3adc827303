"""A socket that knows when what it reads had come, however late it is read."""

import socket
import struct
import time

import pytest
from wire_peers import stamped_ends

from tritongen.load.wire.stamped import StampedSocket

WAIT_S = 0.3


@pytest.fixture
def ends():
    with stamped_ends() as both:
        yield both


def read(stamped):
    return stamped.recv(100)


def read_into(stamped):
    buffer = bytearray(100)
    return bytes(buffer[: stamped.recv_into(buffer)])


def read_some_into(stamped):
    buffer = bytearray(100)
    return bytes(buffer[: stamped.recv_into(buffer, 5)])


@pytest.mark.parametrize("way", [read, read_into, read_some_into])
def test_what_is_read_late_came_when_it_was_sent(ends, way):
    stamped, other = ends
    begin = time.perf_counter()
    other.sendall(b"first")
    sent = time.perf_counter()
    time.sleep(WAIT_S)
    assert way(stamped) == b"first"
    assert begin <= stamped.arrived_s <= sent + WAIT_S / 2
    assert stamped.unread_s == pytest.approx(time.perf_counter() - stamped.arrived_s, abs=WAIT_S / 2)


def test_what_comes_in_pieces_came_with_the_last_one_that_was_read(ends):
    stamped, other = ends
    other.sendall(b"first")
    time.sleep(WAIT_S)
    begin = time.perf_counter()
    other.sendall(b"second")
    sent = time.perf_counter()
    time.sleep(WAIT_S)
    assert stamped.recv(100) == b"firstsecond"
    assert begin <= stamped.arrived_s <= sent + WAIT_S / 2


def test_the_end_of_a_connection_comes_when_it_is_seen(ends):
    stamped, other = ends
    other.sendall(b"last")
    other.close()
    assert stamped.recv(100) == b"last"
    assert stamped.unread_s is not None
    begin = time.perf_counter()
    assert stamped.recv(100) == b""
    assert stamped.arrived_s >= begin
    assert stamped.unread_s is None


@pytest.mark.parametrize("hours", [-24, -0.001, 24])
def test_a_clock_that_is_set_meanwhile_makes_no_answer_later_than_it_was_read(ends, monkeypatch, hours):
    stamped, other = ends
    other.sendall(b"first")
    wall = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: wall() + int(hours * 3600 * 1e9))
    stamped.recv(100)
    assert stamped.arrived_s <= time.perf_counter()
    assert stamped.unread_s >= 0


def test_without_stamps_the_reading_counts(monkeypatch):
    def refuse(self, *option):
        raise OSError(92, "Protocol not available")

    monkeypatch.setattr(StampedSocket, "setsockopt", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server, StampedSocket(socket.AF_INET, socket.SOCK_STREAM, 0) as plain:
        plain.connect(server.getsockname())
        other, _ = server.accept()
        with other:
            other.sendall(b"first")
            begin = time.perf_counter()
            assert plain.recv(100) == b"first"
    assert begin <= plain.arrived_s <= time.perf_counter()
    assert plain.unread_s is None


def test_messages_of_other_kinds_are_no_stamps(ends):
    stamped, _ = ends
    stamped._note([(socket.SOL_SOCKET, 1, struct.pack("i", 3)), (socket.IPPROTO_IP, 35, struct.pack("qq", 1, 1))])
    assert stamped.unread_s is None
