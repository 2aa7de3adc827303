"""What files and folders get of the repository that they are put into: its group, its rule that new folders hand the group on (setgid), its default ACL.

They are made beside the repository, where they get none of that by themselves.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritongen.repository.system import Standing, acl_of, copy_default_acl, copy_standing, give_acl, give_standing, standing_of


@dataclass(frozen=True)
class Heritage:
    """What is handed on.

    Attributes:
        group: the number of the group; None where nothing that this user makes in the repository would get it.
        handed_on: whether new folders are to hand it on in their turn.
        mode: the permissions of a new file, as the umask or the ACL has them.
        acl: the ACL of a new file; None where it has none.
        refused: what could not be given it, with the system's reason.
    """

    group: int | None
    handed_on: bool
    mode: int
    acl: bytes | None = None
    refused: list[tuple[Path, str]] = field(default_factory=list, compare=False)

    @classmethod
    def of(cls, repository: Path, places: Sequence[Path]) -> Heritage:
        """That of a repository, for what is then made in `places`, empty folders of this process's own. Raises OSError."""
        refused = []
        for place in places:
            try:
                copy_default_acl(repository, place)
            except OSError as error:  # artifacts may lie on a filesystem without ACLs
                refused.append((place, error.strerror or str(error)))
        probe = places[0] / "probe"
        probe.touch(exist_ok=False)
        mode, acl = stat.S_IMODE(probe.stat().st_mode), acl_of(probe)
        probe.unlink()
        status = repository.stat()
        handed_on = bool(status.st_mode & stat.S_ISGID)
        can_give = handed_on or os.geteuid() == 0 or status.st_gid in (os.getegid(), *os.getgroups())
        return cls(status.st_gid if can_give else None, handed_on, mode, acl, refused)

    def hand_to(self, path: Path, *, mode: int | None = None) -> None:
        """Give it to a file or folder of ours; to a file, the permissions and ACL of a new one too, or `mode`. What the system refuses is noted."""
        try:
            found = path.lstat()
            if self.group is not None and found.st_gid != self.group:
                os.chown(path, -1, self.group, follow_symlinks=False)
            if self.acl is not None and stat.S_ISREG(found.st_mode):
                give_acl(path, self.acl)
            has = stat.S_IMODE(path.lstat().st_mode)
            of_file = self.mode if mode is None else mode
            wanted = has | (stat.S_ISGID if self.handed_on else 0) if stat.S_ISDIR(found.st_mode) else of_file
            if has != wanted and not stat.S_ISLNK(found.st_mode):
                path.chmod(wanted)
        except OSError as error:  # user namespaces, FUSE and CIFS refuse it in ways of their own
            self.refused.append((path, error.strerror or str(error)))

    def hand_to_kept(self, path: Path, undo: contextlib.ExitStack) -> None:
        """Give it to a file that stays, and may be served under another name at this moment; `undo` gives back what it had. Raises OSError."""
        undo.callback(self._give_back, path, standing_of(path))
        self.hand_to(path)

    def _give_back(self, path: Path, had: Standing) -> None:
        try:
            give_standing(path, had)
        except OSError as error:
            self.refused.append((path, error.strerror or str(error)))

    def leave_as(self, was: Path, folder: Path) -> None:
        """Make a folder of somebody what it was: its owner, permissions, ACL, further attributes and times. What the system refuses is noted."""
        try:
            copy_standing(was, folder)
        except OSError as error:
            self.refused.append((folder, error.strerror or str(error)))

    def note(self, repository: Path) -> str:
        """What a user should know; empty where all could be handed on."""
        if not self.refused:
            return ""
        (first, why), more = self.refused[0], len(self.refused) - 1
        return (
            f"{repository}: owner, group, ACL or permissions could not be given to {first.name}{f' and {more} more' if more else ''} ({why}): "
            "see whether the server, and whoever uses them, can read them"
        )
