"""A model repository as it lies on disk: folders, versions, file names, the bytes of each config. Nothing is interpreted here and no model file is opened.

What Triton would follow or take for a model, it is told of; what leads out of the repository (a link) or is no regular file (a pipe) is named and left alone.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritongen.modelconfig.reading import MAX_BYTES
from tritongen.repository.entry import CONFIG

CONFIG_NAME = CONFIG.name
_MOST_ENTRIES = 50_000
_DEEPEST = 8
_NO_FILES = {"folder": "it is a folder", "link": "it is a link that leads out of the repository", "nowhere": "it is a link that leads nowhere"}


@dataclass(frozen=True)
class FileFacts:
    """One directory entry.

    Attributes:
        kind: `file`, `folder`, `link` (one that leads out of the repository), `nowhere` (a link without a target, or in a circle) or `other` (a pipe, a
            device, a socket).
        size: bytes; 0 for what is no file.
        readable: whether this process may read it.
        mode: its permissions, as `chmod` takes them.
    """

    kind: str
    size: int = 0
    readable: bool = True
    mode: int = 0o644

    @property
    def can_be_read(self) -> bool:
        """Whether it is a file with bytes that this process may look at."""
        return self.kind == "file" and self.readable


@dataclass(frozen=True)
class ModelFolder:
    """A model's folder.

    Attributes:
        name: the folder's name.
        path: where it is; for messages and for opening its model file.
        entries: everything below it, by POSIX path relative to it.
        config: the bytes of config.pbtxt; None where there is none, or it cannot be read (`config_problem` says why).
        config_problem: why an existing config.pbtxt was not read.
        truncated: the folder holds more than was looked at, so that a file missing in `entries` may be there.
        locked: its permissions where this process may not list it, so that nothing is known of what is in it; None else.
        link: `link` or `nowhere` where the folder itself is such a link in the repository's folder: nothing is known of what it leads to. Empty else.
    """

    name: str
    path: Path
    entries: Mapping[str, FileFacts] = field(default_factory=dict)
    config: bytes | None = None
    config_problem: str = ""
    truncated: bool = False
    locked: int | None = None
    link: str = ""

    @property
    def config_is_out_of_reach(self) -> bool:
        """Whether config.pbtxt was not read for a reason of ours: Triton may read it."""
        if not self.config_problem:
            return False
        facts = self.entries[CONFIG_NAME]
        return facts.kind == "link" or (facts.kind == "file" and facts.readable)

    @property
    def subfolders(self) -> tuple[str, ...]:
        """Names of the folders directly below, as Triton lists them: sorted, hidden ones too."""
        return tuple(sorted(name for name, facts in self.entries.items() if "/" not in name and facts.kind == "folder"))

    def at(self, path: str = "") -> str:
        """A path in the folder, or the folder itself, as a shell takes it in the current folder; for the commands in hints."""
        whole = str(self.path / path)
        return shlex.quote(f"./{whole}" if whole.startswith("-") else whole)

    def files_in(self, subfolder: str) -> tuple[str, ...]:
        """Names of what lies directly in a sub-folder (files and folders), sorted; empty where there is no such folder."""
        prefix = f"{subfolder}/"
        return tuple(sorted(name[len(prefix) :] for name in self.entries if name.startswith(prefix) and "/" not in name[len(prefix) :]))


@dataclass(frozen=True)
class Repository:
    """A repository's folder and the models in it. Triton takes each of its folders for one, and each link that does not lead to a file."""

    path: Path
    models: tuple[ModelFolder, ...]


def scan_repository(path: Path) -> Repository:
    """Look at a repository. Raises OSError where its folder cannot be listed."""
    root = path.resolve()
    models = []
    with os.scandir(path) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        kind = _facts(entry, root).kind
        if kind == "folder":
            models.append(scan_model(path / entry.name, root=root))
        elif kind == "nowhere" or (kind == "link" and not _leads_to_a_file(entry)):
            models.append(ModelFolder(entry.name, path / entry.name, link=kind))
    return Repository(path, tuple(models))


def scan_model(path: Path, *, root: Path | None = None) -> ModelFolder:
    """Look at one model's folder. Links that lead out of `root` (by default the folder itself) are not followed."""
    root = root if root is not None else path.resolve()
    name = path.resolve().name if path.name in ("", ".", "..") else path.name
    if not os.access(path, os.R_OK | os.X_OK):
        return ModelFolder(name, path, locked=stat.S_IMODE(path.stat().st_mode))
    entries: dict[str, FileFacts] = {}
    complete = _walk(path, root, entries)
    config, problem = _read_config(path / CONFIG_NAME, entries.get(CONFIG_NAME))
    return ModelFolder(name, path, entries, config, problem, truncated=not complete)


def _walk(folder: Path, root: Path, entries: dict[str, FileFacts]) -> bool:
    """Fill `entries`, the nearest first, so that what Triton looks for is there even where a folder holds too much. False where it does."""
    waiting = deque([(str(folder), "", 0)])
    while waiting:
        here, prefix, depth = waiting.popleft()
        try:
            with os.scandir(here) as listed:
                found = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            if len(entries) >= _MOST_ENTRIES:
                return False
            facts = _facts(entry, root)
            entries[prefix + entry.name] = facts
            if facts.kind == "folder" and facts.readable and depth < _DEEPEST:
                waiting.append((entry.path, f"{prefix}{entry.name}/", depth + 1))
    return True


def _facts(entry: os.DirEntry[str], root: Path) -> FileFacts:
    try:
        if entry.is_symlink() and not Path(entry.path).resolve(strict=True).is_relative_to(root):
            return FileFacts("link")
        status = entry.stat()
    except RuntimeError:  # a circle of links, up to Python 3.12
        return FileFacts("nowhere")
    except OSError as error:
        return FileFacts("nowhere" if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) else "link")
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return FileFacts("folder", 0, os.access(entry.path, os.R_OK | os.X_OK), mode)
    if stat.S_ISREG(status.st_mode):
        return FileFacts("file", status.st_size, os.access(entry.path, os.R_OK), mode)
    return FileFacts("other", mode=mode)


def _leads_to_a_file(entry: os.DirEntry[str]) -> bool:
    """Whether a link leads to something that Triton sees is no folder. What may not be looked at can be one."""
    try:
        return not entry.is_dir()
    except OSError:
        return False


def _read_config(path: Path, facts: FileFacts | None) -> tuple[bytes | None, str]:
    if facts is None:
        return None, ""
    if facts.kind != "file":
        return None, _NO_FILES.get(facts.kind, "it is not a regular file")
    if facts.size > MAX_BYTES:
        return None, f"it has {facts.size:,} bytes, and more than {MAX_BYTES:,} are not read"
    try:
        return path.read_bytes(), ""
    except OSError as error:
        return None, f"{error.strerror} (mode {facts.mode:03o})"
