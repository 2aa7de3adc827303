"""What can be wrong with the entries of a map, and with the two shapes that parameters have in a config.

`parameters` of a model hold messages (`value: { string_value: "1" }`); those of an accelerator or an agent hold plain text (`value: "1"`). Each is often
written as the other.
"""

from __future__ import annotations

from typing import Any

from tritongen.modelconfig.binding_notes import PARAMETER, UNKNOWN, FieldNotes, Path, Place
from tritongen.modelconfig.binding_scalars import ScalarBinder
from tritongen.modelconfig.fields import FieldTable, Kind
from tritongen.sources.pbtxt_tokens import TEMPLATE
from tritongen.sources.pbtxt_tree import Edit, Field, Items, Message, Scalar


class MapNotes(FieldNotes):
    """Adds to the findings about fields those about entries of maps."""

    def entry_scalar(self, field: FieldTable, node: Field | None) -> Any:
        """The key, or a plain value, of a map's entry; None where it has none."""
        if node is None:
            return None
        value = node.value
        if value is None:
            self.without_value(field, node)
            return None
        if isinstance(value, Items):
            self.settle_list(field, value)
            value = self.only_value(field, value)
            if value is None:
                return None
        if isinstance(value, Message):
            return self._wrapped(field, node, value)
        return self.scalars.read(field, value)

    def _wrapped(self, field: FieldTable, node: Field, value: Message) -> Any:
        """`value: { string_value: "x" }` where the map holds plain text."""
        inner = value.fields[0] if len(value.fields) == 1 else None
        if field.name != "value" or inner is None or inner.name != "string_value" or not isinstance(inner.value, Scalar):
            self.message_for_scalar(field, node, value)
            return None
        written = self.text[inner.value.start : inner.value.end]
        message = "the value of this map is plain text, and { string_value: ... } is given"
        hint = f"write value: {written}; only parameters of the model itself have string_value"
        edit = Edit(value.start, value.end, written) if node.colon else Edit(node.end, value.end, f": {written}")
        self.find(PARAMETER, value.start, message, hint, edit)
        return self.scalars.read(field, inner.value)

    def bare_parameter(self, child: Any, field: FieldTable, scalar: Scalar, path: Path) -> None:
        """`value: "x"` where a parameter of the model needs `value: { string_value: "x" }`."""
        if scalar.kind == TEMPLATE:
            return
        written = self.text[scalar.start : scalar.end]
        quoted = written if scalar.quoted else f'"{written}"'
        hint = f"write value: {{ string_value: {quoted} }}; only parameters of accelerators and agents are plain"
        edit = Edit(scalar.start, scalar.end, f"{{ string_value: {quoted} }}")
        if scalar.braces is not None:
            self.settled.add(scalar.braces[0])
            edit = Edit(scalar.start, scalar.end, f"string_value: {quoted}")
        missing = "its value in braces" if scalar.braces is None else "the name string_value before its value"
        self.find(PARAMETER, scalar.start, f"a model's parameter needs {missing}", hint, edit)
        value_path: Path = (*path, field.name)
        self.places[value_path] = Place(scalar.start, scalar.start)
        silent = ScalarBinder(self.text)
        value = silent.read(field, scalar)
        if scalar.quoted:
            self.scalars.findings.extend(silent.findings)
        setattr(child, field.name, value)

    def loose_entry(self, target: Any, field: FieldTable, part: Field, path: Path) -> None:
        """`parameters { threads: "4" }`: the key is written as if it were a field."""
        assert field.message is not None
        value_field = field.message.fields["value"]
        scalar = part.value if isinstance(part.value, Scalar) else None
        written = self.text[scalar.start : scalar.end] if scalar is not None else "..."
        quoted = written if scalar is not None and scalar.quoted else f'"{written}"'
        is_parameter = value_field.message is not None and value_field.message.name == "ModelParameter"
        shape = quoted if value_field.kind is not Kind.MESSAGE else f"{{ string_value: {quoted} }}" if is_parameter else "{ ... }"
        message = f"'{field.name}' is a map: an entry has a key and a value, and no field '{part.name}'"
        self.find(UNKNOWN, part.start, message, f'write {field.name} {{ key: "{part.name}" value: {shape} }}')
        if scalar is None or not scalar.quoted or field.message.fields["key"].kind is not Kind.STRING:
            return
        entry_path: Path = (*path, part.name)
        self.places[entry_path] = Place(part.start, part.start)
        if is_parameter:
            assert value_field.message is not None
            target[part.name].string_value = self.scalars.read(value_field.message.fields["string_value"], scalar)
        elif value_field.kind is Kind.STRING:
            target[part.name] = self.scalars.read(value_field, scalar)
