"""examples/service: the application answers through a real Triton, and its locustfile runs both of its users."""

import contextlib
import csv
import os
import subprocess
import sys
from pathlib import Path

import models
import numpy as np
import pytest
from fastapi.testclient import TestClient

import tritongen
from tritongen import errors

pytestmark = pytest.mark.server
SERVICE = Path(__file__).parents[2] / "examples/service"


@pytest.fixture(scope="module")
def triton(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    models.put(repository, "linear", models.linear(), models.LINEAR)
    with tritongen.serve(repository, http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as server:
        yield server


@pytest.fixture
def service(triton, monkeypatch):
    monkeypatch.syspath_prepend(SERVICE)
    monkeypatch.setenv("TRITON_URL", triton.grpc_url)
    monkeypatch.setenv("MODEL", "linear")
    import app

    with TestClient(app.app) as client:
        yield client


def test_the_endpoint_answers_and_says_what_does_not_fit(service):
    x = np.random.default_rng(0).standard_normal((2, 64)).tolist()
    answer = service.post("/predict", json={"x": x})
    assert (answer.status_code, np.shape(answer.json()["y"])) == (200, (2, 16))
    wrong = service.post("/predict", json={"z": 1})
    assert wrong.status_code == 422
    assert "input 'x' is missing" in wrong.json()["errors"]
    nothing = service.post("/predict", json={"x": [[None] * 64]})
    assert nothing.status_code == 422
    assert "null" in nothing.json()["errors"][0]
    assert service.get("/ready").json() == {"ready": True}


def test_a_model_that_is_not_there_is_no_readiness(service, monkeypatch):
    monkeypatch.setenv("MODEL", "nothing")
    assert service.get("/ready").status_code == 503
    assert service.post("/predict", json={"x": 1}).status_code == 502


def test_a_request_that_was_cut_fails_as_its_parts_did(service):
    import app

    full, late = errors.Overloaded("the queue is full"), errors.DeadlineExceeded("no answer")
    cut = [errors.PartialFailure("some of the parts failed", failures={(0, 8): full, (8, 16): other}) for other in (full, late)]
    assert [app.status_of(error) for error in (full, late, *cut)] == [429, 504, 429, 502]


@pytest.mark.parametrize("user", ["TritonclientUser", "TritongenUser"])
def test_plain_locust_runs_each_way_of_sending(triton, tmp_path, user):
    host = triton.grpc_url.removeprefix("grpc://")
    command = [sys.executable, "-m", "locust", "-f", str(SERVICE / "locustfile.py"), "--headless", "-u", "4", "-r", "4", "--host", host, "--csv", "out", user]
    environment = {**os.environ, "MODEL": "linear", "SHAPE": "1x64", "PYTHONPATH": str(SERVICE.parents[1])}
    total = {"Request Count": "0"}
    # A busy machine may need the second, longer run. So may tritonclient's async_infer under gevent: of some fifty runs one never got a callback.
    for length in ("3s", "40s"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run([*command, "-t", length], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            with (tmp_path / "out_stats.csv").open() as file:
                total = list(csv.DictReader(file))[-1]
        if int(total["Request Count"]) >= 4:
            break
    assert int(total["Request Count"]) >= 4, "each of four users was answered"
    assert int(total["Failure Count"]) == 0
