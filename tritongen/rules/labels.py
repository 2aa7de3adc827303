"""Rules: label files of classification outputs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tritongen.repository.scan import ModelFolder
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Rule

_CONFINED_FROM = (26, 7)
"""A release that surely has the check: the sources of June 2026 do, those of 24.10 do not."""


def _check(context: ModelContext) -> Iterator[Finding]:
    assert context.folder is not None
    for index, tensor in enumerate(context.config.output):
        if not tensor.label_filename:
            continue
        problem = _problem(context, tensor.label_filename)
        if problem is not None:
            message, hint, consequence = problem
            yield Finding(f"output '{tensor.name}': {message}", ("output", index, "label_filename"), hint, consequence=consequence)


def _problem(context: ModelContext, name: str) -> tuple[str, str, Consequence] | None:
    folder, release = context.folder, context.server.release
    assert folder is not None
    # Triton joins the name to the model's folder, even one that starts with a slash.
    path = posixpath.normpath(name.lstrip("/"))
    if path == ".." or path.startswith("../"):
        hint = "copy the file into the model's folder, beside config.pbtxt, and write its bare name"
        if path in context.absent:
            return f"the label file '{name}' would lie outside the model's folder, and is not there", hint, Consequence.REFUSED
        refused = release is not None and release.order >= _CONFINED_FROM
        message = f"the label file '{name}' lies outside the model's folder; 24.10 still reads it, later releases refuse the model"
        return message, hint, Consequence.REFUSED if refused else Consequence.FRAGILE
    facts = folder.entries.get(path)
    if facts is None or facts.kind == "link":
        return f"the label file '{path}' is not in the model's folder", _elsewhere(folder, path), Consequence.REFUSED
    if facts.kind == "file":
        return None
    return (
        f"the label file '{path}' is no file but a {facts.kind if facts.kind == 'folder' else 'device or pipe'}; Triton 24.10 crashes when it reads it",
        ("write the name of a text file with one label per line"),
        Consequence.REFUSED,
    )


def _elsewhere(folder: ModelFolder, path: str) -> str:
    found = sorted(name for name, facts in folder.entries.items() if facts.kind == "file" and posixpath.basename(name) == posixpath.basename(path))
    return f'write `label_filename: "{found[0]}"`' if found else "put the file there (one label per line), or remove `label_filename`"


RULES: tuple[Rule, ...] = (
    Rule(
        "TG258",
        "missing-label-file",
        Consequence.REFUSED,
        "The label file of an output is a file in the model's folder.",
        "Triton reads it when it loads the model ('failed to open text file', core/src/label_provider.cc). A folder in its place crashed the server, and a "
        "path out of the model's folder "
        "was read (tried on 24.10); later sources refuse the latter (`Model::Init`, core/src/model.cc).",
        'output [ { name: "y" data_type: TYPE_FP32 dims: [10] label_filename: "labels.txt" } ]  # and no labels.txt beside config.pbtxt',
        'output [ { name: "y" data_type: TYPE_FP32 dims: [10] label_filename: "labels.txt" } ]  # with labels.txt beside config.pbtxt',
        check=_check,
        needs=frozenset({"config", "folder"}),
    ),
)
