"""Renders that are killed before each of their system calls. One that takes minutes, and so has a file of its own."""

import pytest
from crashes import CALLS

from tests.unit.repository.test_crashes import campaign, judge


@pytest.mark.system
@pytest.mark.timeout(1200)
def test_before_each_call(memory):
    """Before every system call that changes a disk, as strace sees them."""
    least = {f"calls:{name}": 1 if name in ("renameat2", "utimensat", "openat", "fsync", "write") else 0 for name in CALLS}
    least |= {f"calls:{name}:deploy": 1 for name in ("rename", "linkat", "fsync")}
    judge(campaign(memory, *least), least)
