"""Model repositories on disk: an `Entry` in memory becomes a `Plan`, and `apply_plan` makes the disk look like it."""

from tritongen.repository.actions import Action
from tritongen.repository.apply import Applied, apply_plan, conflicts
from tritongen.repository.comparing import config_sha256, stamp_of, version_folders
from tritongen.repository.copying import Progress
from tritongen.repository.diffs import FileDiff, file_diffs, plan_diffs
from tritongen.repository.digests import file_sha256
from tritongen.repository.entry import CONFIG, CopiedFile, Entry, EntryFile, KeptFile, TextFile
from tritongen.repository.file_placing import HeldFiles, StagedFiles, apply_files, held_files, staged_files
from tritongen.repository.files import FilePlan, WantedFiles, file_conflicts, plan_files
from tritongen.repository.place import artifacts_beside, repository_root, root_to_write
from tritongen.repository.plan import Change, Plan, unreadable
from tritongen.repository.planning import make_plan, plan_again
from tritongen.repository.refusals import lost_plans
from tritongen.repository.room import bytes_to_copy, size_text
from tritongen.repository.shared import SharedChange, SharedFile, SharedFiles
from tritongen.repository.staging import LOCK_WAIT_S, looked_at, recover
from tritongen.repository.stamp import Made, Stamp, read_stamp

__all__ = [
    "CONFIG",
    "LOCK_WAIT_S",
    "Action",
    "Applied",
    "Change",
    "CopiedFile",
    "Entry",
    "EntryFile",
    "FileDiff",
    "FilePlan",
    "HeldFiles",
    "KeptFile",
    "Made",
    "Plan",
    "Progress",
    "SharedChange",
    "SharedFile",
    "SharedFiles",
    "StagedFiles",
    "Stamp",
    "TextFile",
    "WantedFiles",
    "apply_files",
    "apply_plan",
    "artifacts_beside",
    "bytes_to_copy",
    "config_sha256",
    "conflicts",
    "file_conflicts",
    "file_diffs",
    "file_sha256",
    "held_files",
    "looked_at",
    "lost_plans",
    "make_plan",
    "plan_again",
    "plan_diffs",
    "plan_files",
    "read_stamp",
    "recover",
    "repository_root",
    "root_to_write",
    "size_text",
    "staged_files",
    "stamp_of",
    "unreadable",
    "version_folders",
]
