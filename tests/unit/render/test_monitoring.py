"""The files for Prometheus and Grafana, read back as YAML and JSON. What Prometheus itself says of them: tests/system/test_monitoring.py.

Grafana cannot be run here. Its dashboard is held against what its format is known to need: numbers and places of panels, targets, data sources, units.
"""

import itertools
import json
import re
from pathlib import Path

import monitoring_cases as cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tritongen.diagnostics import Location
from tritongen.render.dashboard import DATASOURCE_UID
from tritongen.render.findings import Findings
from tritongen.render.monitoring import judge_promises, monitoring_files
from tritongen.render.promises import Exported, has_load_times, promises, why_not_watched
from tritongen.render.promql import promql_text, title_text
from tritongen.spec import Spec

RECORDED = re.compile(r"\b[a-z_]+:[a-z0-9_]+(?::[a-z0-9_]+)?")
UNITS = {"none", "short", "percentunit", "reqps", "s", "bytes"}
"""Ids of Grafana's units (packages/grafana-data/src/valueFormats)."""

CONFIG, RECORDING, ALERTS, BOARD = (
    "prometheus/prometheus.yml",
    "prometheus/rules/recording.yml",
    "prometheus/rules/alerts.yml",
    "grafana/dashboards/tritongen.json",
)


def read(text):
    return YAML(typ="safe", pure=True).load(text)


def rules(text):
    return [rule for group in read(text)["groups"] for rule in group["rules"]]


def targets(board):
    return [target for panel in board["panels"] for target in panel.get("targets", ())]


def test_the_guide_names_every_alert_and_every_panel():
    guide = (Path(__file__).parents[3] / "docs/monitoring.md").read_text(encoding="utf-8")
    files = cases.files("everything")
    assert {rule["alert"] for rule in rules(files[ALERTS])} == set(re.findall(r"^\| `(Triton\w+)`", guide, re.MULTILINE))
    shown = "".join(line.split("|")[1] for line in guide.splitlines() if line.startswith("|"))
    titles = {panel["title"] for panel in json.loads(files[BOARD])["panels"] if panel["type"] != "row"}
    assert {title for title in titles if title.removesuffix(" in bytes") not in shown} == set()
    assert Spec.model_validate(read(re.search(r"```yaml\n(.*?)```", guide, re.DOTALL)[1])).models[0].slo.error_rate == 0.001


@pytest.mark.parametrize("name", cases.GOLDEN)
def test_equal_specs_give_equal_bytes(name):
    root = cases.ROOT / name
    committed = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*") if path.is_file()}
    assert cases.files(name) == committed, "look at the difference, then run `make golden`"


@pytest.mark.parametrize("name", cases.CASES)
def test_what_is_asked_for_is_recorded_and_what_is_recorded_is_asked_for(name):
    files = cases.files(name)
    recording = rules(files[RECORDING])
    asked = [rule["expr"] for rule in (*recording, *rules(files[ALERTS]))] + [target["expr"] for target in targets(json.loads(files[BOARD]))]
    wanted = {series for expr in asked for series in RECORDED.findall(re.sub(r'"(?:[^"\\]|\\.)*"', '""', expr))}
    assert wanted == {rule["record"] for rule in recording}


@pytest.mark.parametrize("name", cases.CASES)
def test_the_dashboard_is_one_that_grafana_reads(name):
    files = cases.files(name)
    board = json.loads(files[BOARD])
    assert (board["uid"], board["schemaVersion"], board["templating"]["list"]) == ("tritongen", 39, [])
    panels = board["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    taken = [(x, y) for panel in panels for x, y in cells(panel["gridPos"])]
    assert len(taken) == len(set(taken)), "panels overlap"
    assert {x for x, _ in taken} <= set(range(24))
    source = read(files["grafana/provisioning/datasources/prometheus.yml"])["datasources"][0]
    for panel in panels:
        if panel["type"] == "row":
            assert panel["panels"] == []
            continue
        assert panel["type"] in ("timeseries", "stat")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["description"].endswith(".")
        assert [target["refId"] for target in panel["targets"]] == list("ABCD"[: len(panel["targets"])])
        assert {part["datasource"]["uid"] for part in (panel, *panel["targets"])} == {DATASOURCE_UID} == {source["uid"]}
        assert all(target["expr"] and target["legendFormat"] for target in panel["targets"])
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    made, exported = cases.CASES[name]
    assert rows == ["Overview", *(["GPUs"] if exported.gpus else []), *(f"Model {title_text(model.name)}" for model in made.models)]


def cells(grid):
    return itertools.product(range(grid["x"], grid["x"] + grid["w"]), range(grid["y"], grid["y"] + grid["h"]))


def test_only_what_the_server_exports_is_asked_for():
    bare = "".join(cases.files("plain").values())
    assert not re.search("nv_gpu|gpu:|summary_us|nv_cache|nv_model_load|slo", bare)
    assert "duration" not in "".join(cases.files("no counters").values())
    full = "".join(cases.files("everything").values())
    for metric in ("nv_gpu_memory_used_bytes", "nv_inference_request_summary_us", "nv_cache_num_hits_per_model", "nv_model_load_duration_secs"):
        assert metric in full


@pytest.mark.parametrize(("release", "has"), [("24.10", False), ("24.12", True), ("26.01", True), ("27.02", True), ("23.05", False), (None, True)])
def test_times_of_loading_came_with_24_12(release, has):
    assert has_load_times(release) == has


def test_quantiles_are_written_as_the_server_writes_them():
    """As 24.10 does."""
    rests = Exported(quantiles=(0.5, 0.57, 0.00001, 0.12345678901234568, 0.999999999)).rests
    assert rests == (("0.5", "0.5"), ("0.43", "0.57"), ("0.99999", "1e-05"), ("0.876543210987654", "0.1234567890123457"), ("0.000000001", "0.999999999"))


@pytest.mark.parametrize(
    ("slo", "limits"),
    [
        ({"error_rate": "0.000001%"}, ("14.4", "6", "1")),
        ({"error_rate": "5%"}, ("14.4", "6", "1")),
        ({"error_rate": "10%"}, ("5", "5", "1")),
        ({"error_rate": "50%"}, ("1", "1", "1")),
        ({"error_rate": "99.999999%"}, ("1", "1", "1")),
        ({"p99": "1s"}, ("14.4", "6", "0.99")),
        ({"p90": "1s"}, ("2.5", "2.5", "0.99")),
        ({"p50": "1s"}, ("0.99", "0.99", "0.99")),
    ],
)
def test_nobody_is_called_for_less_than_may_be_missed_nor_only_for_more_than_there_is(slo, limits):
    (promise,) = promises(cases.spec(cases.model(slo=slo)).models[0])
    shown = Exported(**cases.SUMMARIES)
    assert promise.burn_limits(shown) == dict(zip(("fast", "slow", "steady"), limits, strict=True))
    assert float(limits[0]) < promise.most_missed(shown) / promise.budget


def test_promises_have_budgets_and_limits():
    made = cases.spec(cases.model(slo={"p95": "1500us", "error_rate": "0.05%"})).models[0]
    assert [(promise.objective, promise.budget_text, promise.limit_us) for promise in promises(made)] == [("p95", "0.05", 1500), ("error_rate", "0.0005", None)]
    assert list(promises(cases.spec().models[0])) == []


@pytest.mark.parametrize(
    ("keys", "exported", "words"),
    [
        ({}, Exported(), "summary_latencies"),
        ({"response_cache": True}, Exported(quantiles=(0.99,)), "response cache"),
        ({}, Exported(quantiles=(0.99,)), ""),
    ],
)
def test_a_promise_that_cannot_be_watched_says_why(keys, exported, words):
    made = cases.spec(cases.model(slo={"p99": "1ms", "error_rate": "1%"}, **keys))
    timed, errors = promises(made.models[0])
    assert words in why_not_watched(timed, made.models[0], exported)
    assert bool(why_not_watched(timed, made.models[0], exported)) == bool(words)
    assert why_not_watched(errors, made.models[0], exported) == ""
    findings = Findings("", lambda key: Location("/".join(map(str, key))), lambda key: False)
    judge_promises(made.models, exported, findings)
    assert [(finding.code, str(finding.location), words in finding.message) for finding in findings.found] == (
        [("TG437", "models/0/slo/p99", True)] if words else []
    )
    recorded = {rule["labels"]["objective"] for rule in rules(monitoring_files(made, exported)[RECORDING]) if "budget" in rule["record"]}
    assert recorded == ({"error_rate"} if words else {"p99", "error_rate"})


@pytest.mark.parametrize(("start_us", "waits"), [(0, "2m"), (10_000_000, "2m"), (1_020_000_000, "17m")])
def test_only_a_first_start_may_take_its_time(start_us, waits):
    alerts = {rule["alert"]: rule for rule in rules(monitoring_files(cases.spec(), Exported(), start_us=start_us)[ALERTS])}
    down = alerts["TritonServerDown"]
    assert (down["for"], down["expr"].count(f"[{waits}]"), down["expr"].endswith(f"offset {waits})")) == ("2m", 1, True)


def test_models_that_are_loaded_on_request_need_not_be_there():
    made = cases.spec(cases.model("a"), cases.model("b"))
    for ready, names in (({"b"}, ["b"]), ((), []), (None, ["a", "b"])):
        files = monitoring_files(made, Exported(), ready=ready)
        assert [rule["labels"]["model"] for rule in rules(files[RECORDING]) if rule["record"] == "model:triton_wanted"] == names
        assert ("NotLoaded" in files[ALERTS], "triton_loaded" in files[BOARD]) == (bool(names), bool(names))


@settings(max_examples=25, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=24)
    | st.sampled_from([cases.HOSTILE, "$__interval", "[[x]]", "{{model}}", "\\", '"'])
)
def test_no_name_can_break_out(name):
    made, exported = cases.CASES["everything"]
    files, usual = monitoring_files(cases.renamed(made, name), exported), cases.files("everything")
    assert files[CONFIG] == usual[CONFIG]
    assert files[ALERTS] == usual[ALERTS]
    assert undone(read(files[RECORDING]), name) == read(usual[RECORDING])
    board = json.loads(files[BOARD])
    assert not any("$" in target["expr"] or "[[" in target["expr"] for target in targets(board))
    assert not any("$" in panel["title"] or "[[" in panel["title"] for panel in board["panels"])
    for target, usually in zip(targets(board), targets(json.loads(usual[BOARD])), strict=True):
        literal = re.search(r'\{model=("(?:[^"\\]|\\.)*")\}$', target["expr"], re.DOTALL)
        if literal and "recognizer" in usually["expr"]:
            assert json.loads(literal[1]) == name
            target["expr"] = target["expr"].replace(literal[1], '"recognizer"')
    assert targets(board) == targets(json.loads(usual[BOARD]))


def undone(value, name):
    """Rules with the usual name in place of another."""
    if isinstance(value, dict):
        return {key: "recognizer" if key == "model" and item == name else undone(item, name) for key, item in value.items()}
    return [undone(item, name) for item in value] if isinstance(value, list) else value


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_a_text_in_promql_is_read_back(text):
    quoted = promql_text(text)
    assert json.loads(quoted) == text
    assert not re.search(r"[\n$\[]", quoted)
