"""The Jinja environment for the text around a config (headers, starter specs, deployment files) and for reports in HTML; and the files that ship as they are.

Templates come from a folder of the user's, then from those that ship with tritongen. An undefined variable is an error, always; values go through filters
and are never pasted raw. In `*.html.j2` every value is escaped unless it is Markup.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import jinja2

from tritongen.sources.flow import yaml_scalar

_PACKAGE = Path(__file__).parent
_SHIPPED = (_PACKAGE / "_templates", _PACKAGE.parent / "templates")
"""In an installed wheel the templates lie in the package; in a source checkout beside it."""
_LOADTESTS = (_PACKAGE / "_loadtests", _PACKAGE.parent / "loadtests")
LOCUSTFILES = ("grpc_user.py", "http_user.py", "mixed.py", "streaming.py")
"""Locustfiles for any model, which ship beside the templates and are no templates."""


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
    env.filters["compose"] = compose_scalar
    env.filters["python"] = python_literal
    env.filters["yaml"] = yaml_scalar
    env.filters["shell"] = shlex.quote
    return env


@functools.cache
def shipped_locustfile(name: str) -> str:
    """The text of one of `LOCUSTFILES`. Raises FileNotFoundError where an installation lacks it."""
    folder = next((folder for folder in _LOADTESTS if folder.is_dir()), _LOADTESTS[0])
    return (folder / name).read_text(encoding="utf-8")


def comment(text: object) -> str:
    """Text that is safe behind a `#`: control characters, line breaks among them, are written as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(text))


def python_literal(value: object) -> str:
    """A value as Python source, with texts in double quotes where these need no other escapes than JSON's."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{python_literal(key)}: {python_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(python_literal, value))}{',' if len(value) == 1 else ''})"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) and value.isprintable() else repr(value)


def compose_scalar(value: object) -> str:
    """A text for a compose file: in YAML's flow form, with `$` doubled, since a single one begins the name of a variable there."""
    return yaml_scalar(str(value).replace("$", "$$"))
