"""Text files that a render writes beside a spec: a deployment. One of them leads: its stamp knows the others, so that a hand edit of any is a conflict.

The plan is made before anything is written and changes nothing, as that of a repository. Files of others in the same folders are never looked at.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.actions import Action
from tritongen.repository.entry import TextFile
from tritongen.repository.plan import Change, Plan
from tritongen.repository.stamp import Stamp, read_stamp, stamp_text

_ORPHAN = "no render writes it any more; it was left where it is"


@dataclass(frozen=True)
class FilePlan(Plan):
    """What happens to each file, by path below `root`.

    Attributes:
        contents: what each file should hold, by path; the leading one is the last.
    """

    contents: Mapping[PurePosixPath, bytes] = field(default_factory=dict)


def plan_files(root: Path, lead: PurePosixPath, header: str, body: str, others: Mapping[PurePosixPath, str], *, force: bool = False) -> FilePlan:
    """Compare files with what lies at `root`, which need not exist.

    Args:
        root: the folder that they lie in.
        lead: the file that knows the others by its stamp.
        header: comment lines at its top.
        body: the rest of it.
        others: the other files' texts.
        force: overwrite what was edited by hand.

    Raises RepositoryError (TG040) where something cannot be read.
    """
    contents = {path: text.encode() for path, text in others.items()}
    text = stamp_text(header, body, {path: TextFile(content) for path, content in contents.items()}, {}, {})
    contents[lead] = text.encode()
    try:
        stamp = _stamp_at(root / lead)
        changes = [_compare(root, path, content, path == lead, stamp, force=force) for path, content in contents.items()]
        gone = sorted(path for path in (stamp.files if stamp else ()) if path not in contents and (root / path).is_file())
    except OSError as error:
        hint = "check the path and its permissions"
        raise RepositoryError([Diagnostic("TG040", f"cannot read it: {error.strerror or error}", Location(str(error.filename or root)), hint=hint)]) from error
    changes += [Change(str(path), Action.ORPHAN, reasons=(_ORPHAN,)) for path in gone]
    return FilePlan(root, tuple(changes), contents=contents)


def _stamp_at(path: Path) -> Stamp | None:
    return read_stamp(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else None


def _compare(root: Path, path: PurePosixPath, content: bytes, leads: bool, stamp: Stamp | None, *, force: bool) -> Change:
    target, name = root / path, str(path)
    blocked = next((folder for folder in _folders(root, path) if folder.is_symlink() or (folder.exists() and not folder.is_dir())), None)
    if blocked is not None:
        return Change(name, Action.CONFLICT, reasons=(f"{blocked} is no folder",), forcible=False)
    if not target.exists() and not target.is_symlink():
        return Change(name, Action.CREATE)
    if target.is_symlink() or not target.is_file():
        return Change(name, Action.CONFLICT, reasons=(f"{target} is no file",), forcible=False)
    # git may have checked the file out with CRLF: the same text, not an edit.
    found = target.read_bytes().replace(b"\r\n", b"\n")
    if found == content:
        return Change(name, Action.KEEP)
    if stamp is None:
        ours, why = False, f"{target} was not made by tritongen, or not left as it was: {'it' if leads else 'the file that would know it'} has no stamp"
    elif leads:
        ours, why = not stamp.edited, f"{target} was edited by hand"
    else:
        ours, why = stamp.files.get(path) == hashlib.sha256(found).hexdigest(), f"{target} was not made by tritongen, or was changed by hand"
    return Change(name, Action.REPLACE) if ours or force else Change(name, Action.CONFLICT, reasons=(why,))


def _folders(root: Path, path: PurePosixPath) -> Iterator[Path]:
    """The folders between `root` and a file, outer ones first."""
    yield from (root / parent for parent in reversed(path.parents) if parent.parts)


def file_conflicts(plan: FilePlan) -> list[Diagnostic]:
    """A finding (TG043) for each file whose place holds somebody's work."""
    hint = "move your change into the spec (`deploy`, `server`), or into a docker-compose.override.yml, which is read beside it; or overwrite it with --force"
    return [
        Diagnostic(
            "TG043",
            f"'{change.name}' would be overwritten: {'; '.join(change.reasons)}",
            Location(str(plan.root / change.name)),
            hint=hint if change.forcible else "remove it, or move it away: --force replaces files only",
        )
        for change in plan.with_action(Action.CONFLICT)
    ]


def apply_files(plan: FilePlan) -> None:
    """Write what the plan says: all contents are on the disk before the first of them gets its name, and each appears whole.

    Raises RepositoryError, with nothing written, where the plan has conflicts (TG043) or the disk refuses (TG044).
    """
    if conflicts := file_conflicts(plan):
        raise RepositoryError(conflicts)
    wanted = [PurePosixPath(change.name) for change in plan.with_action(Action.CREATE, Action.REPLACE)]
    staged: dict[Path, Path] = {}
    try:
        for path in wanted:
            target = plan.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            waiting = target.with_name(f".{target.name}.tritongen-{secrets.token_hex(4)}")
            staged[waiting] = target
            _write(waiting, plan.contents[path])
        for waiting, target in staged.items():
            waiting.replace(target)
    except OSError as error:
        message, place = f"cannot write the deployment: {error.strerror or error}", Location(str(error.filename or plan.root))
        raise RepositoryError([Diagnostic("TG044", message, place, hint="check that the folder may be written to and has space")]) from error
    finally:
        _remove(staged)


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
