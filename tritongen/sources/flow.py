"""Values as YAML on one line, for files and for messages that say what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping


def yaml_scalar(value: object) -> str:
    """A value in YAML's flow form. Plain words and quantities stay plain; the rest is quoted as JSON, with what YAML does not print as YAML's escapes."""
    if isinstance(value, str) and (_QUANTITY.fullmatch(value) or _is_word(value)):
        return value
    return _UNPRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def yaml_flow(value: object) -> str:
    """A whole value, mappings and lists included, as YAML on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{yaml_scalar(key)}: {yaml_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(yaml_flow(item) for item in value)}]"
    return yaml_scalar(value)


def _is_word(text: str) -> bool:
    return text.replace("_", "a").replace(".", "a").isalnum() and text[0].isalpha() and text.lower() not in _YAML_WORDS


_QUANTITY = re.compile(r"[0-9]+(?:us|ms|s|m|h|[KMGT]i?B)|[0-9]+(?:\.[0-9]+)?%")
_UNPRINTED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML 1.1 or 1.2 refuses, takes for a line break, or drops at a stream's start."""
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
