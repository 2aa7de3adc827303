"""What is said of a config.pbtxt before any rule is asked: it cannot be read, or it does not parse."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator

from tritongen.check.codes import codes
from tritongen.check.contexts import LoadedModel
from tritongen.check.findings import CheckFinding
from tritongen.diagnostics import Diagnostic, Location, Severity
from tritongen.repository.scan import CONFIG_NAME, ModelFolder
from tritongen.rules import Edit
from tritongen.rules.rule import Consequence


def reader_findings(model: LoadedModel) -> Iterator[CheckFinding]:
    """Findings about the config as a file and as a text, with the edits that mend it."""
    folder = model.context.folder
    if folder is not None and folder.link == "link":
        yield described(_not_followed(folder))
    if folder is not None and folder.config_problem:
        yield described(_unread(folder, str(model.config_path)))
        return
    edits = {fix.diagnostic: tuple(Edit(edit.start, edit.end, edit.text.encode(errors="surrogateescape")) for edit in fix.edits) for fix in model.read.fixes}
    for diagnostic in model.read.diagnostics:
        finding = described(dataclasses.replace(diagnostic, model=diagnostic.model or model.context.name))
        yield dataclasses.replace(finding, edits=edits.get(diagnostic, ()), source=model.config_path)
    for note in model.read.notes:
        yield dataclasses.replace(described(dataclasses.replace(note, model=model.context.name)), consequence=Consequence.MISBEHAVES.value)


def described(diagnostic: Diagnostic) -> CheckFinding:
    """A finding of something other than a rule, with what the catalogue knows of its code."""
    entry = codes()[diagnostic.code]
    return CheckFinding(diagnostic, entry.name, entry.consequence.value if entry.consequence else "")


def _unread(folder: ModelFolder, path: str) -> Diagnostic:
    """TG075 where Triton cannot read it either; TG076 where only we do not."""
    kind = folder.entries[CONFIG_NAME].kind
    if folder.config_is_out_of_reach:
        consequence = "Triton may load it; nothing about this model was checked"
        hint = "copy the file into the model's folder" if kind == "link" else "check that it is the right file"
        return Diagnostic("TG076", f"config.pbtxt was not read: {folder.config_problem}", Location(path), consequence, hint, folder.name, Severity.WARNING)
    hint = f"allow the server's user to read it: chmod a+r {shlex.quote(path)}" if kind == "file" else "put a regular file in its place"
    follows = "the whole server crashes when it reads it (tried on 24.10)" if kind == "folder" else Consequence.REFUSED.words
    return Diagnostic("TG075", f"config.pbtxt cannot be read: {folder.config_problem}", Location(path), follows, hint, folder.name)


def _not_followed(folder: ModelFolder) -> Diagnostic:
    """TG076 for a model whose whole folder is a link out of the repository."""
    path = shlex.quote(str(folder.path))
    return Diagnostic(
        "TG076",
        f"'{folder.name}' is a link that leads out of the repository, and was not followed",
        Location(str(folder.path)),
        "Triton follows it where it can, in a container or another checkout it often cannot; nothing about this model was checked",
        f'check the folder itself: tritongen check "$(readlink -f {path})"; to hold it in the repository, put the folder in the link\'s place',
        folder.name,
        Severity.WARNING,
    )
