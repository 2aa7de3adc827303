"""`tritongen render` killed between every two system calls that change a disk, as strace sees them."""

import subprocess
import sys

import pytest
from crashes import SPECS, Scenario

pytestmark = pytest.mark.system

CHANGING = (
    "mkdir",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "chmod",
    "fchmod",
    "utimensat",
    "syncfs",
    "fsync",
    "flock",
    "write",
)
CALLS = {**dict.fromkeys(CHANGING, ""), "openat": "O_CREAT", "ioctl": "FICLONE"}
"""System calls, and what those that matter have among their arguments."""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    return Scenario(tmp_path_factory.mktemp("killed"))


def render(scenario, log, *options):
    """The render under strace; its exit status, negative where it was killed."""
    program = [sys.executable, "-c", "from tritongen.cli.main import main; main()"]
    arguments = ["render", str(scenario.folder / "new.yaml"), "-o", str(scenario.root), "--prune"]
    return subprocess.run(  # noqa: PLW1510 - the status is the result
        ["strace", "-f", "-o", str(log), *options, *program, *arguments], capture_output=True, timeout=120
    ).returncode


@pytest.mark.parametrize("call", CALLS)
def test_before_each_call(scenario, tmp_path, call):
    scenario.reset()
    assert render(scenario, tmp_path / "trace", "-e", f"trace={','.join(CALLS)}") == 0
    lines = [line.split(maxsplit=1) for line in (tmp_path / "trace").read_text(errors="replace").splitlines()]
    main = lines[0][0]  # strace counts the calls of each thread by itself, and this one writes
    made = [line for thread, line in lines if thread == main]
    assert {"renameat2", "utimensat", "openat"} <= {line.partition("(")[0] for line in made}, "the calls must be those that Python makes, or nothing is proved"
    faults = []
    numbered = enumerate((line for line in made if line.startswith(f"{call}(")), 1)
    for number in [number for number, line in numbered if CALLS[call] in line]:
        scenario.reset()
        status = render(scenario, tmp_path / "trace", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
        assert status != 0, f"{call} {number} was not reached"
        after = SPECS[number % len(SPECS)]
        faults += [f"{call} {number}, then {after}: {fault}" for fault in (*scenario.faults(), *scenario.faults_of_next(after))]
    assert faults == []
