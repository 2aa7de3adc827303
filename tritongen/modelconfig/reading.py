"""Reads a config.pbtxt: its verdict is that of Triton's own parser, and every mistake is found in one run, with its place and its probable meaning.

Triton parses the file with C++ protobuf's `TextFormat`; Python's `google.protobuf.text_format` is another parser with the same purpose. `ReadConfig.ok` says
what the C++ one says. `DIFFERENCES` lists every kind of text on which the two are known to disagree; everywhere else the tests hold this reader against both.

Findings made here, all of severity error but for the first:

    TG076  the file is too large to be read, which is a limit of this reader: a warning
    TG200  the file is something else: binary, another encoding, JSON, YAML, a web page, a Git LFS pointer
    TG201  a bracket is not closed, or closed twice
    TG202  a colon, a comma or braces are missing, surplus or another character
    TG203  text that means nothing where it stands
    TG204  the quotes or the escapes of a string
    TG205  a place of a template that was not filled; a warning in a string, which parses
    TG206  an unresolved merge conflict
    TG207  a comment of another language
    TG208  a field that the message does not have
    TG209  a field that belongs to another message, further out or further in
    TG210  a value of the wrong type
    TG211  a name that is no value of an enum
    TG212  a number that is malformed or out of range
    TG213  a field given twice that may be given once
    TG214  two fields of which only one may be given
    TG215  a field without a value
    TG216  a parameter's value in the shape of the other kind of parameters
    TG217  an extension
    TG218  nested beyond all sense
    TG219  more mistakes than are listed
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.modelconfig.binding import Binder
from tritongen.modelconfig.binding_notes import Path, Place
from tritongen.modelconfig.binding_scalars import Finding, show
from tritongen.modelconfig.fields import message_table
from tritongen.modelconfig.foreign import Foreign, binary, encoding, other_text
from tritongen.modelconfig.pb import ModelConfig
from tritongen.sources.pbtxt import parse_fields
from tritongen.sources.pbtxt_brackets import MAX_DEPTH
from tritongen.sources.pbtxt_tree import Edit, FaultKind
from tritongen.sources.text import SourceText

MAX_BYTES = 500_000
"""A larger file is not read, to stay within two seconds. Protobuf itself sets no limit; an ensemble of a thousand steps has some 200 kilobytes."""

MAX_FINDINGS = 100
"""More findings than this are not listed."""

DIFFERENCES: tuple[tuple[str, bool, str], ...] = (
    ("a blank, a line end or a comment between a minus sign and its number: - 1", True, "C++ reads the sign as a token of its own"),
    ("a plus sign before a number: +1", False, "C++ has no such token"),
    ("underscores in numbers, and 0b and 0o: 1_000, 0b11", False, "these are Python's own"),
    ("inff, nanf, and several f behind a number: 1.5ff", False, "C++ takes one f, behind digits"),
    ("-0 for an unsigned field", False, "C++ takes no sign there"),
    ("01, 00, 0x1 and 0x0 for true and false", True, "C++ reads any whole number, and refuses those above 1"),
    ("an octal number for an enum: 07", True, "C++ reads it as for any whole number"),
    (r"an unknown escape in a string: \q \8 \N{...}", False, "C++ names its escapes; Python keeps unknown ones as they are"),
    (r"\? in a string", True, "C++ reads a question mark; Python keeps the backslash"),
    (r"an octal escape above \377 in a string", True, "C++ drops the upper bits"),
    (r"\u or \U that writes a backslash", True, "C++ takes it for a character; Python reads it as the begin of an escape"),
    (r"a pair of \ud800...\udfff escapes, and \U00110000 to \U001fffff", True, "C++ joins a pair, and keeps the latter as text"),
    (r"a string that is no UTF-8: \xff, a lone \ud800, raw bytes", True, "C++ checks no string; see `ReadConfig.config`"),
    ("bytes in comments that are no UTF-8", True, "C++ reads bytes; Python decodes the whole file first"),
    ("NUL in a string or a comment", False, "C++ ends both there"),
    ("blanks beyond ASCII, and 0x1c to 0x1f", False, "C++ knows the blanks of ASCII only"),
    ('a key or value given twice in one entry of a map, the first one empty or zero: key: "" key: "a"', False, "C++ map entries know what was given"),
    ("up to 3.4028235677973366e+38 for a number of single precision", True, "C++ reads the greatest such number, as which it prints it; Python reads infinity"),
    ("a file above MAX_BYTES", False, "a limit of this reader"),
    (f"more than {MAX_DEPTH} brackets in one another", False, "a limit of this reader; no field of ModelConfig nests that deep"),
)
"""Texts on which this reader and Python's `text_format` disagree: what, whether this reader accepts it, and why. All but the last two follow C++ protobuf."""

_REFUSED = (
    "Triton refuses the model: it cannot parse the file; the reason is in the server's log alone, and a client sees 'failed to poll from model repository'"
)
_CODES = {
    FaultKind.BRACKET: "TG201",
    FaultKind.PUNCTUATION: "TG202",
    FaultKind.UNEXPECTED: "TG203",
    FaultKind.QUOTE: "TG204",
    FaultKind.TEMPLATE: "TG205",
    FaultKind.CONFLICT: "TG206",
    FaultKind.COMMENT: "TG207",
    FaultKind.EXTENSION: "TG217",
    FaultKind.DEPTH: "TG218",
}
_LONGEST_HINT = 600
_SURROGATES = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")
_CONFIG_TABLE = message_table(ModelConfig.DESCRIPTOR)


@dataclass(frozen=True)
class Fix:
    """A finding, and the edits that mend it without a doubt about what was meant. Offsets of edits count bytes of the file."""

    diagnostic: Diagnostic
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class ReadConfig:
    """What a config.pbtxt says.

    Attributes:
        ok: whether Triton's parser accepts the file; False for one that is too large for this reader, too.
        config: the `ModelConfig`: complete where the file is accepted, else all that could be understood, with obvious mistakes corrected. Bytes of a string
            that are no UTF-8 are U+FFFD in it: protobuf for Python cannot hold them.
        diagnostics: everything that is wrong, in the order of the file; empty where the file is accepted.
        fixes: the findings that can be mended without changing what the file means.
        notes: warnings about what the parser accepts: a string that holds a place of a template which nobody filled.
    """

    ok: bool
    config: Any
    diagnostics: tuple[Diagnostic, ...]
    fixes: tuple[Fix, ...]
    notes: tuple[Diagnostic, ...]
    _source: SourceText = field(repr=False)
    _places: dict[Path, Place] = field(repr=False)
    _lists: dict[Path, list[int]] = field(repr=False)

    def locate(self, path: Path) -> Location:
        """Where a field is, such as `("input", 0, "dims", 1)` or `("parameters", "threads")`.

        It is the value of a plain field, the key of a map's entry (the value, where that is plain), the name of a message or of a list. Where the file has no
        such field, it is the nearest one around it, and the first line in the end.
        """
        for length in range(len(path), 0, -1):
            starts, index = self._lists.get(path[: length - 1], ()), path[length - 1]
            if isinstance(index, int) and 0 <= index < len(starts):
                return self._source.location(starts[index])
            place = self._places.get(path[:length])
            if place is not None:
                return self._source.location(place.value)
        return self._source.location(0)


def unread_config(size: int, path: str) -> ReadConfig:
    """What is said of a config.pbtxt of more than MAX_BYTES, which is not read."""
    message = f"config.pbtxt was not read: it has {size:,} bytes, and more than {MAX_BYTES:,} are not read"
    consequence = "Triton sets no limit and may load it; nothing about this model was checked"
    finding = Diagnostic("TG076", message, Location(path), consequence, "check that it is the right file", severity=Severity.WARNING)
    return ReadConfig(False, ModelConfig(), (finding,), (), (), SourceText(path, ""), {}, {})


def read_config(source: bytes, path: str) -> ReadConfig:
    """Reads the bytes of a config.pbtxt; `path` is what findings show. Never raises for what is in the file."""
    if len(source) > MAX_BYTES:
        return unread_config(len(source), path)
    codec, encoding_name = encoding(source)
    text = source.decode(codec or "utf-8", errors="replace" if codec else "surrogateescape").removeprefix("\ufeff")
    binder = Binder(text)
    parsed = parse_fields(text)
    config = ModelConfig()
    binder.bind(config, _CONFIG_TABLE, parsed.fields)
    findings = [
        Finding(_CODES[fault.kind], fault.start, fault.message, fault.hint, fault.edits)
        for fault in parsed.faults
        if not (fault.kind is FaultKind.PUNCTUATION and fault.start in binder.settled)
    ]
    findings += binder.scalars.findings
    encoded = codec or source.startswith(codecs.BOM_UTF8)
    if not findings and not encoded:
        shown = SourceText(path, _printable(text))
        return ReadConfig(True, config, (), (), _notes(binder, shown), shown, binder.places, binder.lists)
    foreign = binary(source) or (other_text(text) if findings else None)
    if foreign is not None:
        config, findings, binder = ModelConfig(), [_foreign(foreign)], Binder(text)
    if encoded:
        findings.insert(0, _encoding(encoding_name))
    return _with_findings(path, source, codec, config, findings, binder)


def _with_findings(path: str, source: bytes, codec: str, config: Any, findings: list[Finding], binder: Binder) -> ReadConfig:
    """The result for a file that is refused."""
    text = binder.text
    shown = SourceText(path, _printable(text))
    findings.sort(key=lambda finding: finding.start)
    more = len(findings) - MAX_FINDINGS
    diagnostics: list[Diagnostic] = []
    fixes: list[Fix] = []
    offsets = _ByteOffsets(text, 3 if source.startswith(codecs.BOM_UTF8) else 0)
    for finding in findings[:MAX_FINDINGS]:
        place = shown.location(max(0, finding.start))
        diagnostic = Diagnostic(finding.code, _presentable(finding.message), place, _REFUSED, _presentable(finding.hint))
        diagnostics.append(diagnostic)
        if finding.edits and not codec:
            edits = tuple(Edit(offsets[edit.start], offsets[edit.end], edit.text) for edit in finding.edits)
            fixes.append(Fix(diagnostic, edits))
    if more > 0:
        where = shown.location(findings[MAX_FINDINGS].start)
        diagnostics.append(Diagnostic("TG219", "more mistakes follow from here on", where, _REFUSED, "mend those above first"))
    return ReadConfig(False, config, tuple(diagnostics), tuple(fixes), _notes(binder, shown), shown, binder.places, binder.lists)


def _notes(binder: Binder, shown: SourceText) -> tuple[Diagnostic, ...]:
    """What the parser accepts, and was hardly meant."""
    twice = tuple(
        Diagnostic(
            "TG213",
            _presentable(f"'{path[-1]}' is given twice in '{path[-2]}'; this entry replaces the one before"),
            shown.location(start),
            "the parser keeps the last entry of a key: Triton never sees the value before",
            "remove one of the two, or correct its key",
            severity=Severity.WARNING,
        )
        for start, path in binder.replaced[:MAX_FINDINGS]
    )
    return twice + tuple(
        Diagnostic(
            "TG205",
            _presentable(f"{show(content)} is a place of a template that was not filled"),
            shown.location(start),
            "the parser takes it for the text itself: Triton fills in nothing",
            "run the tool that fills the template, or write the value here",
            severity=Severity.WARNING,
        )
        for start, content in binder.unfilled[:MAX_FINDINGS]
    )


class _ByteOffsets:
    """Offsets in characters to offsets in the file's bytes."""

    def __init__(self, text: str, before: int) -> None:
        self._before = before
        self._ascii = text.isascii()
        self._wide = [] if self._ascii else [index for index, char in enumerate(text) if char > "\x7f"]
        self._sums = [0]
        for index in self._wide:
            self._sums.append(self._sums[-1] + len(text[index].encode(errors="surrogateescape")) - 1)

    def __getitem__(self, offset: int) -> int:
        # -1 is the begin of the file itself, before its byte-order mark.
        if offset < 0:
            return 0
        return self._before + offset + (0 if self._ascii else self._sums[bisect_right(self._wide, offset - 1)])


def _encoding(name: str) -> Finding:
    """A byte-order mark: of UTF-8, which is only surplus, or of another encoding."""
    if not name:
        hint = "save the file as UTF-8 without a byte-order mark"
        return Finding("TG200", -1, "the file begins with a byte-order mark, which the parser takes for text", hint, (Edit(-1, 0, ""),))
    return Finding(
        "TG200", 0, f"the file is {name} text, and UTF-8 is expected", "save it as UTF-8 without a byte-order mark (in PowerShell 7: Out-File -Encoding utf8)"
    )


def _foreign(foreign: Foreign) -> Finding:
    return Finding("TG200", foreign.start, foreign.message, foreign.hint)


def _presentable(words: str) -> str:
    """A message or a hint, which may quote the file, in a form and a length for people."""
    words = _printable(words)
    return words if len(words) <= _LONGEST_HINT else words[: _LONGEST_HINT - 3] + "..."


def _printable(text: str) -> str:
    """The text with U+FFFD for each byte that is no UTF-8, so that it can be shown."""
    return text if text.isascii() else text.translate(_SURROGATES)


def apply_fixes(source: bytes, fixes: tuple[Fix, ...]) -> bytes:
    """The file with the edits of `fixes` made; of two that overlap, the later one in the file is left out."""
    edits = sorted(dict.fromkeys(edit for fix in fixes for edit in fix.edits), key=lambda edit: (edit.start, edit.end))
    kept: list[Edit] = []
    for edit in edits:
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    for start, end, text in reversed(kept):
        source = source[:start] + text.encode(errors="surrogateescape") + source[end:]
    return source
