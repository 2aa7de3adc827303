"""Plain data with positions: what a YAML text says, and where it says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Scalar = str | int | float | bool | None


class Entry(NamedTuple):
    """One entry of a mapping: the offset of its key, and its value."""

    key_start: int
    node: Node


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping. One node may stand in several places: an anchor and its aliases share it.

    Attributes:
        start: offset of its first character in the text.
        scalar: the value of a scalar.
        items: the items of a list, None for other kinds.
        entries: the entries of a mapping by key, in the order of the text, None for other kinds.
        size: number of nodes in it, itself included, with aliases written out.
        height: levels of nesting in it; 0 for a scalar.
        faulty: True where a finding about this value was already made, so that it should not be judged again.
    """

    start: int
    scalar: Scalar = None
    items: list[Node] | None = None
    entries: dict[str, Entry] | None = None
    size: int = 1
    height: int = 0
    faulty: bool = False

    def plain(self) -> Any:
        """The data as dict, list, str, int, float, bool and None, without positions."""
        if self.entries is not None:
            return {key: entry.node.plain() for key, entry in self.entries.items()}
        if self.items is not None:
            return [item.plain() for item in self.items]
        return self.scalar

    def find(self, path: Sequence[str | int]) -> Found:
        """Follows keys and indices as far as they exist.

        Index 0 of a mapping is the mapping itself: where a list is expected, a single entry may be written without one.
        """
        node, key_start, depth = self, self.start, 0
        for part in path:
            if node.entries is not None and isinstance(part, str) and part in node.entries:
                key_start, node = node.entries[part]
            elif node.items is not None and isinstance(part, int) and 0 <= part < len(node.items):
                node = node.items[part]
                key_start = node.start
            elif not (node.entries is not None and part == 0):
                break
            depth += 1
        return Found(node, key_start, depth)


class Found(NamedTuple):
    """The deepest node on a path that exists.

    Attributes:
        node: that node.
        key_start: offset of the key that leads to it; of the node itself in a list and at the top.
        depth: how many parts of the path were found.
    """

    node: Node
    key_start: int
    depth: int
