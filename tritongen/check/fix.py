"""`--fix`: the edits of findings, made in memory until nothing changes, then written at once.

Only edits that cannot change a config's meaning are made; where they would leave a file with more findings than it had, it is left as it was. Files that
tritongen generated are left alone too: their spec is what to change.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritongen.check.contexts import LoadedModel, reload_config
from tritongen.check.engine import CheckOptions, Group, findings_of
from tritongen.check.findings import CheckFinding
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.stamp import read_stamp
from tritongen.repository.writing import write_whole
from tritongen.rules import Edit

_MOST_ROUNDS = 10
"""A mended mistake may show another behind it; more rounds than this mean that two fixes undo each other, and the file is left as it was."""

_MOST_BYTES_TRIED = 2_000_000
"""Bytes that are read to find out which of a file's fixes are good; a second or two."""


@dataclass(frozen=True)
class FixedFile:
    """A config.pbtxt before and after its fixes, and how many findings were mended."""

    path: Path
    before: bytes
    after: bytes
    findings: int


@dataclass(frozen=True)
class FixOutcome:
    """What `--fix` comes to.

    Attributes:
        files: what changes; nothing of it is written yet.
        left: the findings that remain afterwards.
        generated: files with findings that could be mended, but which tritongen wrote.
    """

    files: tuple[FixedFile, ...]
    left: tuple[CheckFinding, ...]
    generated: tuple[Path, ...]


def plan_fixes(groups: Sequence[Group], options: CheckOptions) -> FixOutcome:
    """Mend in memory whatever can be mended, over and over until nothing changes. No file comes out with more findings than it had."""
    before = _texts(groups)
    mended: dict[Path, int] = {}
    left = findings_of(groups, options)
    mendable = {finding.source for finding in left if finding.fixable and finding.source is not None}
    generated = {path for path in mendable if _is_generated(before[path])}
    stuck = set(generated)
    for _ in range(_MOST_ROUNDS):
        texts = _mended_texts(left, groups, stuck)
        if not texts:
            break
        tried = [_with_texts(group, {path: text for path, (text, _) in texts.items()}) for group in groups]
        found = findings_of(tried, options)
        worse = _worse(groups, left, found) & set(texts)
        stuck |= worse
        if worse:
            continue
        groups, left = tried, found
        for path, (_, number) in texts.items():
            mended[path] = mended.get(path, 0) + number
    else:
        # Fixes that undo each other, or never end: another run would find other places to stop at.
        groups = [_with_texts(group, {path: before[path] for path in _mended_texts(left, groups, stuck)}) for group in groups]
        left = findings_of(groups, options)
    after = _texts(groups)
    changed = [FixedFile(path, text, after[path], mended[path]) for path, text in before.items() if after[path] != text]
    return FixOutcome(tuple(changed), left, tuple(sorted(generated)))


def _texts(groups: Sequence[Group]) -> dict[Path, bytes]:
    return {model.config_path: model.context.text for group in groups for model in group.asked}


def _mended_texts(findings: Iterable[CheckFinding], groups: Sequence[Group], stuck: set[Path]) -> dict[Path, tuple[bytes, int]]:
    """By file, its text with the edits of one round, and how many findings that mends. Files without such a fix are put into `stuck`."""
    by_path: dict[Path, list[CheckFinding]] = {}
    for finding in findings:
        if finding.fixable and finding.source is not None and finding.source not in stuck:
            by_path.setdefault(finding.source, []).append(finding)
    texts: dict[Path, tuple[bytes, int]] = {}
    for model in (model for group in groups for model in group.asked if model.config_path in by_path):
        fixes = [finding.edits for finding in by_path[model.config_path]]
        text, number = apply_edits(model.context.text, fixes)
        if _reads_worse(model, text):
            text, number = apply_edits(model.context.text, _harmless(model, fixes))
        if text == model.context.text:
            stuck.add(model.config_path)
        else:
            texts[model.config_path] = (text, number)
    return texts


def _reads_worse(model: LoadedModel, text: bytes) -> bool:
    return len(reload_config(model, text).read.diagnostics) > len(model.read.diagnostics)


def _harmless(model: LoadedModel, fixes: Sequence[Sequence[Edit]]) -> list[Sequence[Edit]]:
    """Those fixes that together leave no more for the reader to find, the first ones first; none of a file that would take too long to read so often."""
    kept: list[Sequence[Edit]] = []
    if len(fixes) * len(model.context.text) > _MOST_BYTES_TRIED:
        return kept
    for fix in fixes:
        if not _reads_worse(model, apply_edits(model.context.text, [*kept, fix])[0]):
            kept.append(fix)
    return kept


def _worse(groups: Sequence[Group], before: Iterable[CheckFinding], after: Iterable[CheckFinding]) -> set[Path]:
    """Files that have more findings after a round than before it. One that did not parse before was not asked for all of them, and is none of these."""
    asked = {model.config_path for group in groups for model in group.asked if model.parses}
    numbers = [Counter(finding.source for finding in findings) for findings in (before, after)]
    return {path for path in asked if numbers[1][path] > numbers[0][path]}


def apply_edits(text: bytes, fixes: Iterable[Sequence[Edit]]) -> tuple[bytes, int]:
    """`text` with fixes made, and how many were. A fix is made whole or not at all; of two that overlap the later waits for the next round."""
    chosen: list[Edit] = []
    number = 0
    for fix in fixes:
        if all(not _overlap(edit, other) for edit in fix for other in chosen) and all(0 <= edit.start <= edit.end <= len(text) for edit in fix):
            chosen += fix
            number += 1
        elif set(fix) <= set(chosen):
            number += 1
    for edit in sorted(set(chosen), key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.replacement + text[edit.end :]
    return text, number


def _overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits touch the same bytes; two insertions at one place do, since their order would be a guess."""
    return max(one.start, other.start) < min(one.end, other.end) or one.start == other.start


def _with_texts(group: Group, texts: Mapping[Path, bytes]) -> Group:
    """The group with other texts of some configs."""

    def renewed(model: LoadedModel) -> LoadedModel:
        return reload_config(model, texts[model.config_path]) if model.config_path in texts else model

    return dataclasses.replace(group, asked=tuple(renewed(model) for model in group.asked))


def _is_generated(text: bytes) -> bool:
    return read_stamp(text.decode("utf-8", "replace")) is not None


def unified_diff(file: FixedFile) -> str:
    """The change as a patch. Bytes that are no UTF-8 are shown as escapes."""
    before, after = (text.decode("utf-8", "backslashreplace").splitlines(keepends=True) for text in (file.before, file.after))
    name = file.path.as_posix().lstrip("/")
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def write_fixes(files: Iterable[FixedFile]) -> None:
    """Write every file: a temporary file beside it, then one rename; the mode is kept, and a link stays a link.

    Raises RepositoryError (TG078) with every file that could not be written; the others are.
    """
    problems = []
    for file in files:
        try:
            _replace(file)
        except OSError as error:
            problems.append(
                Diagnostic("TG078", f"the fix cannot be written: {error.strerror}", Location(str(file.path)), hint="check the permissions of the file's folder")
            )
    if problems:
        raise RepositoryError(problems)


def _replace(file: FixedFile) -> None:
    target = Path(os.path.realpath(file.path))
    if target.read_bytes() != file.before:
        raise OSError(0, "it was changed by somebody else meanwhile; run the command again")
    write_whole(target, file.after, mode=stat.S_IMODE(target.stat().st_mode))
