"""Text files that a render writes beside a spec: a deployment. One of them leads: its stamp knows the others, so that a hand edit of any is a conflict.

The plan is made before anything is written and changes nothing, as that of a repository. Files of others in the same folders are never looked at.
What a killed render put in place is known by the leading file that still waits in what it left (`file_placing`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.actions import Action
from tritongen.repository.comparing import MOST_BYTES, stamp_in
from tritongen.repository.entry import CopiedFile, EntryFile, TextFile
from tritongen.repository.plan import Change, Plan, unreadable
from tritongen.repository.private import find_leftovers
from tritongen.repository.staging import LOCK_WAIT_S, half_done_by_others, looked_at
from tritongen.repository.stamp import Stamp, stamp_text

WAITING = "new"
"""Where files wait, in a folder of a process's own."""

DEPLOYMENT = "the folder of the deployment"
"""What a folder of such files is called."""

_ORPHAN = "no render writes it any more; it was left where it is (--prune removes it)"
_PRUNED = "no render writes it any more"


@dataclass(frozen=True)
class WantedFiles:
    """Files that belong together, by path below the folder that they lie in.

    Attributes:
        lead: the file that knows the others by its stamp, and goes on to know those that are written no more while they lie there.
        header: comment lines at its top.
        body: the rest of it.
        others: the other files' texts.
        spec: the spec that all are made from, by path relative to the folder; what another one made, which is still there, is a conflict.
    """

    lead: PurePosixPath
    header: str
    body: str
    others: Mapping[PurePosixPath, str]
    spec: str = ""


@dataclass(frozen=True)
class FilePlan(Plan):
    """What happens to each file, by path below `root`.

    Attributes:
        wanted: what the plan was made from.
        contents: what each file should hold, by path; the leading one is the last.
    """

    wanted: WantedFiles = field(kw_only=True)
    contents: Mapping[PurePosixPath, bytes] = field(default_factory=dict)


def plan_files(root: Path, wanted: WantedFiles, *, force: bool = False, prune: bool = False) -> FilePlan:
    """Compare files with what lies at `root`, which need not exist.

    Args:
        root: the folder that they lie in.
        wanted: what they should hold.
        force: overwrite, or remove, what was edited by hand.
        prune: remove files that an earlier render made and that are written no more.

    Raises RepositoryError: TG041 where `root` is no folder, TG040 where something cannot be read, TG048 where another render writes there and does not end.
    """
    try:
        with looked_at(root, wait_s=LOCK_WAIT_S, what=DEPLOYMENT):
            return _planned(root, wanted, force=force, prune=prune)
    except OSError as error:
        raise RepositoryError([unreadable(error, root, DEPLOYMENT)]) from error


def replan_files(plan: FilePlan) -> FilePlan:
    """The same for the disk as it is now, for whoever holds the folder. Raises RepositoryError where it cannot be read."""
    try:
        return _planned(plan.root, plan.wanted, force=plan.force, prune=plan.prune)
    except OSError as error:
        raise RepositoryError([unreadable(error, plan.root, DEPLOYMENT)]) from error


def _planned(root: Path, wanted: WantedFiles, *, force: bool, prune: bool) -> FilePlan:
    if root.exists() and not root.is_dir():
        raise RepositoryError([Diagnostic("TG041", "a deployment is written to a folder, and this is none", Location(str(root)), hint="change deploy.folder")])
    known = _Known.at(root, wanted.lead)
    gone = sorted(path for path in known.files if path != wanted.lead and path not in wanted.others and (root / path).is_file())
    files: dict[PurePosixPath, EntryFile] = {path: TextFile(text.encode()) for path, text in wanted.others.items()}
    left = {} if prune else {path: CopiedFile(root / path, known.sha256_of(path, _text_sha256(root / path))) for path in gone}
    text = stamp_text(wanted.header, wanted.body, {**files, **left}, {}, {}, spec=wanted.spec)
    contents = {**{path: other.encode() for path, other in wanted.others.items()}, wanted.lead: text.encode()}
    changes = [_compare(root, path, content, wanted, known, force=force) for path, content in contents.items()]
    changes += [_orphan(root, path, known, force=force, prune=prune) for path in gone]
    return FilePlan(root, tuple(changes), force, prune, wanted=wanted, contents=contents)


@dataclass(frozen=True)
class _Known:
    """What is known to be ours.

    Attributes:
        lead: the leading file.
        stamp: its stamp, where it lies and has one.
        files: SHA-256 (hex) of every other file as it was written, or as a killed render may have written it.
    """

    lead: Path
    stamp: Stamp | None
    files: Mapping[PurePosixPath, Sequence[str]]

    @classmethod
    def at(cls, root: Path, lead: PurePosixPath) -> _Known:
        """Raises OSError."""
        stamp = stamp_in(root / lead)
        interrupted = [stamp_in(leftover / WAITING / lead) for leftover in interrupted_renders(root, lead)]
        files: dict[PurePosixPath, list[str]] = {}
        for each in filter(None, (stamp, *interrupted)):
            for path, sha in each.files.items():
                files.setdefault(path, []).append(sha)
        return cls(root / lead, stamp, files)

    def is_ours(self, path: PurePosixPath, sha256: str) -> bool:
        """Whether a file of that hash is one that a render wrote."""
        return sha256 in self.files.get(path, ())

    def sha256_of(self, path: PurePosixPath, sha256: str) -> str:
        """The hash to know a file by: its own where it is ours, else that of the one which we wrote."""
        return sha256 if self.is_ours(path, sha256) else self.files[path][0]


def interrupted_renders(root: Path, lead: PurePosixPath) -> list[Path]:
    """Folders that killed renders of the same files left. Raises OSError."""
    return find_leftovers(root, root / lead) if root.is_dir() else []


def _text_sha256(file: Path) -> str:
    """SHA-256 (hex) of a text; "" where it is longer than any of ours. git may have checked it out with CRLF: the same text, not an edit. Raises OSError."""
    if file.stat().st_size > MOST_BYTES:
        return ""
    digest = hashlib.sha256()
    with file.open("rb") as lines:
        for line in lines:
            digest.update(line[:-2] + b"\n" if line.endswith(b"\r\n") else line)
    return digest.hexdigest()


def _orphan(root: Path, path: PurePosixPath, known: _Known, *, force: bool, prune: bool) -> Change:
    if prune and not force and not known.is_ours(path, _text_sha256(root / path)):
        return Change(str(path), Action.CONFLICT, reasons=(f"{root / path} was changed by hand, and no render writes it any more",))
    return Change(str(path), Action.ORPHAN, reasons=(_PRUNED if prune else _ORPHAN,))


def _compare(root: Path, path: PurePosixPath, content: bytes, wanted: WantedFiles, known: _Known, *, force: bool) -> Change:
    target, name = root / path, str(path)
    blocked = next((folder for folder in _folders(root, path) if folder.is_symlink() or (folder.exists() and not folder.is_dir())), None)
    if blocked is not None:
        return Change(name, Action.CONFLICT, reasons=(f"{blocked} is no folder",), forcible=False)
    if not target.exists() and not target.is_symlink():
        return Change(name, Action.CREATE)
    if target.is_symlink() or not target.is_file():
        return Change(name, Action.CONFLICT, reasons=(f"{target} is no file",), forcible=False)
    found = _text_sha256(target)
    if found == hashlib.sha256(content).hexdigest():
        return Change(name, Action.KEEP)
    leads = path == wanted.lead
    other = known.stamp.spec if leads and known.stamp is not None else ""
    if other not in ("", wanted.spec) and (root / other).exists():
        ours, why = False, f"{target} was made from another spec, {other}, whose deployment it is (deploy.folder gives each its own)"
    elif leads:
        ours, why = known.stamp is not None and not known.stamp.edited, f"{target} was edited by hand"
    else:
        ours, why = known.is_ours(path, found), f"{target} was not made by tritongen, or was changed by hand"
    if known.stamp is None:
        lacking = "has no stamp" if known.lead.exists() else "is not there"
        why = f"{target} was not made by tritongen, or not left as it was: {'it' if leads else f'{known.lead}, which would know it,'} {lacking}"
    return Change(name, Action.REPLACE) if ours or force else Change(name, Action.CONFLICT, reasons=(why,))


def _folders(root: Path, path: PurePosixPath) -> Iterator[Path]:
    """The folders between `root` and a file, outer ones first."""
    yield from (root / parent for parent in reversed(path.parents) if parent.parts)


def file_conflicts(plan: FilePlan) -> list[Diagnostic]:
    """A finding (TG043) for each file whose place holds somebody's work."""
    conflicts = plan.with_action(Action.CONFLICT)
    half_done = half_done_by_others(plan.root / plan.wanted.lead, plan.root) if conflicts else ""
    elsewhere = "where it is none of this deployment's, deploy.folder gives that a folder of its own"
    hint = (
        "move your change into the spec (`deploy`, `server`), or into a file of your own beside it (docs/deploy.md says where), or overwrite it with --force;"
        f" {elsewhere}"
    )
    return [
        Diagnostic(
            "TG043",
            f"'{change.name}' would be {'overwritten' if PurePosixPath(change.name) in plan.contents else 'removed'}: {'; '.join(change.reasons)}",
            Location(str(plan.root / change.name)),
            hint=half_done + (hint if change.forcible else f"remove it, or move it away: --force replaces files only; {elsewhere}"),
        )
        for change in conflicts
    ]
