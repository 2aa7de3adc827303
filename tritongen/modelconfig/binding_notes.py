"""What can be wrong with a field of a config, and what was probably meant: the words of the findings, and the values that are understood all the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tritongen.modelconfig.binding_scalars import NUMBER, QUOTES, TYPE, ScalarBinder, show
from tritongen.modelconfig.fields import FieldTable, Kind, MessageTable
from tritongen.modelconfig.suggestions import Meant, example, meant_field
from tritongen.sources.pbtxt_tokens import FLOAT, INT, TEMPLATE
from tritongen.sources.pbtxt_tree import Edit, Field, Items, Message, Scalar, Value
from tritongen.sources.text import SourceText

Path = tuple[str | int, ...]

COLON, STRAY, UNKNOWN, LEVEL, DOUBLE, GROUP, MISSING, PARAMETER = "TG202", "TG203", "TG208", "TG209", "TG213", "TG214", "TG215", "TG216"

_SEPARATOR = re.compile(r"\s*[,;]")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{0,2}(?: [0-9]{3})+")
_COMMA = re.compile(r"[0-9]+,[0-9]+")
_PLACE = re.compile(
    r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\$\([A-Za-z_]\w*\)|\{%[^{}]*%\}|<%[^<>]*%>|\A(?:\$[A-Za-z_]\w*|<[A-Za-z_][\w -]*>|%[A-Za-z_]\w*%|@[A-Za-z_]\w*@)\Z"
)
_LONGEST_ECHO = 80
_WRAPPERS = ("modelconfig", "config", "model")


class Place(NamedTuple):
    """Where a field is: the offsets of its name and of its value."""

    name: int
    value: int


class Level(NamedTuple):
    """A message that is being filled, its type, its path from the outermost one, and what people call it."""

    message: Any
    table: MessageTable
    path: Path
    owner: str


class FieldNotes:
    """Collects findings about fields; `levels` are the messages being filled, from the outside in, `moved` the fields found at the wrong
    level. `places` tells where fields are, and `lists` where the items of lists of plain values are. `settled` holds the starts of those faults of the text's
    form that a finding made here says better, since it knows the field. `unfilled` are strings that hold a place of a template, `replaced` entries of
    maps whose key was given before: no mistakes of the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.scalars = ScalarBinder(text)
        self.find = self.scalars.find
        self.levels: list[Level] = []
        self.is_guess = False
        self.moved: list[tuple[Level, Field, tuple[str, ...]]] = []
        self.settled: set[int] = set()
        self.unfilled: list[tuple[int, str]] = []
        self.replaced: list[tuple[int, Path]] = []
        self.places: dict[Path, Place] = {}
        self.lists: dict[Path, list[int]] = {}
        self._lines = SourceText("", text)
        self._siblings: tuple[Sequence[Field], frozenset[str]] = ((), frozenset())

    def was_given(self, message: Any, field: FieldTable) -> bool:
        """True where protobuf would say that a singular field is set."""
        if field.kind is Kind.MESSAGE or field.oneof:
            return bool(message.HasField(field.name))
        value = getattr(message, field.name)
        # A float field counts as given by its bits, and those of minus zero are not zero.
        return bool(value) or (field.kind is Kind.FLOAT and str(value) == "-0.0")

    def is_double(self, field: FieldTable, node: Field, table: MessageTable, given: dict[str, Field]) -> bool:
        """True, and noted, where a singular field or another one of its alternatives is among those `given` before."""
        before = given.get(field.oneof or field.name)
        if before is None:
            return False
        where = f"line {self._lines.line_index(before.start) + 1}"
        if field.oneof and table.fields.get(before.name, field).name != field.name:
            hint = f"only one of {', '.join(name for name, other in table.fields.items() if other.oneof == field.oneof)} may be given: remove one"
            self.find(GROUP, node.start, f"'{field.name}' cannot stand beside '{before.name}' in {where}", hint)
            return True
        same = _same_scalar(before.value, node.value, self.text)
        edits: tuple[Edit, ...] = ()
        if same and node.value is not None and node.name == field.name and not node.quoted:
            separator = _SEPARATOR.match(self.text, node.value.end)
            edits = (Edit(node.start, separator.end() if separator else node.value.end, ""),)
        hint = "remove one of them" + ("; both say the same" if same else "")
        self.find(DOUBLE, node.start, f"'{field.name}' is given twice, here and in {where}, and may be given once", hint, *edits)
        return True

    def check_name(self, node: Field, field: FieldTable) -> None:
        """Notes a name in quotes, and one without the colon that a plain value needs."""
        if node.quoted:
            edits = (Edit(node.start, node.start + 1, ""), Edit(node.end - 1, node.end, ""))
            self.find(QUOTES, node.start, f"the field's name '{field.name}' is in quotes", f"write {field.name} without quotes", *edits)
        if not node.colon and field.kind is not Kind.MESSAGE and isinstance(node.value, Scalar | Items):
            hint = f"write {field.name}: and then the value"
            self.find(COLON, node.end, f"a colon is missing behind '{field.name}'", hint, Edit(node.end, node.end, ":"))

    def settle_list(self, field: FieldTable | None, value: Value | None) -> None:
        """Takes back the brackets that values without any were given, where the field takes no list, or has to be moved or renamed first."""
        is_list = field is not None and field.repeated and field.kind is not Kind.MESSAGE
        if isinstance(value, Items) and value.bare and not is_list:
            self.settled.add(value.start)

    def only_value(self, field: FieldTable, value: Items) -> Scalar | Message | None:
        """Notes a list where one value is due; returns the value that was meant, if that is clear."""
        only = value.items[0] if len(value.items) == 1 else None
        if only is not None:
            edits = (Edit(value.start, value.end, self.text[only.start : only.end]),) if value.end > value.start else ()
            self.find(TYPE, value.start, f"'{field.name}' takes one value, and a list is given", f"write {self.as_written(field, only)}", *edits)
            return only
        grouped = self._grouped_number(field, value)
        if grouped:
            written = show(self.text[value.start : value.end])
            message = f"'{field.name}' takes one number, and {written} is read as several: digits are not grouped, and a fraction begins with a point"
            self.find(NUMBER, value.start, message, f"write {grouped}")
            return Scalar(INT if field.kind is Kind.INT else FLOAT, value.start, value.end, grouped)
        hint = f"write one of them, such as {self.as_written(field, value.items[0])}" if value.items else f"write such as {written_field(field)}"
        self.find(TYPE, value.start, f"'{field.name}' takes one value, and a list is given", hint)
        return None

    def _grouped_number(self, field: FieldTable, value: Items) -> str:
        """The number that `1,000`, `1 000` or `0,5` was meant to be; empty where it is none."""
        written = self.text[value.start : value.end].strip("[]")
        if field.kind is Kind.INT and _GROUPED.fullmatch(written):
            return re.sub("[, ]", "", written)
        return written.replace(",", ".") if field.kind is Kind.FLOAT and _COMMA.fullmatch(written) else ""

    def as_written(self, field: FieldTable, value: Value | None) -> str:
        """The field with the value that the text gives it, or with an example where that is long, or of another kind."""
        if isinstance(value, Items) and value.items and not field.repeated:
            grouped = self._grouped_number(field, value)
            return f"{field.name}: {grouped}" if grouped else self.as_written(field, value.items[0])
        text = self.text[value.start : value.end] if value is not None else ""
        holds_messages = isinstance(value, Message) or (isinstance(value, Items) and all(isinstance(item, Message) for item in value.items))
        if value is None or holds_messages != (field.kind is Kind.MESSAGE) or (isinstance(value, Scalar) and value.kind == TEMPLATE):
            return written_field(field)
        if len(text) > _LONGEST_ECHO or "\n" in text:
            return f"{field.name} [ ... ]" if isinstance(value, Items) and holds_messages else written_field(field)
        if holds_messages:
            return f"{field.name} {text}"
        return f"{field.name}: [ {text} ]" if isinstance(value, Items) and value.bare else f"{field.name}: {text}"

    def note_place(self, content: str, start: int) -> None:
        """Notes a place of a template in a string, which protobuf does not know from any other text."""
        if _PLACE.search(content) is not None:
            self.unfilled.append((start, content))

    def without_value(self, field: FieldTable, node: Field) -> None:
        """Notes a name with nothing behind it."""
        self.find(MISSING, node.start, f"'{field.name}' has no value", f"write such as {written_field(field)}")

    def message_for_scalar(self, field: FieldTable, node: Field, value: Value | None) -> None:
        """Notes braces where a plain value is due."""
        start = value.start if value is not None else node.start
        self.find(TYPE, start, f"'{field.name}' is no message, and braces are given", f"write such as {written_field(field)}")

    def messages(self, field: FieldTable, node: Field, value: Value | None) -> list[Message]:
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
        if scalar.kind == TEMPLATE:
            return []
        assert field.message is not None
        written = show(self.text[scalar.start : scalar.end])
        choice = field.message.fields.get(scalar.content)
        only = next(iter(field.message.fields.values())) if len(field.message.fields) == 1 else None
        if field.is_map:
            hint = f'write {field.name} {{ key: "..." value: {_map_value(field)} }}'
        elif choice is not None and choice.kind is Kind.MESSAGE:
            hint = f"write {field.name} {{ {choice.name} {{ }} }}"
        elif only is not None and only.kind is not Kind.MESSAGE:
            hint = f"write {field.name} {{ {only.name}: {self.text[scalar.start : scalar.end]} }}"
        else:
            hint = f"write {field.name} {{ }}" if scalar.content.casefold() == "true" else f"write {field.name} {{ ... }}"
        message = f"'{field.name}' needs braces, and {written} is given"
        edits: tuple[Edit, ...] = ()
        if scalar.braces is not None:
            self.settled.add(scalar.braces[0])
            message = f"the braces of '{field.name}' hold fields, and {written} is the value of none"
            if only is not None and only.kind is not Kind.MESSAGE and not field.is_map:
                edits = (Edit(scalar.start, scalar.start, f"{only.name}: "),)
        self.find(TYPE, scalar.start, message, hint, *edits)
        if field.is_map or field.repeated:
            return []
        inside: list[Field] = []
        if choice is not None and choice.kind is Kind.MESSAGE:
            inside = [Field(choice.name, scalar.start, scalar.end, True, Message(scalar.start, scalar.end, []))]
        elif only is not None and only.kind is not Kind.MESSAGE:
            inside = [Field(only.name, scalar.start, scalar.end, True, scalar)]
        elif scalar.content.casefold() != "true":
            return []
        return [Message(scalar.start, scalar.end, inside)]

    def unknown(self, node: Field, siblings: Sequence[Field]) -> FieldTable | None:
        """A name that the message has no field for: notes it, and returns the field that was meant where it is one of the same message."""
        level = self.levels[-1]
        tables = [outer.table for outer in self.levels]
        meant = meant_field(node.name, tables, self._names(siblings))
        if not node.colon and (node.value is None or isinstance(node.value, Scalar)) and (meant is None or not meant.sure):
            words = self.text[node.start : node.end if node.value is None else node.value.end]
            self.find(STRAY, node.start, f"{show(words)} means nothing here", "a config holds lines such as name: value; comments start with #")
            return None
        owner = level.owner
        if meant is None:
            first, _, rest = node.name.partition(".")
            if rest and first in level.table.fields:
                hint = f"write one message in the other: {' { '.join(node.name.split('.'))}: ...{' }' * node.name.count('.')}"
                self.find(UNKNOWN, node.start, f"{show(node.name)} is a path, and no field's name", hint)
                return None
            self.find(UNKNOWN, node.start, f"{owner} has no field {show(node.name)}", f"its fields are {', '.join(level.table.fields)}")
            return None
        if not meant.up and not meant.down:
            self.misspelled(node, level.table, meant, owner)
            self.is_guess = not meant.sure
            return meant.field
        if meant.up:
            outer = self.levels[-1 - meant.up]
            hint = f"it belongs into {outer.owner}: move it out of {owner}"
            self.moved.append((outer, node, ()))
        else:
            hint = f"it belongs into {' { '.join(meant.down)} {{ {self.as_written(meant.field, node.value)}{' }' * len(meant.down)}"
            self.moved.append((level, node, meant.down))
        self.find(LEVEL, node.start, f"{owner} has no field {show(node.name)}", hint)
        return None

    def unwrapped(self, fields: list[Field], table: MessageTable) -> list[Field]:
        """The fields of the config, without a message's name and braces around them, as `model_config { ... }`; those are noted."""
        found: list[Field] = []
        for node in fields:
            inner = node.value.fields if isinstance(node.value, Message) and node.name not in table.fields else []
            if _plain_name(node.name) not in _WRAPPERS or not any(field.name in table.fields for field in inner):
                found.append(node)
                continue
            assert isinstance(node.value, Message)
            end = node.value.end
            edits = (Edit(node.start, node.value.start + 1, ""), Edit(end - 1, end, "")) if self.text[end - 1 : end] in ("}", ">") else ()
            message = f"the config stands in {show(node.name)} {{ ... }}, and the file itself is the config"
            self.find(UNKNOWN, node.start, message, f"remove '{self.text[node.start : node.value.start + 1]}' and its closing brace", *edits)
            found += inner
        return found

    def _names(self, siblings: Sequence[Field]) -> frozenset[str]:
        """The names among the fields of a message, which are asked for again and again where many are wrong."""
        if self._siblings[0] is not siblings:
            self._siblings = (siblings, frozenset(sibling.name for sibling in siblings))
        return self._siblings[1]

    def misspelled(self, node: Field, table: MessageTable, meant: Meant, owner: str = "") -> None:
        """Notes a field's name that is almost right."""
        fits = isinstance(node.value, Message | Items) if meant.field.kind is Kind.MESSAGE else isinstance(node.value, Scalar | Items)
        edits = (Edit(node.start, node.end, meant.field.name),) if meant.sure and fits else ()
        self.find(UNKNOWN, node.start, f"{owner or 'a map entry'} has no field {show(node.name)}", f"did you mean '{meant.field.name}'?", *edits)


def _plain_name(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def written_field(field: FieldTable) -> str:
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
