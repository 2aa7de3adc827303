"""What every part of the spec is made of: the strict base class, the declaration of a key, and the schema of short forms.

A rule between two keys is a validator of the *later* key, which sees the earlier ones that were fine: it runs even where an unrelated key is wrong, and never
on top of a value that was already reported. A key that is only without effect in its combination is no fault: the compile stage says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Strict(BaseModel):
    """Base of all parts of a spec: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def setting(text: str, *, default: Any = None, sets: str = "", why: str = "", **more: Any) -> Any:
    """A key of the spec: the pydantic `Field` with what its reference page says.

    Args:
        text: what it does, with its unit and what happens without it.
        default: its value where it is left out; `...` where it must be there.
        sets: the field of Triton's ModelConfig that it becomes, or what else it changes.
        why: when one would set it.
        more: further arguments of `Field` (`alias`, `default_factory`, `min_length`).
    """
    value = {} if "default_factory" in more else {"default": default}
    extra: JsonDict = {key: said for key, said in (("x-triton", sets), ("x-why", why)) if said}
    return Field(description=f"{text} Sets {sets}." if sets else text, json_schema_extra=extra or None, **value, **more)


@dataclass(frozen=True)
class Forms:
    """The JSON Schema of a field that has short forms: `widen` makes it out of the schema of the full form."""

    widen: Callable[[JsonSchemaValue], list[JsonSchemaValue]]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": self.widen(handler(schema))}


def listed(items: Sequence[object]) -> str:
    """`4`, `4 and 8`, `4, 8 and 16`."""
    texts = [str(item) for item in items]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
