"""Where a model's files wait before they are put in place, and what becomes of them when a render is interrupted or killed.

A staging folder has parts: `new` holds models that are complete, `artifacts` their files for beside the repository, `shared` those of no single model, `old` a
model that was moved out of the way on a filesystem that cannot exchange two folders, `was` what a model's artifacts were until all of it is in place, `gone`
what may be deleted. What lies in `old` without a namesake in the repository is put back: by the render itself when it is
interrupted, by the next one when it was killed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import RepositoryError
from tritongen.repository.artifacts import take_back
from tritongen.repository.place import artifacts_beside, is_link_of_another, repository_root
from tritongen.repository.private import as_owners, find_leftovers, make_private, strangers, taken_over
from tritongen.repository.system import Hold, same_mount, sync_folder, try_lock, user_name

_PARTS = ("new", "artifacts", "shared", "old", "was", "gone")
_PAUSE_S = 0.05
LOCK_WAIT_S = 60.0
"""How long a render waits for another one that writes the same repository."""

REPOSITORY = "the model repository"
"""What its folder is called."""


@contextlib.contextmanager
def staging(place: Path, root: Path) -> Iterator[Path]:
    """A staging folder in `place` for the repository at `root`, gone afterwards. Raises OSError."""
    private = make_private(place, root)
    try:
        for part in _PARTS:
            (private.path / part).mkdir()
        yield private.path
    finally:
        # Not removed where that fails: it may hold the only copy of a model. The next render tries again.
        put_back(private.path, root)
        private.remove()


def staging_place(root: Path) -> Path:
    """The folder to stage in: beside the folder `root`, where no server looks; in it where a rename cannot cross from there, or nothing can be made there.

    Raises OSError.
    """
    beside = root.parent
    return beside if os.access(beside, os.W_OK | os.X_OK) and same_mount(beside, root) else root


def put_back(staged: Path, root: Path) -> None:
    """Give a model that was moved out of the way its place again, unless its successor is there. Raises OSError."""
    old = staged / "old"
    names = sorted(path.name for path in old.iterdir()) if old.is_dir() else []
    for name in names:
        if not (root / name).exists():
            (old / name).rename(root / name)
    if names:
        sync_folder(root)


def leftovers(root: Path) -> list[Path]:
    """What killed renders of the repository at `root` left behind. Raises OSError."""
    inside = [folder for folder in (root, artifacts_beside(root)) if folder.is_dir() and not is_link_of_another(folder, root)]
    own = [root.parent, *inside]
    # Where a workspace lies when the repository's parent was not there yet, or could not be written to.
    others = [folder for folder in (*root.parent.parents, *_temporary_place()) if folder not in own]
    places = [(folder, folder in own) for folder in dict.fromkeys([*own, *others]) if folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)]
    return [leftover for place, is_own in places for leftover in find_leftovers(place, root, own=is_own)]


def _temporary_place() -> list[Path]:
    """The system's folder for temporary files; none where it has none, as in a container that is read-only but for the repository."""
    try:
        return [Path(tempfile.gettempdir()).resolve()]
    except FileNotFoundError:
        return []


def half_done_by_others(root: Path, *places: Path) -> str:
    """What is said where something looks like an edit and may be what a killed render of another user left half done; empty where none left anything there.

    `root`: the repository, or the leading file of a deployment; `places`: where its renders stage.
    """
    found = []
    for place in places:
        with contextlib.suppress(OSError):  # it is not there, or not for this user's eyes
            found += strangers(place, root)
    if not found:
        return ""
    folder, user = found[0]
    return (
        f"a render of user {user_name(user)} left {folder}, or still runs: what it had half done is put right "
        "by the next render of that user, or of root. Else "
    )


def recover(root: Path, *, wait_s: float = LOCK_WAIT_S) -> None:
    """Put right what a killed render of the repository at `root` left: a model out of its place is put back, the rest is removed.

    Raises RepositoryError where another render writes and does not end within `wait_s` seconds, and where the disk refuses.
    """
    root = repository_root(root)
    try:
        if root.is_dir() and leftovers(root):
            with locked(root, wait_s=wait_s):
                clear(root)
    except OSError as error:
        message = f"what a killed render left cannot be put right: {error.strerror or error}"
        raise RepositoryError([Diagnostic("TG044", message, Location(str(error.filename or root)), hint="check the place and its permissions")]) from error


def clear(root: Path) -> None:
    """`recover` for whoever holds the repository."""
    as_owners(leftovers(root), lambda left: _clear(root, left))


def _clear(root: Path, left: Sequence[Path]) -> None:
    with contextlib.ExitStack() as stack:
        # One render may have staged in two places, and each is needed to tell what it did.
        owned = [leftover for leftover in left if stack.enter_context(taken_over(leftover))]
        for leftover in owned:
            put_back(leftover, root)
        take_back(root, owned)


@contextlib.contextmanager
def locked(root: Path, *, wait_s: float, what: str = REPOSITORY) -> Iterator[bool]:
    """Hold a folder against other renders, after making it where it is missing. False where its filesystem has no locks.

    The lock is on the folder itself: there is no file to leave behind, and a render that is killed holds nothing. Raises RepositoryError where another
    process holds it for `wait_s` seconds, OSError where the folder cannot be made. `what`: what the folder is, for people.
    """
    deadline = time.monotonic() + wait_s
    while True:
        root.mkdir(parents=True, exist_ok=True)
        with _held(root, shared=False) as hold:
            if hold is not None:
                yield hold is Hold.HELD
                return
        _pause(root, deadline, wait_s, what)


def no_locks(root: Path) -> str:
    """What a user should know of a folder whose filesystem has no locks."""
    return f"{root}: this filesystem has no locks for folders; no second render must write here at the same time"


@contextlib.contextmanager
def looked_at(root: Path, *, wait_s: float, what: str = REPOSITORY) -> Iterator[None]:
    """Keep renders from writing a folder while it is read: half of a model's files from before a swap and half from after it would look like an edit.

    Nothing is held where its folder is missing, or its filesystem has no locks. Raises as `locked` does.
    """
    deadline = time.monotonic() + wait_s
    while root.is_dir():
        with _held(root, shared=True) as hold:
            if hold is not None:
                yield
                return
        _pause(root, deadline, wait_s, what)
    yield


@contextlib.contextmanager
def _held(root: Path, *, shared: bool) -> Iterator[Hold | None]:
    """A lock on a folder that is there, until the block ends; None where another process holds it, or has removed the folder meanwhile."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield None
        return
    try:
        hold = try_lock(descriptor, shared=shared)
        yield None if hold is Hold.BUSY or not _leads_to(root, descriptor) else hold
    finally:
        os.close(descriptor)


def _pause(root: Path, deadline: float, waited_s: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise RepositoryError([_busy(root, waited_s, what)])
    time.sleep(_PAUSE_S)


def _leads_to(root: Path, descriptor: int) -> bool:
    """Whether a path still leads to the open folder: the render that held it may have removed it, since it made it for nothing."""
    try:
        return os.path.samestat(root.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _busy(root: Path, wait_s: float, what: str) -> Diagnostic:
    return Diagnostic(
        "TG048",
        f"another process has held {what} for {wait_s:g} seconds: a render that writes it or compares it",
        Location(str(root)),
        hint="run it again when that one is done; `lsof` names a process that has the folder open. "
        "A program that holds the folder itself (`flock`) must not start a render into it",
    )
