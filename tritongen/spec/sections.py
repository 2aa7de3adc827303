"""Which mappings and keys a spec has: read from the JSON Schema that editors use, so that a key that is declared is a key that is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritongen.spec.schema import spec_schema

Schema = Mapping[str, Any]

MODELS = ("models",)
DEFAULTS = ("defaults",)


@dataclass(frozen=True)
class Section:
    """A mapping of the spec.

    Attributes:
        path: the keys that lead to it; list positions and free names (of tensors, say) are left out.
        schema: its JSON Schema, with `properties`.
        wrap: for each key of `path`, what stands between it and the mapping: "" nothing, "list", "names" for free names, "numbers" for free numbers.
        beside: for each key of `path`, the keys that must stand beside it inside a model, with examples.
    """

    path: tuple[str, ...]
    schema: Schema
    wrap: tuple[str, ...] = ()
    beside: tuple[Mapping[str, Any], ...] = ()

    @property
    def keys(self) -> Mapping[str, Schema]:
        """The schema of each key: those that must be there first, else in the order in which they are declared."""
        required = self.schema.get("required", ())
        properties: Mapping[str, Schema] = self.schema["properties"]
        return {key: properties[key] for key in sorted(properties, key=lambda key: key not in required)}

    @property
    def anchor(self) -> str:
        """The name of its place on the page."""
        return "-".join(self.path) or "top"

    def example(self) -> dict[str, Any] | None:
        """The example that it declares, as the part of a spec that it would be: keys of a model for a mapping inside one, else keys of the spec itself.

        None where none is declared.
        """
        if "examples" not in self.schema:
            return None
        value: Any = self.schema["examples"][0]
        steps = list(zip(self.path, self.wrap, self.beside, strict=True))
        for key, between, beside in reversed(steps[1:] if self.path[:1] == MODELS else steps):
            inner = [value] if between == "list" else {"x": value} if between == "names" else {"1": value} if between == "numbers" else value
            value = {**beside, key: inner}
        return dict(value)


def sections(schema: Schema | None = None) -> tuple[Section, ...]:
    """Every mapping of a spec, each once, outer ones first."""
    whole = spec_schema() if schema is None else schema
    found: dict[tuple[str, ...], Section] = {(): Section((), whole)}
    _walk(found[()], whole["$defs"], found)
    return tuple(found.values())


def _walk(section: Section, definitions: Schema, found: dict[tuple[str, ...], Section]) -> None:
    for key, schema in section.keys.items():
        target = inner_mapping(schema, definitions)
        path = (*section.path, key)
        # What `defaults` holds is described with the models.
        if target is None or section.path == DEFAULTS:
            continue
        definition, between = target
        needed = [name for name in section.schema.get("required", ()) if name != key] if len(section.path) > 1 else []
        beside = {name: section.schema["examples"][0][name] for name in needed}
        found[path] = Section(path, definitions[definition], (*section.wrap, between), (*section.beside, beside))
        _walk(found[path], definitions, found)


def inner_mapping(schema: Schema, definitions: Schema, between: str = "") -> tuple[str, str] | None:
    """The definition of the mapping that a key's value is, or is made of, and what stands between: short forms are looked past."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return (name, between) if "properties" in definitions[name] else None
    parts = [(option, between) for keyword in ("anyOf", "allOf") for option in schema.get(keyword, ())]
    if "items" in schema:
        parts.append((schema["items"], "list"))
    if isinstance(schema.get("additionalProperties"), Mapping):
        parts.append((schema["additionalProperties"], "numbers" if "propertyNames" in schema else "names"))
    return next((found for part, wrapped in parts if (found := inner_mapping(part, definitions, wrapped))), None)
