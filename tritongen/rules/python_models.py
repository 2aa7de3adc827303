"""Rules: the model.py of a Python model. It is parsed, never executed.

The python backend imports <version>/model.py, makes one `TritonPythonModel()` for each instance and calls its `execute` (python_backend/src/pb_stub.cc).
Python lets a class come from anywhere, so nothing is said where a name may be bound in a way that only execution shows.
"""

from __future__ import annotations

import ast
import difflib
import re
import symtable
import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache

from tritongen.diagnostics import Location
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import place
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.signature.modelfile import recognise_pointer

_CLASS, _METHOD = "TritonPythonModel", "execute"
_FOLDER = frozenset({"folder"})
_BINDING_CALLS = frozenset({"exec", "eval", "globals", "locals", "vars"})
_BINDING_ATTRIBUTES = frozenset({"__dict__", "modules"})
"""What can bind names out of sight: these, a module's or a class's own `__getattr__`, and a star import."""

_NEWER = re.compile(r"\btype\s+\w+.*=|\b(def|class)\s+\w+\s*\[|\bexcept\s*\*|\bexcept\s+\w+\s*,|\blazy\s+(import|from)\b|\b[tT][rR]?[\"']|\b[rR][tT][\"']")
_NEWER_BEFORE_312 = re.compile(_NEWER.pattern + r"|\b[fF][rR]?[\"']|\b[rR][fF][\"']")
"""Syntax that came after Python 3.10, the oldest that this may run on. Triton's interpreter may be newer than ours, so that ours does not decide there."""


def _sources(context: ModelContext) -> Iterator[tuple[str, bytes]]:
    """Path in the model's folder and bytes of each model.py that Triton would import."""
    if context.resolved.backend == "python" and context.resolved.filename.endswith(".py") and not context.config.runtime:
        for number, file in context.models.items():
            if file.text is not None:
                yield f"{context.versions.loaded[number]}/{context.resolved.filename}", file.text


@lru_cache(maxsize=64)
def _parsed(source: bytes) -> ast.Module | SyntaxError | None:
    """The file as a tree, or why it is no Python; None where neither can be told."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in somebody's string
            # The scopes first: Python 3.10 guards that step against nesting that would overflow the stack when the tree is made.
            symtable.symtable(source, "model.py", "exec")  # type: ignore[arg-type]  # it takes bytes, as `compile` does
            return ast.parse(source)
    except SyntaxError as error:
        return error
    except ValueError as error:  # a NUL byte, up to Python 3.11
        return SyntaxError(str(error))
    except (RecursionError, MemoryError):  # nested deeper than this interpreter parses; Triton's may do better
        return None


def _syntax(context: ModelContext) -> Iterator[Finding]:
    for path, source in _sources(context):
        error = _parsed(source)
        if not isinstance(error, SyntaxError):
            continue
        pointer = recognise_pointer(source, len(source))
        if pointer:
            yield Finding(f"{path} is no Python: {pointer[1]}", hint=pointer[2], location=place(context, path))
            continue
        lines = source.decode(errors="replace").splitlines()
        line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else None
        if line is not None and (_NEWER if sys.version_info >= (3, 12) else _NEWER_BEFORE_312).search(line):
            continue
        where = str(place(context, path).path)
        location = Location(where) if line is None else Location(where, error.lineno, max(1, error.offset or 1), line)
        hint = f"mend it; `python3 -m py_compile {where}` says the same"
        if line is not None and line.startswith(("<<<<<<< ", "=======", ">>>>>>> ")):
            hint = "resolve the merge conflict: keep one side and remove its marks"
        yield Finding(f"{path} is no valid Python: {error.msg}", hint=hint, location=location)


def _module_level(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported, and the definitions themselves without what is in them."""
    waiting: list[ast.AST] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _bound(node: ast.AST) -> str:
    """The name that a node binds where it stands; empty for one that binds none. A star stands for any."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler):
        return node.name or ""
    return (node.rest or "") if isinstance(node, ast.MatchMapping) else ""


def _binds_out_of_sight(tree: ast.Module) -> bool:
    """Whether names may come into the module in a way that its text does not show."""
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Name) and node.id in _BINDING_CALLS)
            or (isinstance(node, ast.Attribute) and node.attr in _BINDING_ATTRIBUTES)
            or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
            or (isinstance(node, ast.alias) and node.name == "*")
            or (isinstance(node, ast.Global) and _CLASS in node.names)
        ):
            return True
    return False


def _trees(context: ModelContext) -> Iterator[tuple[str, ast.Module]]:
    for path, source in _sources(context):
        tree = _parsed(source)
        if isinstance(tree, ast.Module):
            yield path, tree


def _no_class(context: ModelContext) -> Iterator[Finding]:
    for path, tree in _trees(context):
        if any(_bound(node) == _CLASS for node in tree.body):
            continue
        nodes = list(_module_level(tree))
        if any(_bound(node) == _CLASS for node in nodes) or _binds_out_of_sight(tree):
            continue
        classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
        able = [name for name, node in classes.items() if any(_bound(inner) == _METHOD for inner in node.body)]
        meant = difflib.get_close_matches(_CLASS, classes, n=1, cutoff=0.8) or able[:1]
        if meant:
            hint = f"rename class {meant[0]} to {_CLASS}, or write `{_CLASS} = {meant[0]}` at the end"
            location = _at(context, path, classes[meant[0]])
        else:
            hint = f"write `class {_CLASS}:` with a method `def {_METHOD}(self, requests)` that returns one response for each request"
            location = place(context, path)
        yield Finding(f"{path} has no class {_CLASS}, which the python backend looks for", hint=hint, location=location)


def _no_execute(context: ModelContext) -> Iterator[Finding]:
    for path, tree in _trees(context):
        owner = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == _CLASS), None)
        if owner is None or any(_is_callable(node) for node in owner.body) or not _is_all_there_is(owner, tree):
            continue
        methods = [node for node in _module_level(ast.Module(owner.body, [])) if _bound(node) == _METHOD]
        if not methods:
            names = {name for node in owner.body if (name := _bound(node))}
            close = difflib.get_close_matches(_METHOD, names, n=1, cutoff=0.75)
            hint = f"rename {close[0]} to {_METHOD}" if close else f"write `def {_METHOD}(self, requests)`, which returns one response for each request"
            yield Finding(f"class {_CLASS} in {path} has no method {_METHOD}", hint=hint, location=_at(context, path, owner))
        elif len(methods) == 1 and isinstance(methods[0], ast.FunctionDef | ast.AsyncFunctionDef) and not methods[0].decorator_list:
            given = methods[0].args
            shown = ", ".join(argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs))
            message = f"{_METHOD} in {path} takes ({shown}), and the python backend calls it with the requests alone"
            yield Finding(message, hint=f"write `def {_METHOD}(self, requests):`", location=_at(context, path, methods[0]))


def _is_callable(node: ast.AST) -> bool:
    """Whether this is a plain method that can be called as `execute(requests)`."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != _METHOD or node.decorator_list:
        return False
    given = node.args
    most = len(given.posonlyargs) + len(given.args)
    return (most >= 2 or given.vararg is not None) and most - len(given.defaults) <= 2 and None not in given.kw_defaults


def _is_all_there_is(owner: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether what the class's text says is all of it: it inherits nothing, is bound once, and nobody adds to it."""
    if owner.decorator_list or owner.keywords or not all(isinstance(base, ast.Name) and base.id == "object" for base in owner.bases):
        return False
    if any(isinstance(node, ast.Name) and node.id == _CLASS for node in ast.walk(tree)) or _binds_out_of_sight(tree):
        return False
    return sum(_bound(node) == _CLASS for node in _module_level(tree)) == 1


def _at(context: ModelContext, path: str, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Location:
    source = dict(_sources(context))[path].decode(errors="replace").splitlines()
    line = source[node.lineno - 1] if node.lineno <= len(source) else None
    return Location(place(context, path).path, node.lineno, node.col_offset + 1, line)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG390",
        "python-model-that-does-not-parse",
        Consequence.REFUSED,
        "A model.py is valid Python.",
        "The python backend imports it when the model is loaded and passes on what Python says: 'SyntaxError: ...' (tried on 24.10). `check` parses the file "
        "and never runs it; files above 100 kB are not parsed, and syntax that a newer Python may know is not judged.",
        "def execute(self, requests\n    return []",
        "def execute(self, requests):\n    return []",
        check=_syntax,
        needs=_FOLDER,
    ),
    Rule(
        "TG391",
        "python-model-without-its-class",
        Consequence.REFUSED,
        "A model.py defines, imports or assigns TritonPythonModel.",
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
)
