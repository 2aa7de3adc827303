"""A model of a repository, whole, in memory: what its folder should hold, before anything is written.

An entry knows paths and contents only. Where it goes and what is there already is `plan`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class TextFile:
    """A file whose bytes are known: the config, labels, warmup data."""

    content: bytes


@dataclass(frozen=True)
class CopiedFile:
    """A file that is copied from elsewhere, large as it may be; `sha256` is the hex digest of its content."""

    source: Path
    sha256: str


@dataclass(frozen=True)
class KeptFile:
    """A file that is made on the target, such as a TensorRT plan: kept where it is there, never written by a render."""


EntryFile = TextFile | CopiedFile | KeptFile


@dataclass(frozen=True)
class Entry:
    """One model.

    Attributes:
        name: the model's name, which is its folder's name.
        files: what the model's folder holds, by path relative to it. `config.pbtxt` is always there.
        artifacts: what belongs to the model but must not be seen by Triton (a plan's source ONNX), by path relative to `<repository>.artifacts/<model>/`.
        carried: files of the folder that stay as they are where they are there, though `files` has none of them: made on the target, and known to be right by
            whoever made the entry.
        basis: for an entry that was made from what the folder held (earlier versions that stay), the SHA-256 (hex) of the config.pbtxt that said so, "" where
            there was none; None for an entry that does not depend on it.
    """

    name: str
    files: Mapping[PurePosixPath, EntryFile]
    artifacts: Mapping[PurePosixPath, EntryFile] = field(default_factory=dict)
    carried: frozenset[PurePosixPath] = frozenset()
    basis: str | None = None
