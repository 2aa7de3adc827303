"""YAML text → `Node` tree: YAML 1.2's core schema, one document, keys that are texts, and nothing that surprises.

Built from the parser's events and without recursion, so that nesting, anchors and aliases are bounded before they cost anything. Whatever can be mended is
reported and the rest of the text is read on; the result holds every finding. Findings made here: TG003 several documents, TG004 not YAML, TG005 duplicate keys,
TG006 YAML that a configuration should not use (dates, tags, huge numbers, keys that are no texts, exploding anchors).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from tritongen.diagnostics import Diagnostic
from tritongen.sources.text import SourceText
from tritongen.sources.tree import Entry, Node, Scalar
from tritongen.sources.yaml_faults import explain
from tritongen.sources.yaml_scalars import TAG_PREFIX, LargeNumberError, is_date, is_scalar_tag, join_surrogates, scalar_value

MAX_DEPTH = 64
"""Deeper nesting is refused: the deepest key of a spec or a ModelConfig is far above."""

MAX_NODES = 300_000
"""More values than this are refused: some ten seconds of parsing, and ten times what a spec of 500 models holds."""

MAX_ALIASED_NODES = 100_000
"""How many nodes all aliases may stand for together. Ten aliases of ten aliases, ten levels deep, would be ten thousand million."""

_PLAIN_TAGS = {None, "!"}
_LONGEST_INT = 24  # a 64-bit number with its sign, and the character behind it


@dataclass(frozen=True)
class ParsedYaml:
    """What was read: the tree (None for a text without content, or where parsing stopped) and every finding on the way."""

    root: Node | None
    problems: tuple[Diagnostic, ...]


def parse_yaml(source: SourceText) -> ParsedYaml:
    """Reads one YAML document. Never raises for what the text says: all that is wrong is in `problems`."""
    builder = _Builder(source)
    try:
        for event in YAML(typ="safe", pure=True).parse(source.text):
            builder.feed(event)
    except _StopReading:
        return ParsedYaml(None, tuple(builder.problems))
    except (YAMLError, ValueError, OverflowError, AssertionError) as error:
        # The parser lets ValueError and OverflowError of chr() through for an escape such as \UFFFFFFFF, and asserts on strange version directives.
        marked = error if isinstance(error, MarkedYAMLError) else None
        builder.problems.append(explain(source, error, marked, builder.position))
        return ParsedYaml(None, tuple(builder.problems))
    return ParsedYaml(builder.root, tuple(builder.problems))


class _StopReading(Exception):
    """Reading on makes no sense."""


@dataclass(slots=True)
class _Open:
    """A collection whose end was not seen yet; `is_robbed`: it has had entries, of which none could be kept."""

    node: Node
    anchor: str | None
    key: Node | None = None
    key_is_merge: bool = False
    merges: list[Node] = field(default_factory=list)
    is_robbed: bool = False


class _Builder:
    """Takes events, grows a tree. `root` is complete when all events were taken."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.root: Node | None = None
        self.problems: list[Diagnostic] = []
        self.position = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}  # None: the anchored node is still open
        self._aliased = 0
        self._written = 0
        self._documents = 0

    def feed(self, event: Event) -> None:
        """Takes the next event. Raises _StopReading where the rest should not be read."""
        start = event.start_mark.index
        self.position = max(self.position, event.end_mark.index)
        if isinstance(event, ScalarEvent):
            self._scalar(event, start)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            self._begin(event, start)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._end()
        elif isinstance(event, AliasEvent):
            self._alias(event.anchor, start)
        elif isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._stop(
                    "TG003", "the file holds a second YAML document, and one is expected", start, "remove the line with --- and what follows, or use two files"
                )

    def _report(self, code: str, message: str, start: int, hint: str, consequence: str = "") -> None:
        self.problems.append(Diagnostic(code, message, self.source.location(start), consequence=consequence, hint=hint))

    def _stop(self, code: str, message: str, start: int, hint: str) -> None:
        self._report(code, message, start, hint)
        raise _StopReading

    def _scalar(self, event: Any, start: int) -> None:
        plain = bool(event.implicit[0])
        node = Node(start, scalar=event.value)
        problem = hint = ""
        try:
            value = scalar_value(event.value, event.tag, plain=plain)
            node.scalar = join_surrogates(value) if isinstance(value, str) else value
            if plain and is_date(event.value):
                problem, hint = f"{event.value[:40]} is a date in YAML", f'put it in quotes: "{event.value[:40]}"'
            elif event.tag is not None and not is_scalar_tag(event.tag):
                problem, hint = _unknown_tag(event.tag)
        except LargeNumberError:
            problem = f"the number {event.value[:20]}{'…' * (len(event.value) > 20)} is too large: Triton has no field of more than 64 bits"
            hint = "check the value"
        except UnicodeDecodeError:
            problem, hint = "the text holds half of a surrogate pair, which is no character", "write the character itself, or its full \\U escape"
        except ValueError:
            problem, hint = f"{event.value[:40]!r} cannot be read as {event.tag.removeprefix(TAG_PREFIX)}", "check the value, or remove the tag"
        if problem:
            self._report("TG006", problem, start, hint)
        node.faulty = bool(problem)
        merge = plain and event.value == "<<" and event.tag is None
        self._anchor(event.anchor, node)
        self._attach(node, is_merge=merge)

    def _begin(self, event: Any, start: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            self._stop("TG006", f"lists and mappings are nested deeper than {MAX_DEPTH} levels", start, "no setting is that deep: check the brackets")
        is_mapping = isinstance(event, MappingStartEvent)
        node = Node(start, entries={}) if is_mapping else Node(start, items=[])
        if event.tag not in {*_PLAIN_TAGS, TAG_PREFIX + ("map" if is_mapping else "seq")}:
            problem, hint = _unknown_tag(event.tag)
            self._report("TG006", problem, start, hint)
            node.faulty = True
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open(node, event.anchor))

    def _end(self) -> None:
        closed = self._open.pop()
        node = closed.node
        if node.entries is not None:
            for merged in closed.merges:
                for key, entry in self._merged_entries(merged):
                    node.entries.setdefault(key, entry)
            children = [entry.node for entry in node.entries.values()]
            # Of its keys none could be read, and each was reported: it is not empty.
            node.faulty = node.faulty or (closed.is_robbed and not node.entries)
        else:
            children = node.items or []
        node.size = 1 + sum(child.size for child in children)
        node.height = 1 + max((child.height for child in children), default=0)
        self._anchor(closed.anchor, node)
        self._attach(node)

    def _merged_entries(self, merged: Node) -> Iterator[tuple[str, Entry]]:
        """The entries that `<<` brings: of one mapping, or of a list of mappings, of which earlier ones win."""
        for node in [merged] if merged.items is None else merged.items:
            if node.entries is None:
                self._report("TG006", "<< takes over the keys of a mapping, and this is none", node.start, "give it an alias of a mapping: <<: *name")
            else:
                yield from node.entries.items()

    def _alias(self, name: str, start: int) -> None:
        if name not in self._anchors:
            self._report(
                "TG006", f"the alias *{name} has no anchor &{name} above it", start, "add the anchor, or put the value in quotes if a text with * is meant"
            )
            self._attach(Node(start, faulty=True))
            return
        node = self._anchors[name]
        if node is None:
            self._stop("TG006", f"the alias *{name} stands inside its own anchor, so the value would never end", start, "write the value out")
            return
        self._aliased += node.size
        if self._aliased > MAX_ALIASED_NODES:
            self._stop("TG006", f"written out, the aliases stand for more than {MAX_ALIASED_NODES} values", start, "use fewer aliases of aliases")
        if len(self._open) + node.height > MAX_DEPTH:
            self._stop("TG006", f"with this alias lists and mappings are nested deeper than {MAX_DEPTH} levels", start, "write the value out, flatter")
        self._attach(node)

    def _anchor(self, name: str | None, node: Node) -> None:
        if name is not None:
            self._anchors[name] = node

    def _attach(self, node: Node, *, is_merge: bool = False) -> None:
        """Puts a complete node where it belongs: the root, a list, a key, or the value of the key before it."""
        self._written += 1
        if self._written > MAX_NODES:
            self._stop("TG006", f"the file holds more than {MAX_NODES} values", self.position, "check that it is the right file, or split it")
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if parent.node.items is not None:
            parent.node.items.append(node)
        elif parent.key is None:
            parent.key, parent.key_is_merge = node, is_merge
        else:
            key, parent.key = parent.key, None
            if parent.key_is_merge:
                parent.merges.append(node)
            else:
                self._entry(parent.node, key, node)
                parent.is_robbed = parent.is_robbed or not parent.node.entries

    def _entry(self, mapping: Node, key: Node, node: Node) -> None:
        entries = mapping.entries
        if entries is None or key.faulty:
            return
        if mapping.faulty and not isinstance(key.scalar, str):
            return  # with an unknown tag, such as !!set, its keys may be anything
        name = self._name(key)
        if name is None:
            kind = "a list or a mapping" if key.height else f"read as {_shown(key.scalar)}"
            hint = "check the brackets: texts like {x} and [x] need quotes" if key.height else f'put the key in quotes: "{_shown(key.scalar)}"'
            self._report("TG006", f"a key must be a text, and this one is {kind}", key.start, hint)
        elif name in entries:
            first = self.source.location(entries[name].key_start)
            message = f"the key {name[:60]!r} is there twice; the first one is at {first}"
            self._report("TG005", message, key.start, "remove one of the two", "most YAML readers silently use the last one")
        else:
            entries[name] = Entry(key.start, node)

    def _name(self, key: Node) -> str | None:
        """A key as text; None where it is none. A whole number in its plain spelling is one: priority levels and many a tensor are named `1`."""
        if isinstance(key.scalar, str):
            return key.scalar
        is_plain = type(key.scalar) is int and re.match(rf"{key.scalar}(?!\w)", self.source.text[key.start : key.start + _LONGEST_INT])
        return str(key.scalar) if is_plain else None


def _unknown_tag(tag: str) -> tuple[str, str]:
    """Message and hint for a tag that asks for more than plain data."""
    shown = "!!" + tag.removeprefix(TAG_PREFIX) if tag.startswith(TAG_PREFIX) else tag
    return f"the tag {shown[:60]} is not supported", "remove the tag; a text needs no more than quotes"


def _shown(value: Scalar) -> str:
    """A scalar as YAML writes it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
