"""What Prometheus says of its files: promtool of the syntax and of hours that pass quickly, and a live one of a Triton under load."""

import json
import math
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import models
import monitoring_cases as cases
import numpy as np
import pytest
import urllib3
from ruamel.yaml import YAML

import tritongen
from tritongen.diagnostics import Location
from tritongen.render.findings import Findings
from tritongen.render.monitoring import judge_promises, monitoring_files
from tritongen.render.promises import DEFAULT_QUANTILES, Exported
from tritongen.render.promql import promql_text
from tritongen.render.serving import exported
from tritongen.sources.flow import yaml_flow

pytestmark = pytest.mark.system

WAIT_S = 120
FIXTURES = Path(__file__).with_name("monitoring_rules.yml")
RULES = "prometheus/rules"


def promtool(*arguments, cwd):
    return subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, timeout=WAIT_S, check=False)


@pytest.mark.parametrize("name", cases.CASES)
def test_promtool_accepts_configuration_and_rules(tmp_path, name):
    cases.write(cases.files(name), tmp_path)
    done = promtool("check", "config", "prometheus/prometheus.yml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 rule files found" in done.stdout


def test_alerts_fire_when_they_should_and_only_then(tmp_path):
    folder = cases.write(cases.files("everything"), tmp_path) / RULES
    shutil.copy(FIXTURES, folder)
    done = promtool("test", "rules", FIXTURES.name, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


UP = {
    "dies after hours": ("1x960 0x400", {"4h2m": None, "4h4m": "Down", "5h": "Down", "5h2m": "Down", "5h3m": "Down", "5h30m": "Down"}),
    "builds engines at its first start": ("0x200 1x100", {"1m": None, "49m": None, "60m": None}),
    "never starts": ("0x400", {"61m": None, "66m": "Down", "99m": "Down"}),
    "is started again by hand": ("1x960 0 0 0 0 1x240", {"4h1m": None, "4h10m": None}),
    "crashes whenever it has answered for a minute": ("1x240 " + "0 0 0 0 1 1 1 1 " * 30, {"1h1m": None, "1h10m": "Restarts", "1h50m": "Restarts"}),
}
"""Whether the server shows metrics, every 15 s, and which alert fires at which time. Its first start may take 62 minutes."""


def test_only_a_server_that_was_never_up_has_the_time_of_a_first_start(tmp_path):
    folder = cases.write(monitoring_files(cases.spec(), Exported(), ready=(), start_us=62 * 60_000_000), tmp_path) / RULES
    asked = 'count by (alertname) (ALERTS{alertstate="firing"})'
    tests = [
        {
            "name": name,
            "interval": "15s",
            "input_series": [{"series": 'up{job="tritonserver", instance="tritonserver"}', "values": values}],
            "promql_expr_test": [
                {"eval_time": time, "expr": asked, "exp_samples": [{"labels": f'{{alertname="TritonServer{alert}"}}', "value": 1}] if alert else []}
                for time, alert in fires.items()
            ],
        }
        for name, (values, fires) in UP.items()
    ]
    test = {"rule_files": ["recording.yml", "alerts.yml"], "evaluation_interval": "15s", "tests": tests}
    (folder / "test.yml").write_text(yaml_flow(test), encoding="utf-8")
    done = promtool("test", "rules", "test.yml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_hostile_name_is_a_name_to_prometheus(tmp_path):
    folder = cases.write(cases.files("hostile"), tmp_path) / RULES
    selector = f"{{model={promql_text(cases.HOSTILE)}}}"
    series = {"series": f'nv_inference_request_summary_us{{model={promql_text(cases.HOSTILE)}, version="1", quantile="0.5"}}', "values": "60000x40"}
    counted = {"series": f'nv_inference_request_success{{model={promql_text(cases.HOSTILE)}, version="1"}}', "values": "0+150x40"}
    failed = {"series": f'nv_inference_request_failure{{model={promql_text(cases.HOSTILE)}, version="1"}}', "values": "0x40"}
    burn = {"eval_time": "5m", "expr": f"max(model_objective:triton_slo_burn:5m{selector})", "exp_samples": [{"labels": "{}", "value": 50}]}
    test = {
        "rule_files": ["recording.yml", "alerts.yml"],
        "tests": [{"interval": "15s", "input_series": [series, counted, failed], "promql_expr_test": [burn]}],
    }
    (folder / "test.yml").write_text(yaml_flow(test), encoding="utf-8")
    done = promtool("test", "rules", "test.yml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


RATES = ("0.1%", "1%", "5%", "10%", "30%", "60%", "99.999999%")
QUANTILES = {"Triton's own": DEFAULT_QUANTILES, "the promised ones": (0.9, 0.99), "a high one": (0.99,), "low ones": (0.2, 0.5), "odd ones": (0.95, 0.9999)}


@pytest.mark.parametrize("quantiles", QUANTILES.values(), ids=QUANTILES)
def test_every_alert_of_every_promise_fires_where_all_requests_break_it(tmp_path, quantiles):
    """And where one could not, it is not made, and that is said."""
    times = {"p50": "1ms", "p90": "2ms", "p95": "3ms", "p99": "4ms"}
    slos = {"times": times, **{f"errors_{index}": {"error_rate": rate} for index, rate in enumerate(RATES)}}
    spec = cases.spec(*(cases.model(name, slo=slo) for name, slo in slos.items()))
    shown = Exported(quantiles=quantiles)
    findings = Findings("", lambda key: Location(str(key)), lambda key: False)
    judge_promises(spec.models, shown, findings)
    unwatched = {name for finding in findings.found for name in times if name in finding.message}
    # What the lowest quantile says of all requests is the most that can be seen.
    assert unwatched == {name for name in times if min(quantiles) > float(name[1:]) / 100}
    folder = cases.write(monitoring_files(spec, shown), tmp_path) / RULES
    series = []
    for model in spec.models:
        own = f'model="{model.name}", version="1"'
        series += [{"series": f'nv_inference_request_summary_us{{{own}, quantile="{quantile:g}"}}', "values": "1e6x280"} for quantile in quantiles]
        series += [{"series": f"nv_inference_request_success{{{own}}}", "values": "0x280"}]
        series += [{"series": f'nv_inference_request_failure{{{own}, reason="BACKEND"}}', "values": "0+150x280"}]
    alerts = ("TritonSloBurnsFast", "TritonSloBurnsSlowly", "TritonSloBurnsSteadily")
    fired = [
        {"labels": f'{{alertname="{alert}", model="{name}", objective="{objective}"}}', "value": 1}
        for alert in alerts
        for name, slo in slos.items()
        for objective in slo
        if objective not in unwatched
    ]
    asked = {"eval_time": "70m", "expr": 'count by (alertname, model, objective) (ALERTS{alertstate="firing", objective!=""})', "exp_samples": fired}
    test = {
        "rule_files": ["recording.yml", "alerts.yml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": [asked]}],
    }
    (folder / "test.yml").write_text(yaml_flow(test), encoding="utf-8")
    done = promtool("test", "rules", "test.yml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


SPEC = cases.spec(
    cases.model("quick", slo={"p50": "20s", "p90": "25s", "p95": "30s", "p99": "40s", "error_rate": "50%"}),
    cases.model("slow", slo={"p99": "5ms"}),
    cases.model("cached", response_cache=True),
    release="24.10",
    server={"metrics": {"summary_latencies": True}},
)
"""Of the models in `served`. slow waits 40 ms for company that never comes."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("repository")
    models.put(repository, "quick", models.linear(), models.LINEAR + "dynamic_batching {}\n")
    models.put(repository, "slow", models.linear(), models.LINEAR + "dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 40000 }\n")
    models.put(repository, "cached", models.linear(), models.LINEAR + "dynamic_batching {}\nresponse_cache { enable: true }\n")
    ports = {"http_port": 0, "grpc_port": 0, "metrics_port": 0}
    options = {"disable_auto_complete": True, "model_control": "explicit", "load_models": ("*",), "extra_args": ("--metrics-config=summary_latencies=true",)}
    with tritongen.serve(repository, **ports, **options) as server:
        yield server


class Prometheus:
    """A Prometheus on the rendered files; addresses and intervals are not those of a deployment, everything else is."""

    def __init__(self, folder, files, server):
        config = files["prometheus/prometheus.yml"]
        for inside, outside in (("tritonserver:8002", server.metrics_url), (": 15s", ": 1s")):
            assert inside in config
            config = config.replace(inside, outside.removeprefix("http://"))
        cases.write({**files, "prometheus/prometheus.yml": config}, folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.log = folder / "log.txt"
        options = ("--config.file=prometheus/prometheus.yml", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(["prometheus", *options], cwd=folder, stdout=log, stderr=log)
        self._pool, self._url = urllib3.PoolManager(retries=False), f"http://{address}/api/v1/"

    def get(self, path, **fields):
        answer = json.loads(self._pool.request("GET", self._url + path, fields=fields).data)
        assert answer["status"] == "success", answer
        return answer["data"]

    def values(self, query):
        """The numbers that a query gives now."""
        return [number for series in self.get("query", query=query)["result"] if not math.isnan(number := float(series["value"][1]))]

    def wait_for(self, what, ready):
        """Wait until `ready()`, which may not find a listener at first."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            assert self._process.poll() is None, self.log.read_text()
            try:
                if ready():
                    return
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.3)
        raise AssertionError(f"{what} took more than {WAIT_S} s; {self.log.read_text()[-2000:]}")

    def close(self):
        self._process.terminate()
        self._process.wait(WAIT_S)
        self._pool.clear()


@pytest.fixture(scope="module")
def files():
    return monitoring_files(SPEC, exported(SPEC))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory, files, served):
    """Prometheus, from before a load test until what was computed of it is there."""
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), files, served)
    try:
        running.wait_for("a first scrape", lambda: running.values('up{job="tritonserver"} == 1'))
        load(served, "slow")
        with tritongen.Client(served.grpc_url) as client:
            for model in ("quick", "cached") * 10:
                client.infer(model, x=np.ones((2, 64), np.float32))
        running.wait_for("what was computed of the load", lambda: len(running.values("model_version:triton_requests:rate1m > 0")) == 3)
        running.wait_for("what is computed of that", lambda: len(running.values("model_objective:triton_slo_burn:3d")) == 6)
        yield running
    finally:
        running.close()


def load(server, model):
    command = [sys.executable, "-m", "tritongen", "load", model, "-u", server.grpc_url, "--rate", "10", "--duration", "3s", "--warmup", "0"]
    done = subprocess.run([*command, "--metrics-url", server.metrics_url], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode in (0, 1), done.stderr  # a machine that is too busy makes a run invalid, not empty


def test_every_query_of_the_dashboard_returns_data(prometheus, files):
    board = json.loads(files["grafana/dashboards/tritongen.json"])
    queries = {target["expr"] for panel in board["panels"] for target in panel.get("targets", ())}
    silent = {query for query in queries if not prometheus.values(query)}
    assert silent == {query for query in queries if "gpu:" in query}, "only those of GPUs have no data here; monitoring_rules.yml has them"
    assert len(queries) > 25


def test_every_rule_is_evaluated_and_records_what_it_should(prometheus, files):
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    written = [rule for group in YAML(typ="safe", pure=True).load(files[f"{RULES}/recording.yml"])["groups"] for rule in group["rules"]]
    silent = {rule["record"] for rule in written if not prometheus.values(rule["record"])}
    assert silent == {rule["record"] for rule in written if rule["record"].startswith("gpu:")}


def test_numbers_are_what_was_sent(prometheus):
    assert prometheus.values("min(model:triton_loaded)") == [1]
    assert prometheus.values('model_version:triton_batch_rows:mean1m{model="quick"}') == pytest.approx([2])
    assert prometheus.values('model_version_quantile:triton_latency_seconds:max{model="slow", quantile="0.5"}')[0] > 0.03
    assert prometheus.values('model_version:triton_queue_share:rate1m{model="slow"}')[0] > 0.25
    assert prometheus.values('model_version:triton_cache_hit_share:rate1m{model="cached"}')[0] > 0
    assert prometheus.values('model_objective:triton_slo_burn:5m{model="slow", objective="p99"}')[0] > 14.4
    assert prometheus.values('max(model_objective:triton_slo_burn:5m{model="quick"})') == [0]


def test_a_broken_promise_and_a_model_that_is_gone_are_alerts(prometheus, served):
    def alerts(state):
        return {(alert["labels"]["alertname"], alert["labels"].get("model")) for alert in prometheus.get("alerts")["alerts"] if alert["state"] == state}

    prometheus.wait_for("an alert", lambda: ("TritonSloBurnsFast", "slow") in alerts("firing"))
    assert alerts("firing") == {("TritonSloBurnsFast", "slow"), ("TritonSloBurnsSlowly", "slow")}
    with urllib3.PoolManager(retries=False) as pool:
        pool.request("POST", f"{served.http_url}/v2/repository/models/quick/unload", body=b"{}")
    prometheus.wait_for("word of a model that is gone", lambda: ("TritonModelNotLoaded", "quick") in alerts("pending"))
    assert prometheus.values('model:triton_loaded{model="slow"}') == [1]
    # Why that is seen by the successes: the failures of a model that is gone stay where they were.
    assert [len(prometheus.values(f'nv_inference_request_{which}{{model="quick"}}')) for which in ("success", "failure")] == [0, 4]
