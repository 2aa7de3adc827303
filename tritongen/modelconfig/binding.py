"""The tree of a config's text to a `ModelConfig`: fields, types, doubles, groups, and where everything is.

The rules are those of C++ protobuf's `TextFormat::Parser` with its default settings, as Triton uses it. A field has "been given" when protobuf says so: for a
singular scalar of proto3 that is a value other than zero, except in map entries and in groups of alternatives, which always know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tritongen.modelconfig.binding_scalars import TYPE, ScalarBinder, show
from tritongen.modelconfig.fields import FieldTable, Kind, MessageTable
from tritongen.modelconfig.suggestions import Meant, example, meant_field
from tritongen.sources.pbtxt_tree import Edit, Field, Items, Message, Scalar, Value

Path = tuple[str | int, ...]

COLON, UNKNOWN, LEVEL, DOUBLE, GROUP, MISSING, PARAMETER, STRAY = "TG202", "TG208", "TG209", "TG213", "TG214", "TG215", "TG216", "TG203"
_SWITCHES = {"ModelResponseCache": "enable: true", "ModelTransactionPolicy": "decoupled: true", "PinnedMemoryBuffer": "enable: true"}


class Place(NamedTuple):
    """Where a field is: the offsets of its name and of its value."""

    name: int
    value: int


class _Level(NamedTuple):
    message: Any
    table: MessageTable
    path: Path


class Binder:
    """Fills a message from fields; `findings` of `scalars` and `places` grow with every call."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.scalars = ScalarBinder(text)
        self.find = self.scalars.find
        self.places: dict[Path, Place] = {}
        self._levels: list[_Level] = []
        self._moved: list[tuple[_Level, Field, tuple[str, ...]]] = []

    def bind(self, message: Any, table: MessageTable, fields: list[Field]) -> None:
        """Fills the outermost message."""
        self._fill(message, table, fields, ())
        for level, field, down in self._moved:
            self._place_moved(level, field, down)

    def _fill(self, message: Any, table: MessageTable, fields: list[Field], path: Path) -> None:
        self._levels.append(_Level(message, table, path))
        given: dict[str, Field] = {}
        for node in fields:
            field = table.fields.get(node.name) or self._unknown(node, fields)
            if field is None:
                continue
            if not field.repeated and self._is_double(field, node, table, given):
                continue
            if node.value is None:
                self._without_value(field, node)
            elif field.is_map:
                for entry in self._messages(field, node, node.value):
                    self._entry(message, field, node, entry, path)
            elif field.kind is Kind.MESSAGE:
                self._submessage(message, field, node, path)
            else:
                self._scalar(message, field, node, path)
            if not field.repeated and self._was_given(message, field):
                given[field.oneof or field.name] = node
        self._levels.pop()

    def _was_given(self, message: Any, field: FieldTable) -> bool:
        if field.kind is Kind.MESSAGE or field.oneof:
            return bool(message.HasField(field.name))
        value = getattr(message, field.name)
        # A float field counts as given by its bits, and those of minus zero are not zero.
        return bool(value) or (field.kind is Kind.FLOAT and str(value) == "-0.0")

    def _is_double(self, field: FieldTable, node: Field, table: MessageTable, given: dict[str, Field]) -> bool:
        before = given.get(field.oneof or field.name)
        if before is None:
            return False
        where = self._line(before.start)
        if field.oneof and table.fields.get(before.name, field).name != field.name:
            hint = f"only one of {', '.join(name for name, other in table.fields.items() if other.oneof == field.oneof)} may be given: remove one"
            self.find(GROUP, node.start, f"'{field.name}' cannot stand beside '{before.name}' in {where}", hint)
            return True
        same = _same_scalar(before.value, node.value, self.text)
        edits = (Edit(node.start, node.value.end, ""),) if same and node.value is not None else ()
        hint = "remove one of them" + ("; both say the same" if same else "")
        self.find(DOUBLE, node.start, f"'{field.name}' is given twice, here and in {where}, and may be given once", hint, *edits)
        return True

    def _without_value(self, field: FieldTable, node: Field) -> None:
        self.find(MISSING, node.start, f"'{field.name}' has no value", f"write such as {_written(field)}")

    def _scalar(self, message: Any, field: FieldTable, node: Field, path: Path) -> None:
        value = node.value
        if not node.colon:
            hint = f"write {field.name}: and then the value"
            if isinstance(value, Items):
                self.find(COLON, node.end, f"a colon is missing behind '{field.name}'", hint, Edit(node.end, node.end, ":"))
            else:
                self._message_for_scalar(field, node, value)
                return
        if field.repeated:
            target = getattr(message, field.name)
            for item in value.items if isinstance(value, Items) else (value,):
                if not isinstance(item, Scalar):
                    self._message_for_scalar(field, node, item)
                elif (read := self.scalars.read(field, item)) is not None:
                    self.places[(*path, field.name, len(target))] = Place(node.start, item.start)
                    target.append(read)
            self.places.setdefault((*path, field.name), Place(node.start, node.start))
            return
        if isinstance(value, Items):
            self.find(TYPE, value.start, f"'{field.name}' takes one value, and a list is given", f"write such as {_written(field)}")
            value = value.items[0] if len(value.items) == 1 else None
        if isinstance(value, Message):
            self._message_for_scalar(field, node, value)
        elif isinstance(value, Scalar):
            self.places[(*path, field.name)] = Place(node.start, value.start)
            if (read := self.scalars.read(field, value)) is not None:
                setattr(message, field.name, read)

    def _message_for_scalar(self, field: FieldTable, node: Field, value: Value | None) -> None:
        start = value.start if value is not None else node.start
        self.find(TYPE, start, f"'{field.name}' is no message, and braces are given", f"write such as {_written(field)}")

    def _submessage(self, message: Any, field: FieldTable, node: Field, path: Path) -> None:
        assert field.message is not None
        for item in self._messages(field, node, node.value):
            if field.repeated:
                target = getattr(message, field.name)
                item_path: Path = (*path, field.name, len(target))
                self.places.setdefault((*path, field.name), Place(node.start, node.start))
                self.places[item_path] = Place(node.start, item.start if isinstance(node.value, Items) else node.start)
                child = target.add()
            else:
                item_path = (*path, field.name)
                self.places[item_path] = Place(node.start, node.start)
                child = getattr(message, field.name)
                child.SetInParent()
            self._fill(child, field.message, item.fields, item_path)

    def _messages(self, field: FieldTable, node: Field, value: Value | None) -> list[Message]:
        """The messages that a field's value holds; anything else in it is noted."""
        if isinstance(value, Message):
            return [value]
        if isinstance(value, Items):
            messages = [item for item in value.items if isinstance(item, Message)]
            for item in value.items:
                if isinstance(item, Scalar):
                    self._scalar_for_message(field, item)
                    break
            if not field.repeated:
                self.find(TYPE, value.start, f"'{field.name}' takes one message, and a list is given", f"write {field.name} {{ ... }}")
                return messages[:1]
            return messages
        if isinstance(value, Scalar):
            return self._scalar_for_message(field, value)
        return []

    def _scalar_for_message(self, field: FieldTable, scalar: Scalar) -> list[Message]:
        """Notes a plain value where braces are due; returns the message that was meant, if that is clear."""
        if scalar.kind == "template":
            return []
        assert field.message is not None
        written = show(self.text[scalar.start : scalar.end])
        inner = _SWITCHES.get(field.message.name, "")
        choices = scalar.content if scalar.content in field.message.fields else ""
        hint = f"write {field.name} {{ {choices + ' { }' if choices else inner or '...'} }}"
        if field.is_map:
            hint = f'write {field.name} {{ key: "..." value: {_map_value(field)} }}'
        self.find(TYPE, scalar.start, f"'{field.name}' needs braces, and {written} is given", hint)
        if choices and field.message.fields[choices].kind is Kind.MESSAGE:
            return [Message(scalar.start, scalar.end, [Field(choices, scalar.start, scalar.end, False, Message(scalar.start, scalar.end, []))])]
        if scalar.content in ("true", "True") and not field.repeated:
            name = inner.split(":")[0]
            fields = [Field(name, scalar.start, scalar.end, True, scalar)] if name else []
            return [Message(scalar.start, scalar.end, fields)]
        return []

    def _entry(self, message: Any, field: FieldTable, node: Field, entry: Message, path: Path) -> None:
        """One entry of a map, whose key and value may come in either order or be missing; a later entry of the same key replaces an earlier one."""
        assert field.message is not None
        key_field, value_field = field.message.fields["key"], field.message.fields["value"]
        given: dict[str, Field] = {}
        loose: list[Field] = []
        for part in entry.fields:
            known = field.message.fields.get(part.name)
            if known is None and (meant := meant_field(part.name, [field.message])) is not None and meant.sure:
                self._misspelled(part, field.message, meant)
                known = meant.field
            if known is None:
                loose.append(part)
            elif known.name in given:
                self._is_double(known, part, field.message, given)
            else:
                given[known.name] = part
        target = getattr(message, field.name)
        map_path = (*path, field.name)
        self.places.setdefault(map_path, Place(node.start, node.start))
        for part in loose:
            self._loose_entry(target, field, part, map_path)
        if loose and not given:
            return
        key = self._entry_scalar(key_field, given.get("key"))
        value_node = given.get("value")
        if key is None:
            key = "" if key_field.kind is Kind.STRING else 0
        key_node = given.get("key")
        start = key_node.value.start if key_node is not None and key_node.value is not None else entry.start
        self._set_entry(target, value_field, key, value_node, (*map_path, key), Place(node.start, start))

    def _set_entry(self, target: Any, field: FieldTable, key: Any, node: Field | None, path: Path, place: Place) -> None:
        self.places[path] = place
        if field.kind is not Kind.MESSAGE:
            value = self._entry_scalar(field, node)
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
            self._without_value(field, node)
            return
        if isinstance(node.value, Scalar) and field.message.name == "ModelParameter":
            if node.value.kind != "template":
                self._bare_parameter(child, field.message.fields["string_value"], node.value, path)
            return
        for item in self._messages(field, node, node.value)[:1]:
            self._fill(child, field.message, item.fields, path)

    def _bare_parameter(self, child: Any, field: FieldTable, scalar: Scalar, path: Path) -> None:
        """`value: "x"` where a parameter of the model needs `value: { string_value: "x" }`."""
        written = self.text[scalar.start : scalar.end]
        quoted = written if scalar.quoted else f'"{written}"'
        message = "a model's parameter needs its value in braces"
        edit = Edit(scalar.start, scalar.end, f"{{ string_value: {quoted} }}")
        self.find(PARAMETER, scalar.start, message, f"write value: {{ string_value: {quoted} }}; only parameters of accelerators and agents are plain", edit)
        self.places[(*path, field.name)] = Place(scalar.start, scalar.start)
        silent = ScalarBinder(self.text)
        value = silent.read(field, scalar)
        if scalar.quoted:
            self.scalars.findings.extend(silent.findings)
        setattr(child, field.name, value)

    def _entry_scalar(self, field: FieldTable, node: Field | None) -> Any:
        """The key, or a plain value, of a map's entry."""
        if node is None:
            return None
        value = node.value
        if value is None:
            self._without_value(field, node)
            return None
        if isinstance(value, Items):
            self.find(TYPE, value.start, f"'{field.name}' takes one value, and a list is given", f"write such as {_written(field)}")
            return None
        if isinstance(value, Message):
            inner = value.fields[0] if len(value.fields) == 1 else None
            if field.name == "value" and inner is not None and inner.name == "string_value" and isinstance(inner.value, Scalar):
                written = self.text[inner.value.start : inner.value.end]
                message = "the value of this map is plain text, and { string_value: ... } is given"
                hint = f"write value: {written}; only parameters of the model itself have string_value"
                start = value.start if node.colon else node.end
                edits = (Edit(start, value.end, written if node.colon else f": {written}"),)
                self.find(PARAMETER, value.start, message, hint, *edits)
                return self.scalars.read(field, inner.value)
            self._message_for_scalar(field, node, value)
            return None
        return self.scalars.read(field, value)

    def _loose_entry(self, target: Any, field: FieldTable, part: Field, path: Path) -> None:
        """`parameters { threads: "4" }`: the key is written as if it were a field."""
        assert field.message is not None
        written = self.text[part.value.start : part.value.end] if isinstance(part.value, Scalar) else '"..."'
        value = written if part.value is None or not isinstance(part.value, Scalar) or part.value.quoted else f'"{written}"'
        plain = field.message.fields["value"].kind is not Kind.MESSAGE
        shape = f"value: {value}" if plain else f"value: {{ string_value: {value} }}" if field.message.fields["value"].message is not None else "value: ..."
        message = f"'{field.name}' is a map: an entry has a key and a value, and no field '{part.name}'"
        self.find(UNKNOWN, part.start, message, f'write {field.name} {{ key: "{part.name}" {shape} }}')
        if isinstance(part.value, Scalar) and part.value.quoted and field.message.fields["key"].kind is Kind.STRING:
            self.places[(*path, part.name)] = Place(part.start, part.start)
            if plain:
                target[part.name] = self.scalars.read(field.message.fields["value"], part.value)
            elif field.name == "parameters":
                target[part.name].string_value = self.scalars.read(field.message.fields["value"], part.value) or ""

    def _unknown(self, node: Field, siblings: Sequence[Field]) -> FieldTable | None:
        """A name that the message has no field for: notes it, and returns the field that was meant where it is one of the same message."""
        level = self._levels[-1]
        tables = [outer.table for outer in self._levels]
        meant = meant_field(node.name, tables, frozenset(sibling.name for sibling in siblings))
        if node.value is None and not node.colon and (meant is None or meant.up or meant.down):
            self.find(STRAY, node.start, f"{show(node.name)} means nothing here", "a config holds lines such as name: value; comments start with #")
            return None
        owner = _owner(level)
        if meant is None:
            self.find(UNKNOWN, node.start, f"{owner} has no field {show(node.name)}", f"its fields are {', '.join(level.table.fields)}")
            return None
        if not meant.up and not meant.down:
            self._misspelled(node, level.table, meant, owner)
            return meant.field
        if meant.up:
            outer = self._levels[-1 - meant.up]
            hint = f"it belongs into {_owner(outer)}: move it out of {owner}"
            self._moved.append((outer, node, ()))
        else:
            hint = f"it belongs into {_nested(meant.down, meant.field)}"
            self._moved.append((level, node, meant.down))
        self.find(LEVEL, node.start, f"{owner} has no field {show(node.name)}", hint)
        return None

    def _misspelled(self, node: Field, table: MessageTable, meant: Meant, owner: str = "") -> None:
        edits = (Edit(node.start, node.end, meant.field.name),) if meant.sure else ()
        self.find(UNKNOWN, node.start, f"{owner or 'a map entry'} has no field {show(node.name)}", f"did you mean '{meant.field.name}'?", *edits)

    def _place_moved(self, level: _Level, node: Field, down: tuple[str, ...]) -> None:
        """Puts a field where it belongs, as far as that is one place and nothing is there yet."""
        message, table, path = level
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
        if not field.repeated and self._was_given(message, field):
            return
        count = len(self.scalars.findings)
        self._fill(message, table, [node], path)
        del self.scalars.findings[count:]

    def _line(self, offset: int) -> str:
        return f"line {self.text.count(chr(10), 0, offset) + 1}"


def _owner(level: _Level) -> str:
    names = [part for part in level.path if isinstance(part, str)]
    return f"'{names[-1]}'" if names else "the config"


def _nested(down: tuple[str, ...], field: FieldTable) -> str:
    opening = " { ".join(down)
    return f"{opening} {{ {_written(field)}{' }' * len(down)}"


def _written(field: FieldTable) -> str:
    """The field with an example of its value."""
    if field.kind is Kind.MESSAGE:
        return f"{field.name} {{ ... }}"
    value = example(field)
    return f"{field.name}: [ {value} ]" if field.repeated else f"{field.name}: {value}"


def _map_value(field: FieldTable) -> str:
    assert field.message is not None
    value = field.message.fields["value"]
    if value.kind is not Kind.MESSAGE:
        return example(value)
    return '{ string_value: "..." }' if value.message is not None and value.message.name == "ModelParameter" else "{ ... }"


def _same_scalar(one: Value | None, other: Value | None, text: str) -> bool:
    return isinstance(one, Scalar) and isinstance(other, Scalar) and text[one.start : one.end] == text[other.start : other.end]
