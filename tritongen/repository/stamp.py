"""The stamp: how tritongen knows its own files again.

A generated config.pbtxt begins with comments. One line holds the SHA-256 of all that follows the header, so that a hand edit shows; one line for every other
file that was written holds that file's, one names a file that is made on the target, one for a version whose model file was rewritten says from what and how.
It lies in the config itself: it travels with the folder, through git or a container image, and needs no state beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from tritongen.repository.entry import CopiedFile, EntryFile, KeptFile, TextFile

_LINE = re.compile(r"# tritongen-(?P<kind>spec|file|artifact|kept|made|body): (?:sha256:(?P<sha>[0-9a-f]{64})(?: |$))?(?P<path>.*)")
_MODEL = re.compile(r'^name: "([^"\\]*)"\r?$', re.MULTILINE)
_NOT_IN_A_LINE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What some reader takes for the end of a line, or cannot write; and the character that the escapes of these begin with."""

_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
_VERSION = re.compile(r"[1-9][0-9]{0,18}")
MAX_VERSION = 2**63 - 1
"""The highest version: Triton reads a folder's number with `std::stoll`, and a higher one ends the whole server."""


@dataclass(frozen=True)
class Made:
    """How a version's model file came about: SHA-256 (hex) of the source with its external data, and what was done to it, as text on one line."""

    source: str
    recipe: str


@dataclass(frozen=True)
class Stamp:
    """What a config.pbtxt says about its own making.

    Attributes:
        edited: the text below the header is not what was generated.
        files: SHA-256 (hex) of every other file that was written with it, by path relative to the model's folder.
        artifacts: likewise for what lies in the artifacts folder.
        kept: files that are made on the target from those artifacts.
        made: by version, how its model file was rewritten.
        model: the name that the config gives the model; empty where it gives none.
        spec: the spec that it was made from, as its writer names it; empty where it says none.
    """

    edited: bool
    files: Mapping[PurePosixPath, str]
    artifacts: Mapping[PurePosixPath, str] = field(default_factory=dict)
    kept: tuple[PurePosixPath, ...] = ()
    made: Mapping[int, Made] = field(default_factory=dict)
    model: str = ""
    spec: str = ""

    def is_of_another(self, folder: str) -> bool:
        """Whether the folder of that name is somebody's copy of a model of ours: its config names another."""
        return self.model not in ("", folder)


def stamp_text(
    header: str,
    body: str,
    entry_files: Mapping[PurePosixPath, EntryFile],
    artifacts: Mapping[PurePosixPath, EntryFile],
    made: Mapping[int, Made],
    *,
    spec: str = "",
) -> str:
    """`header` (comment lines), the stamp and `body` as one text. The body's hash covers the body alone, so that a new wording of the header is no edit."""
    lines = [f"# tritongen-spec: {_in_a_line(spec)}"] if spec else []
    lines += [f"# tritongen-made: sha256:{how.source} {version} {how.recipe}" for version, how in sorted(made.items())]
    lines += [_line("kept" if isinstance(file, KeptFile) else "file", path, file) for path, file in sorted(entry_files.items())]
    lines += [_line("artifact", path, file) for path, file in sorted(artifacts.items())]
    lines.append(f"# tritongen-body: sha256:{_body_sha256(body)}")
    return header + "\n".join(lines) + "\n" + body


def _line(kind: str, path: PurePosixPath, file: EntryFile) -> str:
    name = _in_a_line(str(path))
    return f"# tritongen-{kind}: {name}" if isinstance(file, KeptFile) else f"# tritongen-{kind}: sha256:{content_sha256(file)} {name}"


def _in_a_line(text: str) -> str:
    return _NOT_IN_A_LINE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _path_in(text: str) -> PurePosixPath:
    """The path that a line has, as it was written by `_line`."""
    return PurePosixPath(_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text))


def content_sha256(file: TextFile | CopiedFile) -> str:
    """SHA-256 (hex) of what a file of an entry will hold."""
    return file.sha256 if isinstance(file, CopiedFile) else hashlib.sha256(file.content).hexdigest()


def read_stamp(text: str) -> Stamp | None:
    """The stamp in a config's text, or None where the text has none: then tritongen did not write it."""
    hashes: dict[str, dict[PurePosixPath, str]] = {"file": {}, "artifact": {}}
    kept: list[PurePosixPath] = []
    made: dict[int, Made] = {}
    spec = ""
    lines = text.split("\n")  # and nothing else that Python takes for the end of a line
    for index, line in enumerate(lines):
        if not line.startswith("#"):
            return None
        match = _LINE.fullmatch(line.removesuffix("\r"))
        if match is None or _leads_out(match):
            continue
        if match["kind"] == "body":
            body = "\n".join(lines[index + 1 :])
            named = _MODEL.search(body)
            return Stamp(_body_sha256(body) != match["sha"], hashes["file"], hashes["artifact"], tuple(kept), made, named[1] if named else "", spec)
        if match["kind"] == "spec":
            spec = str(_path_in(match["path"]))
        elif match["kind"] == "kept":
            kept.append(_path_in(match["path"]))
        elif match["kind"] == "made":
            version, _, recipe = match["path"].partition(" ")
            if match["sha"] and (number := version_of(version)):
                made[number] = Made(match["sha"], recipe)
        elif match["sha"]:
            hashes[match["kind"]][_path_in(match["path"])] = match["sha"]
    return None


def _body_sha256(body: str) -> str:
    """SHA-256 (hex) of the text below the header. git may have checked the file out with CRLF: the same text, not an edit."""
    return hashlib.sha256(body.replace("\r\n", "\n").encode()).hexdigest()


def _leads_out(line: re.Match[str]) -> bool:
    """Whether a line names a file outside of the model's folder. We write no such line, and what a stamp names can be removed."""
    path = _path_in(line["path"])
    return line["kind"] in ("file", "artifact", "kept") and (path.is_absolute() or ".." in path.parts or not path.parts)


def version_of(name: str) -> int:
    """The version whose folder has this name, or 0 for any other name."""
    return int(name) if _VERSION.fullmatch(name) and int(name) <= MAX_VERSION else 0
