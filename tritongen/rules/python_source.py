"""What a model.py says, from its text: parsed, never executed.

Python lets a class come from anywhere, so what only execution shows counts as unknown here.
"""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeGuard

from tritongen.diagnostics import Location
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import place

CLASS = "TritonPythonModel"
COMPLETE = "auto_complete_config"
_BINDING_CALLS = frozenset({"exec", "eval", "globals", "locals", "vars"})
_BINDING_ATTRIBUTES = frozenset({"__dict__", "modules"})
"""What can bind names out of sight: these, a module's or a class's own `__getattr__`, and a star import."""


def sources(context: ModelContext) -> Iterator[tuple[str, bytes]]:
    """Path in the model's folder and bytes of each model.py that Triton would import."""
    if context.resolved.backend == "python" and context.resolved.filename.endswith(".py") and not context.config.runtime:
        for number, file in context.models.items():
            if file.text is not None:
                yield f"{context.versions.loaded[number]}/{context.resolved.filename}", file.text


@lru_cache(maxsize=64)
def parsed(source: bytes, minor: int | None = None) -> ast.Module | SyntaxError | None:
    """The file as a tree, or why it is no Python; None where neither can be told.

    With `minor`, one that is older than ours: as Python 3.`minor` has it, as far as ours knows (of statements it does, of what is inside f-strings not).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in somebody's string
            # The scopes first: Python 3.10 guards that step against nesting that would overflow the stack when the tree is made.
            symtable.symtable(source, "model.py", "exec")  # type: ignore[arg-type]  # it takes bytes, as `compile` does
            return ast.parse(source, feature_version=None if minor is None else (3, minor))
    except SyntaxError as error:
        return error
    except ValueError as error:  # a NUL byte, up to Python 3.11
        return SyntaxError(str(error))
    except (RecursionError, MemoryError):  # nested deeper than this interpreter parses; Triton's may do better
        return None


def trees(context: ModelContext) -> Iterator[tuple[str, ast.Module]]:
    """Path and tree of each model.py that parses."""
    for path, source in sources(context):
        tree = parsed(source)
        if isinstance(tree, ast.Module):
            yield path, tree


def module_level(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported, and the definitions themselves without what is in them."""
    waiting: list[ast.AST] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        yield node
        if _is_for_scripts(node):
            waiting.extend(reversed(node.orelse))
        elif not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _is_for_scripts(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether this is `if __name__ == "__main__"`: Triton imports the module under another name."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare) or not all(isinstance(operator, ast.Eq) for operator in node.test.ops):
        return False
    sides = (node.test.left, *node.test.comparators)
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    return names == {"__name__"} and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def bound(node: ast.AST) -> str:
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


def binds_out_of_sight(tree: ast.Module) -> bool:
    """Whether names may come into the module in a way that its text does not show."""
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Name) and node.id in _BINDING_CALLS)
            or (isinstance(node, ast.Attribute) and node.attr in _BINDING_ATTRIBUTES)
            or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
            or (isinstance(node, ast.alias) and node.name == "*")
            or (isinstance(node, ast.Global) and CLASS in node.names)
        ):
            return True
    return False


def whole_class(tree: ast.Module) -> ast.ClassDef | None:
    """The class `TritonPythonModel`, where its text says all that it has: it inherits nothing, is bound once, and nobody adds to it. None else."""
    owner = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == CLASS), None)
    return owner if owner is not None and _is_all_there_is(owner, tree) else None


def _is_all_there_is(owner: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether what the class's text says is all of it: it inherits nothing, is bound once, and nobody adds to it."""
    if owner.decorator_list or owner.keywords or not all(isinstance(base, ast.Name) and base.id == "object" for base in owner.bases):
        return False
    if any(isinstance(node, ast.Name) and node.id == CLASS for node in ast.walk(tree)) or binds_out_of_sight(tree):
        return False
    return sum(bound(node) == CLASS for node in module_level(tree)) == 1


def members(owner: ast.ClassDef, name: str) -> list[ast.AST]:
    """What binds a name in a class, under conditions too."""
    return [node for node in module_level(ast.Module(owner.body, [])) if bound(node) == name]


def located(context: ModelContext, path: str, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Location:
    """Where a class or function of a model.py begins."""
    source = dict(sources(context))[path].decode(errors="replace").splitlines()
    line = source[node.lineno - 1] if node.lineno <= len(source) else None
    return Location(place(context, path).path, node.lineno, node.col_offset + 1, line)


def never_completes(context: ModelContext) -> bool:
    """Whether it is sure that a Python model adds nothing to its config: it has no `auto_complete_config`."""
    known = list(sources(context))
    return bool(known) and len(known) == len(context.models) and all(_lacks_complete(source) for _, source in known)


@lru_cache(maxsize=64)
def _lacks_complete(source: bytes) -> bool:
    tree = parsed(source)
    owner = whole_class(tree) if isinstance(tree, ast.Module) else None
    return owner is not None and not members(owner, COMPLETE)


def reads_inputs(context: ModelContext) -> bool:
    """Whether a model.py asks requests for their inputs."""
    return any(isinstance(node, ast.Attribute) and node.attr in ("get_input_tensor_by_name", "inputs") for _, tree in trees(context) for node in ast.walk(tree))
