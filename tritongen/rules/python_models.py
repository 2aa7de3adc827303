"""Rules: the model.py of a Python model. It is parsed, never executed.

The python backend imports <version>/model.py, makes one `TritonPythonModel()` for each instance and calls its `execute` (python_backend/src/pb_stub.cc).
Python lets a class come from anywhere, so nothing is said where a name may be bound in a way that only execution shows.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Iterator

from tritongen.diagnostics import Location
from tritongen.rules import python_completion
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import place
from tritongen.rules.parameters import ENVIRONMENT
from tritongen.rules.python_fstrings import newer_fstring
from tritongen.rules.python_source import CLASS, binds_out_of_sight, bound, located, members, module_level, parsed, sources, trees, whole_class
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.signature.modelfile import recognise_pointer

_METHOD = "execute"
_FOLDER = frozenset({"folder"})

_STUB = "triton_python_backend_stub"
_PYTHON_WITH_NEW_FSTRINGS = 12
_NEWER = {
    11: re.compile(r"\bexcept\s*\*"),
    12: re.compile(r"\btype\s+\w+.*=|\b(def|class)\s+\w+\s*\[|\b[fF][rR]?[\"']|\b[rR][fF][\"']"),
    14: re.compile(r"\bexcept\s+\w+\s*,|\b[tT][rR]?[\"']|\b[rR][tT][\"']"),
    15: re.compile(r"\blazy\s+(import|from)\b"),
}
"""Lines that may hold what Python has since 3.11, 3.12 and so on, and that is an error to an older one, such as the one that this may run on."""


def _python_minor(context: ModelContext) -> int | None:
    """The 3.x that runs the model: the release's, unless the model brings its own; None where it is not known."""
    release, folder = context.server.release, context.folder
    if release is None or release.python is None or ENVIRONMENT in context.config.parameters or (folder is not None and _STUB in folder.entries):
        return None
    return int(release.python.partition(".")[2])


def _syntax_error(source: bytes, minor: int | None) -> tuple[SyntaxError, str | None, bool] | None:
    """Why Triton's Python refuses a file, in which line, and whether a newer Python might take it. None where it takes it, or nobody can tell."""
    ours = sys.version_info.minor
    error = parsed(source)
    newer = False
    if isinstance(error, ast.Module) and minor is not None and minor < ours:
        error, newer = parsed(source, minor), True
        if isinstance(error, ast.Module) and minor < _PYTHON_WITH_NEW_FSTRINGS:
            error = newer_fstring(source)
    if not isinstance(error, SyntaxError):
        return None
    lines = source.decode(errors="replace").splitlines()
    line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else None
    since = [number for number, syntax in _NEWER.items() if number > ours and line is not None and syntax.search(line)]
    if since and (minor is None or minor >= min(since)):
        return None
    return error, line, newer or bool(since)


def _syntax(context: ModelContext) -> Iterator[Finding]:
    minor, release = _python_minor(context), context.server.release
    for path, source in sources(context):
        found = _syntax_error(source, minor)
        if found is None:
            continue
        pointer = recognise_pointer(source, len(source))
        if pointer:
            yield Finding(f"{path} is no Python: {pointer[1]}", hint=pointer[2], location=place(context, path))
            continue
        error, line, newer = found
        where = str(place(context, path).path)
        location = Location(where) if line is None else Location(where, error.lineno, max(1, error.offset or 1), line)
        hint = f"mend it; `python3 -m py_compile {where}` says the same"
        if line is not None and line.startswith(("<<<<<<< ", "=======", ">>>>>>> ")):
            hint = "resolve the merge conflict: keep one side and remove its marks"
        what = "Python"
        if newer and release is not None:
            what = f"Python 3.{minor}, which release {release.name} has"
            hint = f"write it as Python 3.{minor} has it, or give the model an environment of its own with a newer Python ({ENVIRONMENT})"
        yield Finding(f"{path} is no valid {what}: {error.msg}", hint=hint, location=location)


def _no_class(context: ModelContext) -> Iterator[Finding]:
    for path, tree in trees(context):
        if any(bound(node) == CLASS for node in tree.body):
            continue
        nodes = list(module_level(tree))
        if any(bound(node) == CLASS for node in nodes) or binds_out_of_sight(tree):
            continue
        classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        able = [name for name, node in classes.items() if any(bound(inner) == _METHOD for inner in node.body)]
        meant = difflib.get_close_matches(CLASS, classes, n=1, cutoff=0.8) or able[:1]
        if meant:
            hint = f"rename class {meant[0]} to {CLASS}, or write `{CLASS} = {meant[0]}` at the end"
            location = located(context, path, classes[meant[0]])
        else:
            hint = f"write `class {CLASS}:` with a method `def {_METHOD}(self, requests)` that returns one response for each request"
            location = place(context, path)
        yield Finding(f"{path} has no class {CLASS}, which the python backend looks for", hint=hint, location=location)


def _no_execute(context: ModelContext) -> Iterator[Finding]:
    for path, tree in trees(context):
        owner = whole_class(tree)
        if owner is None or any(_is_callable(node) for node in owner.body):
            continue
        methods = members(owner, _METHOD)
        if not methods:
            names = {name for node in owner.body if (name := bound(node))}
            close = difflib.get_close_matches(_METHOD, names, n=1, cutoff=0.75)
            hint = f"rename {close[0]} to {_METHOD}" if close else f"write `def {_METHOD}(self, requests)`, which returns one response for each request"
            yield Finding(f"class {CLASS} in {path} has no method {_METHOD}", hint=hint, location=located(context, path, owner))
        elif len(methods) == 1 and isinstance(methods[0], ast.FunctionDef | ast.AsyncFunctionDef) and not methods[0].decorator_list:
            given = methods[0].args
            shown = ", ".join(argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs))
            message = f"{_METHOD} in {path} takes ({shown}), and the python backend calls it with the requests alone"
            yield Finding(message, hint=f"write `def {_METHOD}(self, requests):`", location=located(context, path, methods[0]))


def _is_callable(node: ast.AST) -> bool:
    """Whether this is a plain method that can be called as `execute(requests)`."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != _METHOD or node.decorator_list:
        return False
    given = node.args
    most = len(given.posonlyargs) + len(given.args)
    return (most >= 2 or given.vararg is not None) and most - len(given.defaults) <= 2 and None not in given.kw_defaults


RULES: tuple[Rule, ...] = (
    Rule(
        "TG390",
        "python-model-that-does-not-parse",
        Consequence.REFUSED,
        "A model.py is valid Python.",
        "The python backend imports it when the model is loaded and passes on what Python says: 'SyntaxError: ...' (tried on 24.10). `check` parses the file "
        "and never runs it; files above 100 kB are not parsed, and syntax that came with a newer Python is judged where the release is known (3.10 up to "
        "24.10, 3.12 from then on).",
        "def execute(self, requests\n    return []",
        "def execute(self, requests):\n    return []",
        check=_syntax,
        needs=_FOLDER,
    ),
    Rule(
        "TG391",
        "python-model-without-its-class",
        Consequence.REFUSED,
        "A model.py defines, imports or assigns TritonPythonModel when it is imported.",
        "\"AttributeError: module '1.model' has no attribute 'TritonPythonModel'\" (tried on 24.10). Nothing is said where the name may come from a star "
        "import, globals() and the like.",
        "class Model:\n    def execute(self, requests):\n        return []",
        "class TritonPythonModel:\n    def execute(self, requests):\n        return []",
        check=_no_class,
        needs=_FOLDER,
    ),
    Rule(
        "TG392",
        "python-model-without-execute",
        Consequence.FAILS,
        "TritonPythonModel has a method execute(self, requests).",
        "The python backend looks for it when a request comes: the model is READY, and every request fails (tried on 24.10). Nothing is said of a class that "
        "inherits from another.",
        "class TritonPythonModel:\n    def run(self, requests):\n        return []",
        "class TritonPythonModel:\n    def execute(self, requests):\n        return []",
        check=_no_execute,
        needs=_FOLDER,
    ),
    *python_completion.RULES,
)
