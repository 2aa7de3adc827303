"""`tritongen load` against a real Triton."""

import json
from pathlib import Path

import models
import pytest
import schemas

import tritongen as package

pytestmark = pytest.mark.server

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/load_result.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    models.put(repository, "linear", models.linear(), models.LINEAR + "dynamic_batching {}\n")
    with package.serve(repository, http_port=0, grpc_port=0, metrics_port=0, disable_auto_complete=True) as running:
        yield running


@pytest.mark.parametrize("protocol", ["grpc_url", pytest.param("http_url", marks=pytest.mark.system)])
def test_an_open_loop_sends_what_is_due_and_reports_both_sides(server, tmp_path, tritongen, protocol):
    out = tmp_path / "result.json"
    arguments = ["--rate", 100, "--duration", "1s", "--warmup", "300ms", "--batch-mix", "1:50%,3:50%", "--slo", "p50=5s,error_rate=0%"]
    done = tritongen("load", "linear", "-u", getattr(server, protocol), *arguments, "--metrics-url", server.metrics_url, "-o", out)
    data = json.loads(out.read_text())
    assert data["requests"]["ok"] == pytest.approx(100, abs=50)
    assert data["error_rate"] == 0
    assert data["slo"]["kept"] is data["valid"]
    assert data["slo"]["missed"] == []
    assert data["models"][0]["server"]["inferences"] == pytest.approx(2 * data["requests"]["ok"], rel=0.25)
    assert "pending requests" in data["models"][0]["server"]["gauges"]  # the server's address alone stands for its page
    assert data["latency_ms"]["p50"] > 0
    assert "requests/s sent of" in done.out
    assert done.code in (0, 1)  # a machine that is too busy makes a run invalid, which the report says
    assert ("NOT VALID" in done.out) == (done.code == 1)


@pytest.mark.system
def test_a_report_and_an_earlier_result_beside_this_one(server, tritongen, tmp_path):
    earlier, page = tmp_path / "earlier.json", tmp_path / "report.html"
    arguments = ["load", "linear", "-u", server.grpc_url, "--warmup", "0", "--metrics-url", server.metrics_url]
    tritongen(*arguments, "--rate", 50, "--duration", "1s", "-o", earlier)
    assert schemas.accepts(SCHEMA, json.loads(earlier.read_text()))
    done = tritongen(*arguments, "--stages", "50:500ms,100:500ms", "--compare", earlier, "--html", page)
    assert "settings and versions that differ" in done.out
    assert "stages.1: not there, now" in done.out
    text = page.read_text()
    for words in ("Latency over time", "Latency by throughput", "Where the time goes", "Executed batches", "the earlier run"):
        assert words in text


def test_a_closed_loop_is_called_one(server, tritongen, tmp_path):
    done = tritongen("load", "linear", "-u", server.http_url, "--users", 4, "--duration", "500ms", "--warmup", "0", "-o", tmp_path / "result.json")
    assert "closed loop of 4 users" in done.out
    (stage,) = json.loads((tmp_path / "result.json").read_text())["stages"]
    assert stage["latency_ms"]["count"] > 0


@pytest.mark.system
def test_a_promise_that_is_not_kept_is_exit_1(server, tritongen):
    done = tritongen("load", "linear", "-u", server.grpc_url, "--rate", 50, "--duration", "500ms", "--warmup", "0", "--slo", "p50=1us")
    assert done.code == 1
    assert "SLO MISSED: p50 is" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing"], 3, "no model 'nothing'"),
        (["linear", "--batch-mix", "9"], 2, "9 rows is more than the model takes"),
        (["linear", "--rate", "5", "--users", "2"], 2, "exclude one another"),
        (["linear", "--stages", "fast"], 2, "is no stage"),
        (["linear", "--data", "/nowhere.npz"], 2, "there is no file or folder /nowhere.npz"),
        (["linear", "--arrivals", "trace:/nowhere"], 2, "there is no such file"),
        (["linear", "--duration", "10"], 2, "has no unit"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_clock_starts(server, tritongen, arguments, code, words):
    done = tritongen("load", *arguments, "-u", server.grpc_url)
    assert (done.code, words in done.err) == (code, True), done.err


def test_a_server_that_is_not_there_is_said(tritongen):
    done = tritongen("load", "linear", "-u", "grpc://127.0.0.1:1")
    assert done.code == 3
    assert "127.0.0.1:1" in done.err
