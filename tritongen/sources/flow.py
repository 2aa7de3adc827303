"""Values as YAML on one line, for files and for messages that say what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping


def yaml_scalar(value: object) -> str:
    """A value in YAML's flow form. Plain words and quantities stay plain; quoting all the rest as JSON, a subset of YAML 1.2, is always right."""
    if isinstance(value, str) and (_QUANTITY.fullmatch(value) or _is_word(value)):
        return value
    return json.dumps(value, ensure_ascii=False)


def yaml_flow(value: object) -> str:
    """A whole value, mappings and lists included, as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{yaml_scalar(key)}: {yaml_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(yaml_flow(item) for item in value)}]"
    return yaml_scalar(value)


def _is_word(text: str) -> bool:
    return text.replace("_", "a").replace(".", "a").isalnum() and text[0].isalpha() and text.lower() not in _YAML_WORDS


_QUANTITY = re.compile(r"[0-9]+(?:us|ms|s|m|h|[KMGT]i?B)")
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
