"""Rules: the inputs and outputs of a Python model, which its config states or its `auto_complete_config` adds. Tried on release 24.10."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tritongen.rules.context import ModelContext
from tritongen.rules.folders import place
from tritongen.rules.python_source import CLASS, COMPLETE, located, members, never_completes, reads_inputs, sources, trees, whole_class
from tritongen.rules.rule import Consequence, Finding, Rule

_FOLDER = frozenset({"folder"})
_EXAMPLE = '{ name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }'


def _undeclared(context: ModelContext) -> Iterator[Finding]:
    config = context.config
    if not any(sources(context)) or (context.server.auto_complete and not never_completes(context)):
        return
    if not (context.has_config or context.server.auto_complete) or config.HasField("sequence_batching"):
        return
    takes = bool(config.input or config.batch_input)
    gives = bool(config.output or config.batch_output)
    where = None if context.has_config else place(context)
    why = f"{CLASS} has no {COMPLETE}" if context.server.auto_complete else "the server completes none (--disable-auto-complete-config)"
    subject = "the config" if context.has_config else "no config"
    if not takes and (not gives or reads_inputs(context)):
        said = "states no inputs" if gives else "states no inputs and no outputs"
        said = said if context.has_config else "states inputs and outputs"
        message = f"{subject} {said}, and {why}: a request with an input fails ('expected 0 inputs but got 1')"
        yield Finding(message, (), f"write `input [ {_EXAMPLE} ]`{'' if gives else ', and output likewise'}, with the names that model.py uses", where)
    elif takes and not gives:
        message = f"the config states no outputs, and {why}: answers come without any, and a request that names one fails"
        hint = f"write `output [ {_EXAMPLE.replace('IN', 'OUT')} ]`, with the names that model.py uses"
        yield Finding(message, (), hint, where, consequence=Consequence.MISBEHAVES)


def _broken_complete(context: ModelContext) -> Iterator[Finding]:
    if not context.server.auto_complete:
        return
    for path, tree in trees(context):
        owner = whole_class(tree)
        methods = members(owner, COMPLETE) if owner is not None else []
        if owner is None or len(methods) != 1 or methods[0] not in owner.body or not isinstance(methods[0], ast.FunctionDef):
            continue
        method = methods[0]
        if not _is_called_with_one(method):
            message = f"{COMPLETE} in {path} cannot be called with the config alone, as the python backend calls it, on the class"
            hint = f"write `@staticmethod` above `def {COMPLETE}(auto_complete_model_config):`"
            yield Finding(message, hint=hint, location=located(context, path, method))
        elif not _may_return(method):
            message = f"{COMPLETE} in {path} returns no config"
            given = method.args.posonlyargs + method.args.args
            name = given[-1].arg if given else "auto_complete_model_config"
            yield Finding(message, hint=f"end it with `return {name}`", location=located(context, path, method))


def _is_called_with_one(method: ast.FunctionDef) -> bool:
    """Whether `TritonPythonModel.auto_complete_config(config)` fits the parameters. A decorator that is not Python's own may change them."""
    decorators = [decorator.id if isinstance(decorator, ast.Name) else "" for decorator in method.decorator_list]
    if any(name not in ("staticmethod", "classmethod") for name in decorators):
        return True
    count = 2 if "classmethod" in decorators else 1
    given = method.args
    most = len(given.posonlyargs) + len(given.args)
    return (most >= count or given.vararg is not None) and most - len(given.defaults) <= count and None not in given.kw_defaults


def _may_return(method: ast.FunctionDef) -> bool:
    """Whether some statement of the function itself, not of one inside it, gives something back, or ends it otherwise."""
    waiting: list[ast.AST] = list(method.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            return True
        if isinstance(node, ast.Raise):
            return True
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
    return bool(method.decorator_list) and any(not isinstance(decorator, ast.Name) for decorator in method.decorator_list)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG398",
        "python-model-without-tensors",
        Consequence.FAILS,
        "A Python model's inputs and outputs are stated in its config, or added by its auto_complete_config.",
        "Without both the model is READY with none: a request with an input is refused ('expected 0 inputs but got 1 inputs'), answers hold no outputs, and an "
        "ensemble over it does not load. A model that gives outputs and takes no inputs works. Nothing is said of a class that inherits from another.",
        'backend: "python"  # and no auto_complete_config in model.py',
        f'backend: "python"\ninput [ {_EXAMPLE} ]\noutput [ {_EXAMPLE.replace("IN", "OUT")} ]',
        check=_undeclared,
        needs=_FOLDER,
    ),
    Rule(
        "TG399",
        "broken-auto-complete",
        Consequence.REFUSED,
        "auto_complete_config takes the config, called on the class, and returns it.",
        "The python backend calls it for every model whose class has it, unless the server runs with --disable-auto-complete-config: 'must return a valid "
        "pb.ModelConfig object', or Python's TypeError.",
        f"@staticmethod\ndef {COMPLETE}(config):\n    config.set_max_batch_size(8)",
        f"@staticmethod\ndef {COMPLETE}(config):\n    config.set_max_batch_size(8)\n    return config",
        check=_broken_complete,
        needs=_FOLDER,
    ),
)
