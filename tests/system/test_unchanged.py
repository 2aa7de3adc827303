"""What the operating system sees of a render that has nothing to do."""

import re
import subprocess
import sys

import networks
import pytest

pytestmark = pytest.mark.system

RENDER = [sys.executable, "-c", "from tritongen.cli.main import main; main()", "render", "spec.yaml"]
CHANGES = "openat,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,truncate,ftruncate,chmod,fchmodat,utimensat"


def calls_that_change(folder, trace: str) -> list[str]:
    """Successful system calls that open for writing, make, move or remove something under `folder`."""
    changing = []
    for line in trace.splitlines():
        if str(folder) not in line and '"spec' not in line and "model_repository" not in line:
            continue
        if re.search(r"= -1 E\w+", line):
            continue
        if "openat(" not in line or re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", line):
            changing.append(line)
    return changing


def traced_render(folder) -> str:
    log = folder.parent / "trace.txt"
    subprocess.run(["strace", "-f", "-e", f"trace={CHANGES}", "-o", str(log), *RENDER], cwd=folder, check=True, capture_output=True, timeout=120)
    return log.read_text(errors="replace")


def test_a_second_render_writes_no_byte(tmp_path):
    folder = tmp_path / "project"
    networks.mlp(folder / "mlp.onnx")
    (folder / "spec.yaml").write_text("version: 1\nmodels:\n  - {name: mlp, source: mlp.onnx, batching: {max: 8}}\n")
    first, second = traced_render(folder), traced_render(folder)
    assert calls_that_change(folder, first), "the first render must be seen to write, or the second proves nothing"
    assert calls_that_change(folder, second) == []
