"""The tree of a config's text to a `ModelConfig`: fields, types, doubles, groups, and where everything is.

The rules are those of C++ protobuf's `TextFormat::Parser` with its default settings, as Triton uses it. A field has "been given" when protobuf says so: for a
singular scalar of proto3 that is a value other than zero, except in map entries and in groups of alternatives, which always know.
"""

from __future__ import annotations

from typing import Any

from tritongen.modelconfig.binding_maps import MapNotes
from tritongen.modelconfig.binding_notes import Level, Path, Place
from tritongen.modelconfig.fields import FieldTable, Kind, MessageTable
from tritongen.modelconfig.suggestions import meant_field
from tritongen.sources.pbtxt_literals import integer
from tritongen.sources.pbtxt_tokens import INT
from tritongen.sources.pbtxt_tree import Field, Items, Message, Scalar

MAX_FINDINGS = 300
"""With more than this the rest of a text is not looked at."""

_SHORT = 8


class Binder(MapNotes):
    """Fills a message from fields; the findings are in `scalars`."""

    def bind(self, message: Any, table: MessageTable, fields: list[Field]) -> None:
        """Fills the outermost message."""
        self._fill(message, table, self.unwrapped(fields, table), (), "the config")
        for level, field, down in self.moved:
            self._place_moved(level, field, down)

    def _fill(self, message: Any, table: MessageTable, fields: list[Field], path: Path, owner: str) -> None:
        self.levels.append(Level(message, table, path, owner))
        given: dict[str, Field] = {}
        for node in fields:
            if len(self.scalars.findings) >= MAX_FINDINGS:
                break
            self.is_guess = False
            known = table.fields.get(node.name)
            self.settle_list(known, node.value)
            field = known or self.unknown(node, fields)
            if field is None:
                continue
            # What does not fit a field that was only guessed is no mistake of its own.
            kept = len(self.scalars.findings) if self.is_guess else -1
            if not field.repeated and self.is_double(field, node, table, given):
                continue
            if node.quoted or not node.colon:
                self.check_name(node, field)
            if node.value is None:
                self.without_value(field, node)
            elif field.is_map:
                for entry in self.messages(field, node, node.value):
                    self._entry(message, field, node, entry, path)
            elif field.kind is Kind.MESSAGE:
                self._submessage(message, field, node, path)
            else:
                self._scalar(message, field, node, path)
            if kept >= 0:
                del self.scalars.findings[kept:]
            if not field.repeated and self.was_given(message, field):
                given[field.oneof or field.name] = node
        self.levels.pop()

    def _scalar(self, message: Any, field: FieldTable, node: Field, path: Path) -> None:
        value = node.value
        if field.repeated:
            self._scalars(message, field, node, (*path, field.name))
            return
        if isinstance(value, Items):
            value = self.only_value(field, value)
        if isinstance(value, Message):
            self.message_for_scalar(field, node, value)
        elif isinstance(value, Scalar):
            field_path: Path = (*path, field.name)
            self.places[field_path] = Place(node.start, value.start)
            self._note_string(field, value)
            if (read := self.scalars.read(field, value)) is not None:
                setattr(message, field.name, read)

    def _note_string(self, field: FieldTable, value: Scalar) -> None:
        # Parameters are for backends, and some of those fill in places of their own or take one that is open for "not given".
        if field.kind is Kind.STRING and value.quoted and self.levels[-1].table.name != "ModelParameter":
            self.note_place(value.content, value.start)

    def _scalars(self, message: Any, field: FieldTable, node: Field, path: Path) -> None:
        """The values of a field that may be repeated: a list, or one of several."""
        target = getattr(message, field.name)
        self.places.setdefault(path, Place(node.start, node.start))
        starts = self.lists.setdefault(path, [])
        for item in node.value.items if isinstance(node.value, Items) else (node.value,):
            if isinstance(item, Scalar) and item.kind == INT and field.kind is Kind.INT and not item.negative and len(item.content) < _SHORT:
                # The common case, without the general way; a short number is in the range of every type.
                starts.append(item.start)
                target.append(integer(item.content))
                continue
            if not isinstance(item, Scalar):
                self.message_for_scalar(field, node, item)
                continue
            self._note_string(field, item)
            if (read := self.scalars.read(field, item)) is not None:
                starts.append(item.start)
                target.append(read)
            if len(self.scalars.findings) >= MAX_FINDINGS:
                break

    def _submessage(self, message: Any, field: FieldTable, node: Field, path: Path) -> None:
        assert field.message is not None
        field_path: Path = (*path, field.name)
        self.places.setdefault(field_path, Place(node.start, node.start))
        for item in self.messages(field, node, node.value):
            item_path = field_path
            if field.repeated:
                target = getattr(message, field.name)
                item_path = (*field_path, len(target))
                self.places[item_path] = Place(node.start, item.start if isinstance(node.value, Items) else node.start)
                child = target.add()
            else:
                child = getattr(message, field.name)
                child.SetInParent()
            self._fill(child, field.message, item.fields, item_path, f"'{field.name}'")

    def _entry(self, message: Any, field: FieldTable, node: Field, entry: Message, path: Path) -> None:
        """One entry of a map, whose key and value may come in either order or be missing; a later entry of the same key replaces an earlier one."""
        assert field.message is not None
        key_field, value_field = field.message.fields["key"], field.message.fields["value"]
        given: dict[str, Field] = {}
        loose: list[Field] = []
        for part in entry.fields:
            known = field.message.fields.get(part.name)
            if known is None and (meant := meant_field(part.name, [field.message])) is not None and meant.sure:
                self.misspelled(part, field.message, meant)
                known = meant.field
            if known is None:
                loose.append(part)
            elif known.name in given:
                self.is_double(known, part, field.message, given)
            else:
                given[known.name] = part
                if part.quoted or not part.colon:
                    self.check_name(part, known)
        target = getattr(message, field.name)
        map_path = (*path, field.name)
        self.places.setdefault(map_path, Place(node.start, node.start))
        for part in loose:
            self.loose_entry(target, field, part, map_path)
        if loose and not given:
            return
        key = self.entry_scalar(key_field, given.get("key"))
        value_node = given.get("value")
        if key is None:
            key = "" if key_field.kind is Kind.STRING else 0
        key_node = given.get("key")
        start = key_node.value.start if key_node is not None and key_node.value is not None else entry.start
        self._set_entry(target, value_field, key, value_node, (*map_path, key), Place(node.start, start))

    def _set_entry(self, target: Any, field: FieldTable, key: Any, node: Field | None, path: Path, place: Place) -> None:
        if path in self.places:
            self.replaced.append((place.value, path))
        self.places[path] = place
        if field.kind is not Kind.MESSAGE:
            value = self.entry_scalar(field, node)
            target[key] = value if value is not None else ""
            if node is not None and node.value is not None:
                self.places[path] = Place(place.name, node.value.start)
            return
        assert field.message is not None
        if key in target:
            del target[key]
        child = target[key]
        if node is None:
            return
        if node.value is None:
            self.without_value(field, node)
            return
        if isinstance(node.value, Scalar) and field.message.name == "ModelParameter":
            self.bare_parameter(child, field.message.fields["string_value"], node.value, path)
            return
        for item in self.messages(field, node, node.value)[:1]:
            self._fill(child, field.message, item.fields, path, f"the value of '{key}'")

    def _place_moved(self, level: Level, node: Field, down: tuple[str, ...]) -> None:
        """Puts a field where it belongs, as far as that is one place and nothing is there yet."""
        message, table, path, _ = level
        for name in down:
            field = table.fields[name]
            if field.repeated or (field.oneof and message.WhichOneof(field.oneof) not in (None, name)):
                return
            message, path = getattr(message, name), (*path, name)
            assert field.message is not None
            table = field.message
        field = table.fields[node.name]
        if field.oneof and message.WhichOneof(field.oneof) is not None:
            return
        if not field.repeated and self.was_given(message, field):
            return
        count = len(self.scalars.findings)
        self._fill(message, table, [node], path, level.owner)
        del self.scalars.findings[count:]
