"""A model of a repository, whole, in memory: what its folder should hold, before anything is written.

An entry knows paths and contents only. Where it goes and what is there already is `plan`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tritongen.recipe import PlanFile, PlanRecipe

CONFIG = PurePosixPath("config.pbtxt")
"""The config of a model, in its folder."""


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
    """A file that is made on the target, such as a TensorRT plan: kept where it is there and as asked for, never written by a render.

    Attributes:
        recipe: how it is built; None where nothing is known, so that it is kept as long as what it is made from stays the same.
        plan: which of the recipe's plans it is.
    """

    recipe: PlanRecipe | None = None
    plan: PlanFile | None = None


EntryFile = TextFile | CopiedFile | KeptFile


@dataclass(frozen=True)
class Entry:
    """One model.

    Attributes:
        name: the model's name, which is its folder's name.
        files: what the model's folder holds, by path relative to it. `config.pbtxt` is always there.
        artifacts: what belongs to the model but must not be seen by Triton (a plan's source ONNX), by path relative to `<repository>.artifacts/<model>/`.
        basis: for an entry that was made from what the folder held (earlier versions that stay), the SHA-256 (hex) of the config.pbtxt that said so, "" where
            there was none; None for an entry that does not depend on it.
    """

    name: str
    files: Mapping[PurePosixPath, EntryFile]
    artifacts: Mapping[PurePosixPath, EntryFile] = field(default_factory=dict)
    basis: str | None = None

    @property
    def recipes(self) -> tuple[PlanRecipe, ...]:
        """How its plans are built, one recipe for each version; none for a model that has no plans."""
        kept = [file.recipe for file in self.files.values() if isinstance(file, KeptFile) and file.recipe is not None]
        return tuple({recipe.version: recipe for recipe in kept}.values())
