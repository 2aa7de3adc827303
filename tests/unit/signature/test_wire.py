"""The wire reader against protobuf's own encoder, on windows of every alignment and on bytes that protobuf forbids."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tritongen.signature.wire import CutShortError, Field, Source, TooMuchWorkError, WireError, signed, signed32


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    number = os.open(tmp_path / "message", os.O_RDWR | os.O_CREAT)
    yield number
    os.close(number)


def fields(descriptor: int, content: bytes, plain: frozenset[int] = frozenset()) -> list[Field]:
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)
    return list(Source(descriptor, len(content)).fields(((0, len(content)),), plain))


def test_each_wire_type(descriptor: int) -> None:
    content = b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x1a\x03abc" + b"\x25" + bytes(4) + b"\xc2\x3e\x00"
    assert [(tag, value) for tag, value, _ in fields(descriptor, content)] == [(0x08, 150), (0x11, 4), (0x1A, 14), (0x25, 18), (0x1F42, 25)]


def test_fields_across_every_edge_of_a_window(descriptor: int) -> None:
    """The file is read in windows; a field must come out whole wherever it starts."""
    for padding in range(16_360, 16_400):
        content = b"\x12" + bytes((padding & 0x7F | 0x80, padding >> 7 & 0x7F | 0x80, padding >> 14)) + bytes(padding) + b"\x08\xff\xff\xff\xff\x0f\x1a\x02hi"
        assert [tag for tag, _, _ in fields(descriptor, content)] == [0x12, 0x08, 0x1A]
        source = Source(descriptor, len(content))
        *_, (_, start, stop) = source.fields(((0, len(content)),))
        assert source.string(start, stop) == b"hi"


@pytest.mark.parametrize("one", [b"\x25abcd", b"\x51abcdefgh", b"\x28\x05", b"\x28\xff\xff\x01", b"\x32\x03abc", b"\x32\x80\x01" + bytes(128)])
@pytest.mark.parametrize("count", [1, 2, 3, 5000, 20_000])
def test_runs_of_plain_fields_end_where_they_end(one: bytes, count: int, descriptor: int) -> None:
    content = b"\x08\x01" + one * count + b"\x42\x04name"
    assert [tag for tag, _, _ in fields(descriptor, content, frozenset({one[0]}))] == [0x08, 0x42]


def test_a_run_does_not_leave_its_message(descriptor: int) -> None:
    """The bytes behind a message may look like one more value of its last field."""
    content = b"\x0a\x0a" + b"\x25abcd" * 2 + b"\x25wxyz" * 3
    os.pwrite(descriptor, content, 0)
    source = Source(descriptor, len(content))
    assert list(source.fields(((2, 12),), frozenset({0x25}))) == []
    with pytest.raises(WireError, match="runs over the end of the message"):
        list(source.fields(((2, 14),), frozenset({0x25})))


def test_groups_are_skipped(descriptor: int) -> None:
    group = b"\x3b" + b"\x08\x01" + b"\x43\x1a\x02zz\x44" + b"\x25abcd" + b"\x3c"
    assert [tag for tag, _, _ in fields(descriptor, b"\x08\x01" + group + b"\x10\x02")] == [0x08, 0x3B, 0x10]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00\x00", "impossible tag 0"),
        (b"\x3c", "never began"),
        (b"\x0e", "wire type 6"),
        (b"\x3b\x44", "another group's number"),
        (b"\x3b\x08\x01", "a group without an end"),
        (b"\x3b" * 200, "more than 100 levels"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than ten bytes"),
        (b"\xf8\xff\xff\xff\xff\x01\x00", "impossible tag"),
    ],
)
def test_bytes_that_protobuf_forbids(content: bytes, said: str, descriptor: int) -> None:
    with pytest.raises(WireError, match=said):
        fields(descriptor, content)


@pytest.mark.parametrize("content", [b"\x1a\x05abc", b"\x08", b"\x08\x80", b"\x11abc", b"\x1a", b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_a_message_longer_than_the_file(content: bytes, descriptor: int) -> None:
    with pytest.raises(CutShortError):
        fields(descriptor, content)


def test_work_is_limited(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crafted bytes must not keep the reader busy for hours: single fields and runs both count."""
    monkeypatch.setattr("tritongen.signature.wire.MAX_WORK", 1000)
    with pytest.raises(TooMuchWorkError, match="more than 1,000 steps"):
        fields(descriptor, b"\x08\x01\x10\x01" * 600)
    with pytest.raises(TooMuchWorkError, match="more than 1,000 steps"):
        fields(descriptor, b"\x08\x01" * 80_000, frozenset({0x08}))


def test_a_file_that_shrinks_while_it_is_read(descriptor: int) -> None:
    content = b"\x08\x01" * 20_000
    os.pwrite(descriptor, content, 0)
    walk = Source(descriptor, len(content)).fields(((0, len(content)),))
    next(walk)
    os.truncate(descriptor, 100)
    with pytest.raises(CutShortError):
        list(walk)


def test_names_have_a_limit(descriptor: int) -> None:
    os.pwrite(descriptor, bytes(3 << 20), 0)
    with pytest.raises(WireError, match="a name of 2,097,152 bytes"):
        Source(descriptor, 3 << 20).string(0, 2 << 20)


def test_packed_values(descriptor: int) -> None:
    os.pwrite(descriptor, b"\x01\x96\x01\x80", 0)
    source = Source(descriptor, 4)
    assert source.packed(0, 3, 9) == [1, 150]
    with pytest.raises(WireError, match="packed value"):
        source.packed(0, 4, 9)


def test_signs() -> None:
    assert [signed(1), signed((1 << 64) - 1), signed(1 << 63)] == [1, -1, -(1 << 63)]
    assert [signed32(1), signed32((1 << 64) - 1), signed32((1 << 32) + 5)] == [1, -1, 5]
