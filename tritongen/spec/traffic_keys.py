"""The parsers of `traffic` as types of keys: a text of the command line, or a list of its parts, with the JSON Schema that accepts the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, core_schema

from tritongen.spec import traffic
from tritongen.spec.traffic import Promises, Step, TrafficError
from tritongen.spec.units import DURATION_PATTERN
from tritongen.spec.values import describe, problem


@dataclass(frozen=True)
class Texts:
    """A key whose value is a text of the command line; a list of its parts is the same.

    `parse` reads the text, `part` is the JSON Schema pattern of a part; `number`: a plain number is a part too.
    """

    parse: Callable[[str], Any]
    part: str
    example: str
    number: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        text: JsonSchemaValue = {"type": "string", "pattern": f"^{self.part}( *, *{self.part})*$"}
        item: JsonSchemaValue = {"type": "string", "pattern": f"^{self.part}$"}
        numbers = [{"type": "integer", "minimum": 1}] if self.number else []
        return {"anyOf": [*numbers, text, {"type": "array", "minItems": 1, "items": item}]}

    def _read(self, value: object) -> Any:
        parts = value if isinstance(value, list | tuple) else [value]
        wrong = next((part for part in parts if not isinstance(part, str) and not (self.number and type(part) is int)), None)
        if wrong is not None or not parts:
            found = describe(wrong) if wrong is not None else "an empty list"
            raise problem(f"expected a text, or a list of texts, got {found}", code="TG010", hint=f"write {self.example}")
        try:
            return self.parse(",".join(map(str, parts)))
        except TrafficError as error:
            raise problem(str(error), hint=error.hint) from error


class Measures:
    """A mapping of measures to what they must keep."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_read_promises)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "type": "object",
            "minProperties": 1,
            "properties": {"error_rate": {"anyOf": [{"const": 0}, {"type": "string", "pattern": f"^(?:{traffic.ERROR_RATE_PATTERN})$"}]}},
            "propertyNames": {"pattern": f"^{traffic.MEASURE_PATTERN}$"},
            "additionalProperties": {"type": "string", "pattern": DURATION_PATTERN},
        }


def _read_promises(value: object) -> Promises:
    if not isinstance(value, Mapping):
        raise problem(f"expected a mapping (measure: value), got {describe(value)}", code="TG010", hint="write slo: {p99: 20ms, error_rate: 0.1%}")
    if not value:
        raise problem("it promises nothing", code="TG009", hint="write slo: {p99: 20ms, error_rate: 0.1%}")
    found: dict[str, float] = {}
    problems = []
    for name, text in value.items():
        try:
            measure, limit = traffic.parse_promise(str(name), str(text))
        except TrafficError as error:
            problems.append(InitErrorDetails(type=problem(str(error), hint=error.hint), loc=(name,), input=text))
            continue
        if measure in found:
            problems.append(InitErrorDetails(type=problem(f"{measure} is there twice", code="TG015", hint="keep one of them"), loc=(name,), input=text))
        found[measure] = limit
    if problems:
        raise ValidationError.from_exception_data("slo", problems)
    return traffic.promises(found)


Steps = Annotated[tuple[Step, ...], Texts(traffic.parse_steps, traffic.STAGE_PATTERN, "stages: [100:30s, 100-400:1m]")]
BatchMix = Annotated[tuple[tuple[int, float], ...], Texts(traffic.parse_batch_mix, traffic.BATCH_PART_PATTERN, "batch_mix: [1:70%, 8:30%]", number=True)]
SizeMix = Annotated[
    tuple[tuple[tuple[int, ...], float], ...],
    Texts(traffic.parse_shape_mix, traffic.SHAPE_PART_PATTERN, "shape_mix: {x: [3x48x320:70%, 3x48x640:30%]}", number=True),
]
Arrivals = Annotated[tuple[str, str], Texts(traffic.parse_arrivals, traffic.ARRIVALS_PATTERN, "arrivals: poisson")]
SloMapping = Annotated[Promises, Measures()]
NUMBER_SCHEMA: JsonSchemaValue = {"type": "number", "exclusiveMinimum": 0, "maximum": int(traffic.MOST_RATE)}
Rate = Annotated[float, Field(gt=0, le=traffic.MOST_RATE, strict=True), WithJsonSchema(NUMBER_SCHEMA)]
"""Requests a second, and what is measured in proportion to others."""
