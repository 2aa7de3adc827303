"""Key paths of a spec → places in its text, through `defaults` where a model inherits a key."""

from __future__ import annotations

from dataclasses import dataclass

from tritongen.diagnostics import Location
from tritongen.sources import Found, Node, SourceText

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Places:
    """Key paths → locations in one text."""

    source: SourceText
    root: Node

    def find(self, path: KeyPath) -> Found:
        """The node of a path, looked for under `defaults` where the model does not set the key itself."""
        found = self.root.find(path)
        if found.depth == 2 and len(path) > 2 and path[0] == "models":
            inherited = self.root.find(("defaults", *path[2:]))
            if inherited.depth >= 2:
                return inherited
        return found

    def is_inherited(self, path: KeyPath) -> bool:
        """True for a model's key that was written under `defaults`."""
        return len(path) > 2 and path[0] == "models" and self.root.find(path).depth == 2 and self.root.find(("defaults", path[2])).depth == 2

    def is_faulty(self, path: KeyPath) -> bool:
        """True where the value itself was found faulty already, or is part of one that was: nobody knows what an unknown tag makes of what it stands before."""
        parts = (self.find(path[:length]) for length in range(1, len(path) + 1))
        return self.root.faulty or any(found.node.faulty for length, found in enumerate(parts, 1) if found.depth == length)

    def beside(self, path: KeyPath, other: tuple[str, ...]) -> tuple[str, Location] | None:
        """The name and place of another key, whose path goes on from the mapping that holds the last key of `path`; None where the text does not have it.

        A short form such as `batching: none` stands for the keys inside it.
        """
        holder = path[:-1]
        for length in range(len(other), 0, -1):
            here = (*holder, *other[:length])
            if self.find(here).depth == len(here) - self.is_inherited(here):
                return ".".join(other[:length]), self.of_key(here)
        return None

    def of_key(self, path: KeyPath) -> Location:
        """Where a key stands, or the last part of its path that exists."""
        return self.source.location(self.find(path).key_start)

    def of_value(self, path: KeyPath) -> Location:
        """Where a value stands, or the key before it."""
        found = self.find(path)
        return self.source.location(found.node.start if found.depth == len(path) else found.key_start)
