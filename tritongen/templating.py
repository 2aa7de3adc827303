"""The Jinja environment for the text around a config (headers, starter specs, deployment files) and for reports in HTML.

Templates come from a folder of the user's, then from those that ship with tritongen. An undefined variable is an error, always; values go through filters
and are never pasted raw. In `*.html.j2` every value is escaped unless it is Markup.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path

import jinja2

_PACKAGE = Path(__file__).parent
_SHIPPED = (_PACKAGE / "_templates", _PACKAGE.parent / "templates")
"""In an installed wheel the templates lie in the package; in a source checkout beside it."""


@functools.cache
def environment(own: Path | None = None) -> jinja2.Environment:
    """The environment; templates in the folder `own` come before the shipped ones of the same name."""
    folders = [str(folder) for folder in ((own,) if own else ()) + _SHIPPED if folder.is_dir()]
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        # Configuration text is quoted by the filters below; what becomes HTML is escaped wherever a value stands.
        autoescape=jinja2.select_autoescape(("html.j2",), default=False),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["comment"] = comment
    env.filters["yaml"] = yaml_scalar
    return env


def comment(text: object) -> str:
    """Text that is safe behind a `#`: control characters, line breaks among them, are written as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(text))


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
