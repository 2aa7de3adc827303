"""The JSON Schema of a spec, for editors: `# yaml-language-server: $schema=spec.schema.json` as the first line of a spec.

It is derived from the models, so that it describes every key as they do, and accepts the short forms that the loader accepts.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from tritongen.spec.models import Spec
from tritongen.spec.values import SAMPLE_SCHEMA

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _SpecSchema(GenerateJsonSchema):
    """Keys without a value are errors in a spec, so an optional key is one that may be left out, never null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        result = super().default_schema(schema)
        if result.get("default", ...) in (None, ()):
            result.pop("default", None)
        return result

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """Everything in the order in which it is declared, which is the order in which people read it."""
        return value

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Titles such as `Max Queue Delay` would only repeat the key."""
        return False


def spec_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of version 1 of the spec, as plain data ready for `json.dumps`."""
    schema = Spec.model_json_schema(mode="validation", schema_generator=_SpecSchema)
    definitions = schema.pop("$defs") | {"SampleValue": SAMPLE_SCHEMA}
    definitions["ModelSpec"]["properties"]["samples"]["additionalProperties"] = {
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("SampleValue", "SampleFiles")]
    }
    return {"$schema": DIALECT, "title": "tritongen spec", **{key: value for key, value in schema.items() if key != "title"}, "$defs": definitions}
