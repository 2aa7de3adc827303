"""What can happen to a folder or file of a repository."""

from __future__ import annotations

import enum


class Action(enum.Enum):
    """What happens to one model's folder, or to a file that belongs to no single model."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"
    CONFLICT = "conflict"
    ORPHAN = "orphan"
