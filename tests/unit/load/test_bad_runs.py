"""Runs that go wrong: each ends within its limits, with a verdict and what was measured until then."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from known_server import MODEL, ROOT, known_server

SOON_S = 40
"""Within which processes start and end on a machine that does other things too."""


@pytest.fixture
def load(tmp_path):
    """Starts `tritongen load` in a process of its own, with a folder of its own for everything; its result is `out.json` there."""
    started = []

    def start(name, url, *arguments):
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-m", "tritongen", "load", MODEL, "-u", url, "--warmup", "0", "-o", folder / "out.json", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        started.append(subprocess.Popen([*map(str, command)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1], folder

    yield start
    for process in started:
        process.kill()
        process.communicate()


def begun(run):
    """Wait until it has measured something."""
    process, folder = run
    end = time.monotonic() + SOON_S
    while not any('\\"ok\\"' in file.read_text() for file in folder.glob("tritongen-load-*/reports.jsonl")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    return run


def ended(run):
    """Exit code, what was printed, the result."""
    process, folder = run
    said = "".join(process.communicate(timeout=SOON_S))
    assert "Traceback" not in said
    assert not list(folder.glob("tritongen-load-*"))
    return process.returncode, said, json.loads((folder / "out.json").read_text())


def test_ctrl_c_a_server_that_dies_and_a_rate_that_cannot_be_made(load, tmp_path):
    (tmp_path / "dies").mkdir()
    (tmp_path / "stays").mkdir()
    with known_server(tmp_path / "stays", service_s=0.0) as stays:
        with known_server(tmp_path / "dies", service_s=0.0) as dies:
            broken_off = [load(f"stopped {count}", stays.urls["http"], "--rate", 50, "--duration", "60s", "--processes", count) for count in (1, 2)]
            left = load("left", dies.urls["grpc"], "--rate", 50, "--duration", "5s", "--deadline", "1s", "--slo", "error_rate=1%")
            begun(left)
        for process, _ in map(begun, broken_off):
            process.send_signal(signal.SIGINT)
        results = [ended(run) for run in (*broken_off, left)]
        too_much = ended(load("too much", stays.urls["http"], "--rate", 200_000, "--duration", "300ms", "--deadline", "2s"))
    for code, said, data in results[:2]:
        assert (code, data["complete"]) == (130, False)
        assert "BROKEN OFF" in said or "NOT VALID" in said  # the machine is too busy
        assert data["requests"]["ok"] > 0
    code, said, data = results[2]
    assert code == 1
    assert data["complete"]
    assert data["requests"]["ok"] > 0
    assert data["requests"]["connection"] > 0
    assert "SLO MISSED: the error rate is" in said
    code, said, data = too_much
    assert (code, data["valid"]) == (1, False)
    assert "NOT VALID" in said
    assert data["missed"] > 0


def test_a_trace_that_is_none_is_refused_before_the_clock_starts(tritongen, tmp_path):
    trace = tmp_path / "trace.txt"
    trace.write_text("0.5\n0.25\n")
    with known_server(tmp_path, service_s=0.0) as server:
        done = tritongen("load", MODEL, "-u", server.urls["http"], "--arrivals", f"trace:{trace}", "--duration", "2s")
    assert done.code == 2
    assert "line 2 is 0.25, and the times of a trace ascend from 0" in done.err
