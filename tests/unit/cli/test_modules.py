"""`python -m`: the command without the script that an installation makes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["tritongen", "tritongen.cli.entry", "tritongen.cli.main"])
def test_a_module_that_is_run_is_the_command(module, tmp_path):
    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)

    helped, refused = run("--help"), run("render", "none.yaml")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "write the model repository of a spec" in helped.stdout
    assert refused.returncode == 2
    assert "none.yaml" in refused.stderr
