"""Protobuf's wire format, read in place: the fields of a message in a file, without loading the message.

A field is skipped by its declared length, so the bytes of a weight are never read, whatever their size. The file is read through one small window with
`pread`: memory stays constant, no page of a mapping counts against the process, and a file that shrinks while it is read gives an error instead of the
SIGBUS that a memory mapping would. This module knows the encoding (https://protobuf.dev/programming-guides/encoding/) and nothing about ONNX.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]
"""Where a message lies in the file: offset of its first byte, offset behind its last."""

Field = tuple[int, int, int]
"""One field: its tag (`number << 3 | wire type`); a varint's value, or the offset of the payload; the offset behind the field."""

MAX_DEPTH = 100
"""Levels of nesting that protobuf parsers accept by default."""

_WINDOW = 16 * 1024
_GLANCE = 512
_MARGIN = 20  # a tag and a length take at most 15 bytes
_MAX_STRING = 1 << 20
MAX_WORK = 3_000_000
"""Steps that one file may cost, of about half a microsecond each: one for a field, more for what takes longer. A real model of 100,000 nodes, with a weight
and a shape for each, takes some 1.6 million; nothing that an exporter writes comes near, and crafted bytes keep nobody busy for longer than two seconds."""

PART_STEPS = 3
"""What it costs to keep something of a message, beyond its fields."""

_MESSAGE_STEPS = 4
_READ_STEPS = 3
_SKIMMED_PER_STEP = 4  # fields that are passed over without being looked at
_RUN_BYTES_PER_STEP = 128  # of values that are passed over in one go
_STRING_BYTES_PER_STEP = 32  # which also bounds what is kept of a file: a hundred megabytes
_VARINT, _FIXED64, _LENGTH, _GROUP, _GROUP_END, _FIXED32 = range(6)
_NOTHING: frozenset[int] = frozenset()


class WireError(Exception):
    """The bytes are not what protobuf allows. `offset` is where in the file."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (at byte {offset:,})")
        self.offset = offset


class CutShortError(WireError):
    """A field of the outermost message ends behind the end of the file. `tag` is that field's, 0 where even the tag is incomplete."""

    def __init__(self, reason: str, offset: int, tag: int) -> None:
        super().__init__(reason, offset)
        self.tag = tag


class TooMuchWorkError(WireError):
    """The message costs more than MAX_WORK steps: our limit, not protobuf's."""


class Source:
    """An open file that holds one protobuf message.

    Args:
        descriptor: the open file; the caller closes it.
        size: its length in bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self._descriptor = descriptor
        self._data = b""
        self._base = 0
        self._limit = -1
        self._steps_left = MAX_WORK

    def fields(self, spans: Sequence[Span], plain: frozenset[int] = _NOTHING) -> Iterator[Field]:
        """The fields of one message, in the file's order.

        Several spans are one message written in parts: protobuf defines the merge of a repeated sub-message as the concatenation of its encodings.
        Fields whose tag is in `plain` are passed over, runs of repeated values at the speed of C; give the one-byte tags there that nobody asks about.

        Raises WireError for bytes that protobuf forbids, CutShortError where the outermost message is longer than the file, TooMuchWorkError where the file
        costs more than MAX_WORK.
        """
        for start, stop in spans:
            data, base, limit, position = b"", 0, -1, start
            self.spend(_MESSAGE_STEPS)
            try:
                while position < stop:  # written flat, because it runs for every field of every node
                    if position > limit:
                        data, base, limit = self._window(position)
                    here, index = position, position - base
                    tag, index = (data[index], index + 1) if data[index] < 0x80 else _varint(data, index, base)
                    wire = tag & 7
                    if wire == _LENGTH:
                        length, index = (data[index], index + 1) if data[index] < 0x80 else _varint(data, index, base)
                        value = base + index
                        position = value + length
                    elif wire == _VARINT:
                        value, index = (data[index], index + 1) if data[index] < 0x80 else _varint(data, index, base)
                        position = base + index
                    else:
                        value = base + index
                        position = self._skip(tag, value, stop)
                    if not 8 <= tag < 1 << 32:
                        raise WireError(f"a field with the impossible tag {tag}", here)
                    self._steps_left -= 1 + (index + base - here >> 2)
                    if self._steps_left < 0:
                        self.spend(0)
                    if tag in plain and position <= limit:
                        position += self._skim(data, position - base, min(len(data), stop - base), plain)
                    if position > stop:
                        raise self._overrun(start, stop, here, position, tag)
                    if tag not in plain:
                        yield tag, value, position
            except IndexError:
                raise self._overrun(start, stop, self.size, self.size + 1, 0) from None

    def is_plain(self, span: Span, plain: frozenset[int], *, tail: bytes = b"", without: bytes = b"") -> bool:
        """Whether a short message is well formed, has no field but those in `plain` (and behind them at most one number with the tag `tail`), and does not
        hold the bytes `without`.

        False where that cannot be told in passing; `fields` tells it then.
        """
        start, stop = span
        data, base, _ = self._window(start)
        first, end = start - base, stop - base
        if end > len(data) or (without and data.find(without, first, end) >= 0):
            return False
        body = end - len(tail) - 1
        if tail and body >= first and data[body : end - 1] == tail and data[end - 1] < 0x80:
            end = body
        self.spend(_MESSAGE_STEPS - 1)
        return first + self._skim(data, first, end, plain) == end

    def string(self, start: int, stop: int) -> bytes:
        """The bytes of a short string field. Raises WireError for one of more than 1 MiB: no name is that long."""
        if stop - start > _MAX_STRING:
            raise WireError(f"a name of {stop - start:,} bytes", start)
        return self.payload(start, stop)

    def payload(self, start: int, stop: int) -> bytes:
        """The bytes of a field, whatever it is. They count as work, so that no file fills the memory."""
        self.spend((stop - start) // _STRING_BYTES_PER_STEP)
        if self._base <= start and stop <= self._base + len(self._data):
            return self._data[start - self._base : stop - self._base]
        return os.pread(self._descriptor, stop - start, start)

    def packed(self, start: int, stop: int, most: int) -> list[int]:
        """The values of a packed field of varints, the first `most` of them. Raises WireError where the last one is incomplete."""
        data, index = self.string(start, stop), 0
        values: list[int] = []
        while index < len(data) and len(values) < most:
            try:
                value, index = _varint(data, index, start)
            except IndexError:
                raise WireError("a packed value runs over the end of its field", start) from None
            values.append(value)
        return values

    def spend(self, steps: int) -> None:
        """Counts the work done. Raises TooMuchWorkError at the limit, so that crafted bytes cannot keep us busy."""
        self._steps_left -= steps
        if self._steps_left < 0:
            raise TooMuchWorkError(f"it takes more than {MAX_WORK:,} steps to read, as many as a graph of some 150,000 nodes and weights", self._base)

    def keep(self, parts: list[Span], part: Span) -> None:
        """Adds to the parts of a message that are kept until all are found, and counts that as work: memory is bounded with it."""
        self.spend(PART_STEPS)
        parts.append(part)

    def _window(self, position: int) -> tuple[bytes, int, int]:
        """Bytes around a position: the data, the offset of its first byte, the last offset at which a tag and a length are whole in it."""
        if not self._base <= position <= self._limit:
            self.spend(_READ_STEPS)
            # Behind a weight that was passed over the next one is often not far, so little is read there.
            goes_on = self._base <= position <= self._base + len(self._data)
            self._data = os.pread(self._descriptor, _WINDOW if goes_on else _GLANCE, position)
            self._base, end = position, position + len(self._data)
            self._limit = self.size if end >= self.size else end - _MARGIN
        return self._data, self._base, self._limit

    def _skim(self, data: bytes, index: int, end: int, plain: frozenset[int]) -> int:
        """How many bytes the next fields take, as long as they are plain and short; 0 where the next field is neither."""
        first, skimmed = index, 0
        while index + 1 < end and (tag := data[index]) in plain and tag < 0x80:
            wire, length = tag & 7, data[index + 1]
            if wire == _LENGTH:
                if length >= 0x80:
                    break
                index += 2 + length
            elif index + 2 < end and wire == _VARINT and length < 0x80 and data[index + 2] != tag:
                index += 2
            else:
                run = self._run(data, index, end, tag)
                if run == 0:
                    break
                index += run
            skimmed += 1
        self.spend(skimmed // _SKIMMED_PER_STEP)
        return index - first

    def _run(self, data: bytes, index: int, end: int, tag: int) -> int:
        """How many bytes the next fields take, as long as they have this same tag and no length; the last one may reach over `end`."""
        wire = tag & 7
        if wire in (_FIXED32, _FIXED64):
            step = 5 if wire == _FIXED32 else 9
            tags = data[index:end:step]
            run = step * (len(tags) - len(tags.lstrip(bytes((tag,)))))
        else:
            match = _varints_tagged(tag).match(data, index, end) if wire == _VARINT else None
            run = match.end() - index if match else 0
        self.spend(run // _RUN_BYTES_PER_STEP)
        return run

    def _skip(self, tag: int, position: int, stop: int) -> int:
        """The offset behind a field that is neither a varint nor length-delimited. Raises WireError for a wire type that does not exist here."""
        wire = tag & 7
        if wire == _FIXED32:
            return position + 4
        if wire == _FIXED64:
            return position + 8
        if wire == _GROUP:
            return self._group_end(tag >> 3, position, stop)
        raise WireError("the end of a group that never began" if wire == _GROUP_END else f"a field of the unknown wire type {wire}", position)

    def _group_end(self, number: int, position: int, stop: int) -> int:
        """The offset behind a group. ONNX uses none, but an unknown field may be one."""
        groups = [number]
        while groups:
            if position >= stop:
                raise WireError("a group without an end", position)
            self.spend(2)
            data, base, _ = self._window(position)
            tag, index = _varint(data, position - base, base)
            wire, position = tag & 7, base + index
            if wire == _GROUP:
                groups.append(tag >> 3)
                if len(groups) > MAX_DEPTH:
                    raise WireError(f"more than {MAX_DEPTH} levels of nesting", position)
            elif wire == _GROUP_END:
                if groups.pop() != tag >> 3:
                    raise WireError("a group that ends with another group's number", position)
            elif wire in (_VARINT, _LENGTH):
                value, index = _varint(data, index, base)
                position = base + index + (value if wire == _LENGTH else 0)
            else:
                position = self._skip(tag, position, stop)
        return position

    def _overrun(self, start: int, stop: int, here: int, position: int, tag: int) -> WireError:
        """The error for a field that does not fit: in the outermost message the file is cut short, elsewhere the bytes contradict themselves."""
        if (start, stop) == (0, self.size):
            return CutShortError(f"a field needs the file to have at least {position:,} bytes, it has {self.size:,}", here, tag)
        return WireError("a field runs over the end of the message it is part of", here)


def signed(value: int) -> int:
    """A varint as protobuf's int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def signed32(value: int) -> int:
    """A varint as protobuf's int32 or enum: the lower 32 bits."""
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def varint(value: int) -> bytes:
    """A number as a varint."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _varint(data: bytes, index: int, base: int) -> tuple[int, int]:
    """The varint at an index of the data, modulo 2**64, and the index behind it.

    Raises WireError where it has more than ten bytes, IndexError where the data ends inside it.
    """
    value = shift = 0
    while True:
        byte = data[index]
        index += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, index
        shift += 7
        if shift == 70:
            raise WireError("a number of more than ten bytes", base + index)


@functools.cache
def _varints_tagged(tag: int) -> re.Pattern[bytes]:
    """A pattern for a run of whole varint fields with this one-byte tag."""
    return re.compile(b"(?:" + re.escape(bytes((tag,))) + rb"[\x80-\xff]{0,9}[\x00-\x7f])+", re.DOTALL)
