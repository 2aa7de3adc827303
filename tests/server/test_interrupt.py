"""Ctrl-C and SIGTERM while `tritongen serve` starts: one word, the usual exit code, nothing left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tritongen.server import runtime

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
LISTENING = """
import os, sys
from tritongen.cli.entry import main
# What main imports it does once it listens to signals.
sys.addaudithook(lambda event, about: event == "import" and about[0] == "tritongen.cli.main" and os.write({to}, b"."))
main()
"""
COMMAND = ["serve", "spec.yaml", "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]


def left_of(pid):
    return [path for folder in (runtime.base_folder(), runtime.SHM) for path in folder.glob(f"tritongen-{pid}-*")]


def interrupted(folder, number, after_s):
    """Send a signal so long after the command began to listen to any; its exit code, what it said, and what is left of it."""
    listening, to = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING.format(to=to), *COMMAND],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        pass_fds=[to],
    )
    os.close(to)
    assert os.read(listening, 1) == b"."
    os.close(listening)
    time.sleep(after_s)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err, left_of(process.pid)


@pytest.mark.parametrize(
    ("number", "after_s"),
    [(signal.SIGINT, 0.0), (signal.SIGTERM, 0.0), (signal.SIGINT, 0.3), (signal.SIGTERM, 0.5), (signal.SIGINT, 0.8), (signal.SIGTERM, 1.2)],
)
def test_a_signal_at_any_moment(project, number, after_s):
    code, out, err, left = interrupted(project, number, after_s)
    assert "Traceback" not in err
    if out:  # it was ready already: that is how a server is stopped
        assert "ready in" in out
        assert code in (0, 128 + number)
    else:
        assert (code, err.split()) == (128 + number, ["interrupted"])
    assert left == []


def test_a_signal_during_an_import_waits_for_its_end(tmp_path):
    """Extension modules that import others make another error of an interrupt, and print it."""
    (tmp_path / "slow.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntry:\n    time.sleep(0.1)\nexcept KeyboardInterrupt:\n    print('swallowed')\n"
    )
    script = (
        "import tritongen.cli.main as cli, tritongen.cli.entry as entry, time\ndef run():\n    import slow\n    time.sleep(600)\ncli.main = run\nentry.main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGTERM, "", "interrupted\n")
