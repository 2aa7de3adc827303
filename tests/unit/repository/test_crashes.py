"""Renders that are killed: what they leave is old or new, model by model, and the next one finishes. `tests/crashes.py` does the killing."""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from crashes import SPECS

TESTS = Path(__file__).parents[2]


def campaign(folder, *arguments):
    """What a campaign found, in a folder of its own in `folder`: faults, and how many renders were killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS.parent), str(TESTS)))}
    done = subprocess.run(  # noqa: PLW1510 - its output says more than an exception
        [sys.executable, str(TESTS / "crashes.py"), tempfile.mkdtemp(dir=folder), *arguments], env=environment, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def judge(found, least):
    """No faults, and so many killed that something was proved."""
    assert {name: result["faults"] for name, result in found.items()} == {name: [] for name in least}
    assert {name for name, result in found.items() if result["killed"] < least[name]} == set()


def test_a_sample(memory):
    """Other steps each time, so that all are seen in the end; the names say which."""
    least = {f"steps:40:{random.randrange(40)}": 2, f"steps:40:noexchange:{random.randrange(40)}": 2, "moments:3": 3}
    least |= {f"steps:64:deploy:{random.randrange(64)}": 3}
    judge(campaign(memory, *least), least)


@pytest.mark.soak
def test_every_step_and_five_hundred_moments(memory):
    least = {f"steps:1:{then}": 80 for then in SPECS} | {"steps:1:noexchange": 80, "moments:500": 500}
    least |= {f"steps:1:deploy:{then}": 200 for then in SPECS} | {"moments:100:deploy": 100}
    judge(campaign(memory, *least), least)
