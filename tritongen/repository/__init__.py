"""Model repositories on disk: an `Entry` in memory becomes a `Plan`, and `apply_plan` makes the disk look like it."""

from tritongen.repository.apply import Applied, apply_plan, conflicts
from tritongen.repository.entry import CopiedFile, Entry, EntryFile, KeptFile, TextFile
from tritongen.repository.files import FilePlan, apply_files, file_conflicts, plan_files
from tritongen.repository.plan import Action, Change, Plan, make_plan
from tritongen.repository.stamp import Made, Stamp, file_sha256, read_stamp

__all__ = [
    "Action",
    "Applied",
    "Change",
    "CopiedFile",
    "Entry",
    "EntryFile",
    "FilePlan",
    "KeptFile",
    "Made",
    "Plan",
    "Stamp",
    "TextFile",
    "apply_files",
    "apply_plan",
    "conflicts",
    "file_conflicts",
    "file_sha256",
    "make_plan",
    "plan_files",
    "read_stamp",
]
