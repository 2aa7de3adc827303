"""`make demo`: what a new user runs first."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


def test_every_answer_of_the_demo_is_that_of_onnxruntime():
    done = subprocess.run([sys.executable, "examples/quickstart/demo.py"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ready in" in done.stdout
