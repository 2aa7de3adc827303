"""Model repositories on disk: an `Entry` in memory becomes a `Plan`, and `apply_plan` makes the disk look like it."""

from tritongen.repository.apply import Applied, apply_plan
from tritongen.repository.entry import CopiedFile, Entry, EntryFile, KeptFile, TextFile
from tritongen.repository.plan import Action, Change, Plan, SharedChange, make_plan
from tritongen.repository.stamp import Made, Stamp, file_sha256, read_stamp

__all__ = [
    "Action",
    "Applied",
    "Change",
    "CopiedFile",
    "Entry",
    "EntryFile",
    "KeptFile",
    "Made",
    "Plan",
    "SharedChange",
    "Stamp",
    "TextFile",
    "apply_plan",
    "file_sha256",
    "make_plan",
    "read_stamp",
]
