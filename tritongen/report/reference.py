"""docs/spec.md: every key of a spec on one page. Knows the schema alone; a new key is described by its declaration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tritongen.sources.flow import yaml_flow
from tritongen.spec import spec_schema
from tritongen.spec.sections import DEFAULTS, Schema, Section, inner_mapping, sections
from tritongen.spec.units import DURATION_PATTERN, DURATION_UNITS, PERCENT_PATTERN, SIZE_PATTERN, SIZE_UNITS
from tritongen.spec.values import INT32_MAX

_HEAD = """\
# The spec

Every key of `spec.yaml`, generated from the models that read it (`make docs`). `tritongen schema` prints the same as a JSON Schema for your editor.

Durations and sizes are written with their unit (`2ms`, `4GiB`). A key that is left out has its default; `defaults` changes that for all models. What Triton can
do and has no key here goes into `config`, in the field names of Triton's ModelConfig.
"""
_SHARED = "The keys are those of a [model](#models) that are no model's own: {}."


def spec_page() -> str:
    """The text of docs/spec.md."""
    schema = spec_schema()
    every = sections(schema)
    lines = [_HEAD]
    for section in sorted(every, key=lambda section: section.path[:1] == DEFAULTS):
        lines += [*_section(section, schema["$defs"]), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(section: Section, definitions: Schema) -> Iterator[str]:
    yield f'## <a id="{section.anchor}"></a>{_title(section)}'
    yield ""
    if section.path:
        yield _prose(section.schema["description"])
        yield ""
    if (example := section.example()) is not None:
        yield from ("```yaml", *(f"{key}: {yaml_flow(item)}" for key, item in example.items()), "```", "")
    if section.path == DEFAULTS:
        yield _SHARED.format(", ".join(f"`{key}`" for key in section.keys))
        return
    yield "| key | value | sets | what it does, and why one would set it |"
    yield "|---|---|---|---|"
    for key, schema in section.keys.items():
        yield _row(key, schema, section, definitions)


def _title(section: Section) -> str:
    if not section.path:
        return "The whole file"
    between = {"": "", "list": "[]", "names": ".NAME", "numbers": ".NUMBER"}
    return f"`{'.'.join(key + between[wrapped] for key, wrapped in zip(section.path, section.wrap, strict=True))}`"


def _row(key: str, schema: Schema, section: Section, definitions: Schema) -> str:
    sets, why = schema.get("x-triton", ""), schema.get("x-why", "")
    text = schema["description"].removesuffix(f" Sets {sets}.")
    value = _value(schema, definitions)
    if inner_mapping(schema, definitions) is not None:
        value = f"[{value}](#{'-'.join((*section.path, key))})"
    if "default" in schema and isinstance(schema["default"], str | int | float):
        value += f"; default `{yaml_flow(schema['default'])}`"
    elif key in section.schema.get("required", ()):
        value += "; required"
    return f"| `{key}` | {_cell(value)} | {_cell(_prose(sets))} | {_cell(_prose(text))} **Why:** {_cell(_prose(why))}. |"


def _value(schema: Schema, definitions: Schema) -> str:
    """What a key takes, in words."""
    if "$ref" in schema:
        definition = definitions[schema["$ref"].rpartition("/")[2]]
        return "mapping" if "properties" in definition else str(definition["description"])
    for keyword in ("anyOf", "allOf"):
        if keyword in schema:
            return " or ".join(dict.fromkeys(_value(option, definitions) for option in schema[keyword]))
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if "const" in schema:
        return f"`{yaml_flow(schema['const'])}`"
    if schema.get("type") == "array":
        return f"list of {_each(schema['items'], definitions)}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"mapping of names to {_each(values, definitions)}" if isinstance(values, Mapping) and values else "mapping"
    return _scalar(schema)


def _each(schema: Schema, definitions: Schema) -> str:
    """What each item of a list or mapping is; several kinds in brackets, since they are not what may stand in the list's own place."""
    values = _many(_value(schema, definitions))
    return f"({values})" if " or " in values else values


def _many(value: str) -> str:
    """The same in the plural."""
    return re.sub(r"(?<!a )\b(whole number|mapping|list|text|size|duration|percentage)\b(?! number)", r"\1s", value)


def _scalar(schema: Schema) -> str:
    kind, pattern = schema.get("type"), schema.get("pattern")
    if kind == "string":
        quantity = {DURATION_PATTERN: ("duration", DURATION_UNITS), SIZE_PATTERN: ("size", SIZE_UNITS), PERCENT_PATTERN: ("percentage", "%")}.get(str(pattern))
        return f"{quantity[0]} ({', '.join(quantity[1])})" if quantity else "text"
    if kind == "boolean":
        return "`true`, `false`"
    if kind not in ("integer", "number"):
        return "any value"
    least, above, most = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    bounds = [f"at least {least}"] if least is not None else [f"more than {above}"] if above is not None else []
    bounds += [f"at most {most}"] if most is not None and most < INT32_MAX else []
    return f"{'whole number' if kind == 'integer' else 'number'}{' of ' if bounds else ''}{' and '.join(bounds)}"


def _prose(text: str) -> str:
    """Docstrings are wrapped lines; angle brackets would be read as HTML."""
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
