"""A text file in memory: reading it safely, and offset → line and column.

Findings made here: TG001 the file cannot be read, TG002 it is not UTF-8 text, TG003 it is text, but of another kind (a Git LFS pointer, a web page).
"""

from __future__ import annotations

import bisect
import codecs
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import InputError

MAX_BYTES = 10_000_000
"""A larger file is refused: nobody writes ten megabytes of configuration by hand, and a parser would be busy for minutes."""

_LINE_END = re.compile(r"\r\n|\r|\n")  # as editors count; YAML 1.1 also broke lines at U+0085, U+2028 and U+2029
_UTF_16_OR_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class SourceText:
    """A file's text, and where in it a character is.

    Attributes:
        path: the file's name as the user gave it; it is what findings show.
        text: the whole text, without a byte-order mark.
    """

    path: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        """Offset of each line's first character."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return _LINE_END.split(self.text)

    def line_index(self, offset: int) -> int:
        """The line of a character, counted from 0."""
        return bisect.bisect_right(self._starts, offset) - 1

    def line_start(self, index: int) -> int:
        """The offset of a line's first character; lines counted from 0."""
        return self._starts[index]

    def location(self, offset: int) -> Location:
        """The place of the character at `offset`, counted in characters from 0; an offset beyond the end is the end."""
        offset = min(offset, len(self.text))
        index = self.line_index(offset)
        return Location(self.path, index + 1, offset - self._starts[index] + 1, self.lines[index])


def read_text(path: Path, most_bytes: int = MAX_BYTES) -> SourceText:
    """Reads a UTF-8 text file; a byte-order mark is accepted.

    Raises InputError (TG001, TG002, TG003) for what is no readable regular file of at most `most_bytes`, for other encodings, and for files that stand in
    the place of the real one: Git LFS pointers and web pages.
    """
    name = str(path)
    data = read_bytes(path, most_bytes)
    text = _decode(data, name)
    source = SourceText(name, text)
    if text.startswith("version https://git-lfs.github.com/spec/"):
        raise _refused(source.location(0), "TG003", "the file is a Git LFS pointer, not the file itself", "run: git lfs pull")
    if re.match(r"\s*<(!doctype\s+html|html[\s>])", text, re.IGNORECASE):
        raise _refused(source.location(0), "TG003", "the file is a web page", "download the file itself, not the page that shows it")
    return source


def _refused(location: Location, code: str, message: str, hint: str) -> InputError:
    """An error with one finding."""
    return InputError([Diagnostic(code, message, location, hint=hint)])


def read_bytes(path: Path, most_bytes: int = MAX_BYTES) -> bytes:
    """The file's bytes. Raises InputError (TG001) where it cannot be read or has more than `most_bytes`; never waits on a pipe or a device."""
    name = str(path)
    place = Location(name)
    if "\0" in name:
        raise _refused(Location(name.replace("\0", "\\0")), "TG001", "the path holds a NUL character, which no file name can have", "give the path of a file")
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise _refused(place, "TG001", "this is a folder, and a file is expected", _folder_hint(path))
        if not stat.S_ISREG(mode):
            raise _refused(place, "TG001", "this is a pipe or a device, and a regular file is expected", "save the text to a file first")
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _refused(place, "TG001", "there is no such file", "check the path; relative ones start at the current folder") from error
    except PermissionError as error:
        raise _refused(place, "TG001", "the file may not be read by this user", f"allow it: chmod u+r {name}") from error
    except OSError as error:
        raise _refused(place, "TG001", f"the file cannot be read: {error.strerror}", "check the path and the disk") from error
    if len(data) > most_bytes:
        raise _refused(
            place, "TG001", f"the file is larger than {most_bytes // 1_000_000} MB, far more than any text of this kind", "check that it is the right file"
        )
    return data


def _folder_hint(folder: Path) -> str:
    """Which file in the folder was probably meant."""
    found = next((name for name in ("spec.yaml", "spec.yml", "config.pbtxt") if (folder / name).is_file()), None)
    return f"give the file: {folder / found}" if found else "give the path of a file"


def _decode(data: bytes, name: str) -> str:
    """The text of UTF-8 bytes. Raises InputError (TG002) with the place of the first byte that is no UTF-8."""
    if data.startswith(_UTF_16_OR_32):
        raise _refused(
            Location(name), "TG002", "the file is UTF-16 or UTF-32 text, and UTF-8 is expected", "save it as UTF-8 (in PowerShell: Out-File -Encoding utf8)"
        )
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        rest = data.removeprefix(codecs.BOM_UTF8)
        start = max(rest.rfind(b"\n", 0, error.start), rest.rfind(b"\r", 0, error.start)) + 1
        line = len(_LINE_END.findall(rest[: error.start].decode()))
        text = re.split(r"[\r\n]", rest[start : start + 400].decode(errors="replace"), maxsplit=1)[0]
        place = Location(name, line + 1, len(rest[start : error.start].decode()) + 1, text)
        offset = error.start + len(data) - len(rest)
        message = f"the file is not UTF-8 text: byte {offset} (counted from 0) is 0x{data[offset]:02x}"
        raise _refused(place, "TG002", message, "save the file as UTF-8, or check that it is a text file at all") from error
