"""Locust's own page beside a run of ours; and the line that people see meanwhile."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from known_server import MODEL, ROOT, known_server

from tritongen.cli.load_live import LiveLine
from tritongen.load.arrivals import Stage
from tritongen.load.engine import free_port
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Key, Recorder
from tritongen.load.run import Progress

SOON_S = 120
"""Within which processes start and end on a machine that does other things too."""


def load(*arguments):
    command = [sys.executable, "-m", "tritongen", "load", MODEL, *map(str, arguments)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def statistics(port):
    """What Locust's page says of the requests; nothing before it is there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats/requests", timeout=5) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError):
        return {"stats": []}


@pytest.mark.system
def test_locusts_page_has_the_requests_of_a_run_that_goes_on(tmp_path):
    port, counts = free_port(), {}
    with known_server(tmp_path, service_s=0.005) as server:
        run = load("-u", server.urls["http"], "--users", 1, "--duration", "8s", "--warmup", 0, "--format", "json", "--web-port", port)
        limit = time.monotonic() + SOON_S
        while not counts.get(MODEL) and time.monotonic() < limit:
            counts = {entry["name"]: entry["num_requests"] for entry in statistics(port)["stats"]}
            time.sleep(0.1)
        out, said = run.communicate(timeout=SOON_S)
    assert counts[MODEL] > 0
    data = json.loads(out)
    assert data["requests"]["ok"] >= counts[MODEL]
    assert f"Locust's page: http://127.0.0.1:{port}" in said
    assert data["complete"], data
    assert data["lag_ms"]["count"] > 50
    assert (data["settings"]["processes"], data["settings"]["users"]) == (1, 1)
    assert {"python", "platform", "cores", "grpcio", "locust"} <= set(data["versions"])


@pytest.mark.system
def test_a_port_that_is_taken_is_said_by_its_reason(tmp_path):
    with socket.socket() as taken, known_server(tmp_path, service_s=0.0) as server:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        runs = [
            load("-u", server.urls["http"], "--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port),
            load("-u", server.urls["http"], "--web-port", port),
        ]
        for run in runs:
            _, said = run.communicate(timeout=SOON_S)
            assert run.returncode == 3, said
            assert "Locust cannot listen" in said
            assert "in use" in said
            assert "Traceback" not in said


def test_the_line_says_where_the_run_is_and_what_failed():
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(2, 50, 50, "warmup", measured=False), Stage(10, 50, 50, "50/s")))
    line, so_far = LiveLine(plan), Recorder()
    assert line.text(Progress(-1.0, so_far, Recorder(), 0)) == "starting"
    assert line.text(Progress(1.2, so_far, Recorder(), 3)).startswith("warmup   1.2 of 2 s")
    for tenth in range(21, 61):
        latest = Recorder()
        latest.add(Key("m", "grpc", 1, "ok"), tenth / 10, 0.010, 0.0)
        latest.add(Key("m", "grpc", 1, "deadline"), tenth / 10, 5.0, 0.0, "too late")
        latest.miss("m", 1, tenth / 10)
        so_far.merge(latest)
        line.measure(Progress(tenth / 10, so_far, latest, 7))
    text = line.text(Progress(6.0, so_far, Recorder(), 7))
    # Two of each came every tenth of a second.
    assert " ".join(text.split()) == "4.0 of 10 s 21.0/s p99 10.01 ms under way 7 errors 80"
