"""`tritongen render` killed between every two system calls that change a disk, as strace sees them."""

import subprocess
import sys
from collections import Counter

import pytest
from crashes import Scenario

pytestmark = pytest.mark.system

CALLS = ("mkdir", "rename", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "syncfs", "fsync", "flock", "write")


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
    counted = Counter(line.split()[1].partition("(")[0] for line in (tmp_path / "trace").read_text(errors="replace").splitlines())
    assert counted["renameat2"] > 3, "the calls must be those that Python makes, or nothing is proved"
    faults = []
    for number in range(1, counted[call] + 1):
        scenario.reset()
        status = render(scenario, tmp_path / "trace", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
        assert status != 0, f"{call} {number} was not reached"
        faults += [f"{call} {number}: {fault}" for fault in (*scenario.faults(), *scenario.faults_of_next())]
    assert faults == []
