"""Rules: folders and files of a model that are there, and that Triton cannot open."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator

from tritongen.repository.scan import FileFacts
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import loaded_folders, place
from tritongen.rules.rule import Consequence, Finding, Rule

_DATA_FOLDERS = ("warmup", "initial_state")


def _check(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    if folder.locked is not None:
        yield _unreadable(context, "", FileFacts("folder", readable=False, mode=folder.locked))
    for path in dict.fromkeys(_opened(context)):
        facts = folder.entries.get(path)
        if facts is None:
            continue
        if facts.kind == "other":
            message = f"'{path}' is no file but a pipe, a socket or a device: the server waits for what may never come, or refuses it"
            yield Finding(message, hint="put a regular file in its place", location=place(context, path))
        elif not facts.readable:
            yield _unreadable(context, path, facts)


def _opened(context: ModelContext) -> Iterator[str]:
    """Paths in the model's folder that the server opens: version folders, their model files, label files and data for warmups and states."""
    folder = context.folder
    assert folder is not None
    for version in loaded_folders(context):
        yield version
        if context.resolved.filename:
            yield posixpath.normpath(f"{version}/{context.resolved.filename}")
    for output in context.config.output:
        # What is no regular file there is another rule's.
        name = posixpath.normpath(output.label_filename.lstrip("/"))
        if name in folder.entries and folder.entries[name].kind == "file":
            yield name
    for name in folder.entries:
        if name in _DATA_FOLDERS or posixpath.dirname(name) in _DATA_FOLDERS:
            yield name


def _unreadable(context: ModelContext, path: str, facts: FileFacts) -> Finding:
    location = place(context, path)
    what = f"'{path}'" if path else f"the folder '{context.name}'"
    allow = "a+rx" if facts.kind == "folder" else "a+r"
    message = f"{what} cannot be read (mode {facts.mode:03o}); a server of another user than root cannot read it either"
    return Finding(message, hint=f"chmod {allow} {shlex.quote(location.path)}", location=location)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG227",
        "unopenable-file",
        Consequence.REFUSED,
        "The server's user may read a model's folder, its versions and the files that are loaded from them, and these are regular files.",
        "Triton fails where it cannot open one (tried on 24.10). A pipe in the place of a model file is waited for, or refused. What `check` may not read "
        "itself it takes for unreadable; of what such a folder holds it says nothing.",
        "resnet/1/model.onnx  # mode 000",
        "resnet/1/model.onnx  # mode 644",
        check=_check,
        needs=frozenset({"folder"}),
    ),
)
