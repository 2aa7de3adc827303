"""Compose files as a container engine reads them: valid by the compose specification, parsed, variables filled in."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import yaml

_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<plain>[A-Za-z_]\w*)|(?P<wrong>))")


@functools.cache
def _validator() -> Any:
    """The compose specification, as check-jsonschema carries it."""
    schema = json.loads(importlib.resources.files("check_jsonschema.builtin_schemas.vendor").joinpath("compose-spec.json").read_text())
    return jsonschema.validators.validator_for(schema)(schema)


def faults(text: str) -> list[str]:
    """Where a compose file is not as the specification says."""
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in _validator().iter_errors(parsed(text))]


def parsed(text: str) -> dict[str, Any]:
    """The file as libyaml reads it, which the engine's own reader was made from."""
    return yaml.load(text, yaml.CSafeLoader)


def read(text: str, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The file with variables filled in, as `docker compose config` would show it. A variable that is not given and has no default is a fault."""
    return _filled(parsed(text), variables or {})


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    return _VARIABLE.sub(lambda match: _value(match, variables), value) if isinstance(value, str) else value


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str:
    if match["escaped"]:
        return "$"
    name = match["name"] or match["plain"]
    if name in variables:
        return variables[name]
    assert match["default"] is not None, f"{match.string!r} names a variable, or has a lone $"
    return match["default"]


def variables_of(text: str) -> set[str]:
    """The names of the variables that a file asks for."""
    return {match["name"] or match["plain"] for item in _texts(parsed(text)) for match in _VARIABLE.finditer(item) if not match["escaped"]}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
