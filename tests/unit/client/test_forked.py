"""A client over HTTP in a process that was forked off."""

import subprocess
import sys

from scripted_triton import serve

PARENT = """
import os, sys
import numpy as np
import tritongen

with tritongen.Client(sys.argv[1]) as client:
    client.infer("m", x=np.ones((1, 2), np.float32))
    child = os.fork()
    client.infer("m", x=np.full((1, 2), 2 if child else 3, np.float32))
    if child == 0:
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_parent_and_child_share_no_connection():
    """Two processes that read from one would take each other's answers."""
    with serve() as triton:
        done = subprocess.run([sys.executable, "-c", PARENT, triton.url], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(triton.asked) == 3
        assert len({id(asked.connection) for asked in triton.asked}) == 2
