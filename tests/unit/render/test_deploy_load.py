"""Locust in a deployment: what it sends, what runs it, and what is said of what it cannot send."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import compose
import pytest
from deployments import MODEL, PLACES, SPECS, loaded, loads_of, texts

from tritongen.load import ModelLoad
from tritongen.render.deploy import LEAD, LOADTESTS, SCENARIO, judge_deployment
from tritongen.templating import LOCUSTFILES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]

TRAFFIC = """
models: [{name: a, source: m.onnx, batching: {max: 8}, shapes: {x: [1, 4]}}, {name: b, source: m.onnx}, {name: c, source: m.onnx}]
load:
  scenarios:
    steady: {rate: 200, duration: 90s, seed: 7, deadline: 2s, models: {a: {weight: 3, batch_mix: ["1:75%", "8:25%"]}, c: 1}}
    jobs: {users: 12, protocol: http, pool: 4, models: [b]}
    steps: {stages: ["10:30s", "10-95:1m"]}
"""


def test_locust_follows_the_first_scenario(tmp_path):
    files = texts(loaded(tmp_path, TRAFFIC))
    text = files[SCENARIO]
    a, c = loads_of(text)
    assert a == ModelLoad("a", part=3.0, batch_mix=((1, 0.75), (8, 0.25)), shape_mix=(({"x": (1, 4)}, 1.0),))
    assert c == ModelLoad("c")
    assert "class ScenarioUser(TritonGrpcUser)" in text
    assert "wait_time = random_throughput(5.0)" in text
    assert "seed = 7\n" in text
    assert "deadline_s = 2.0\n" in text
    master = compose.read(files[LEAD])["services"]["locust-master"]["environment"]
    assert (master["LOCUST_USERS"], master["LOCUST_SPAWN_RATE"], master["LOCUST_RUN_TIME"]) == ("40", "40", "90s")


def test_a_trace_that_locust_does_not_follow_is_said_in_its_file(tmp_path):
    (tmp_path / "times.txt").write_text("0\n1\n")
    said = "times of arrival are those of a trace, which is not followed"
    for arrivals, there in (("trace:times.txt", True), ("constant", False)):
        text = f"load: {{scenarios: {{s: {{arrivals: '{arrivals}'}}}}}}\nmodels: [{MODEL}]"
        assert (said in texts(loaded(tmp_path, text))[SCENARIO]) is there


def test_only_requests_at_even_distances_are_paced_evenly(tmp_path):
    text = texts(loaded(tmp_path, f"load: {{scenarios: {{s: {{rate: 200, arrivals: constant}}}}}}\nmodels: [{MODEL}]"))[SCENARIO]
    assert "wait_time = constant_throughput(5.0)" in text
    assert "from locust import constant_throughput, task" in text


def test_locust_follows_the_scenario_that_the_deployment_names(tmp_path):
    jobs, steps = (texts(loaded(tmp_path, f"deploy: {{load: {{scenario: {name}}}}}{TRAFFIC}")) for name in ("jobs", "steps"))
    assert loads_of(jobs[SCENARIO]) == (ModelLoad("b"),)
    assert "class ScenarioUser(TritonHttpUser)" in jobs[SCENARIO]
    assert "_throughput" not in jobs[SCENARIO]
    assert compose.read(jobs[LEAD])["services"]["locust-master"]["environment"]["LOCUST_USERS"] == "12"
    # Of stages the highest rate, in as many users as are enough for it.
    assert "wait_time = random_throughput(5.0)" in steps[SCENARIO]
    assert compose.read(steps[LEAD])["services"]["locust-master"]["environment"]["LOCUST_USERS"] == "19"
    assert "#   10 to 95 a second for 1m" in steps[SCENARIO]


def test_locust_runs_from_an_image_or_from_a_package_of_ones_own(tmp_path):
    plain = texts(loaded(tmp_path, SPECS["cpu"]))[LEAD]
    address = "tritongen[load] @ https://registry.example/tritongen.whl"
    for variables, wanted in (({}, "tritongen[load]==9.8.7"), ({"TRITONGEN": address}, address)):
        assert compose.read(plain, variables)["services"]["locust-master"]["build"]["args"] == {"TRITONGEN": wanted}
    worker = compose.read(texts(loaded(tmp_path, f"deploy: {{load: {{image: registry.example/locust}}}}\n{SPECS['cpu']}"))[LEAD])["services"]["locust-worker"]
    assert (worker["image"], "build" in worker) == ("registry.example/locust", False)


def test_users_of_locust_get_what_docker_compose_was_given(tmp_path):
    text = texts(loaded(tmp_path, SPECS["cpu"]))[LEAD]
    for name in ("locust-master", "locust-worker"):
        given = compose.read(text, {"MODEL": "m", "SHAPES": "x=3x4", "LOCUSTFILE": "grpc_user.py"})["services"][name]
        assert ("LOCUST_RUN_TIME" in given["environment"]) == (name == "locust-master")
        assert given["environment"].items() >= {"MODEL": "m", "SHAPES": "x=3x4", "ROWS": "1", "GRPC_URL": "grpc://tritonserver:8001"}.items()


def test_one_service_builds_locusts_image(services):
    found = services(SPECS["cpu"])
    assert [name for name, service in found.items() if "build" in service] == ["locust-master"]
    assert (found["locust-worker"]["pull_policy"], found["locust-worker"]["image"]) == ("never", found["locust-master"]["image"])
    given = services(f"deploy: {{load: {{image: r.example/load:1}}}}\n{SPECS['cpu']}")
    assert {"build", "pull_policy"}.isdisjoint({*given["locust-worker"], *given["locust-master"]})


def test_locustfiles_for_any_model_lie_beside_the_scenario_and_read_what_docker_compose_was_given(tmp_path):
    files = texts(loaded(tmp_path, SPECS["cpu"]))
    given = set(compose.read(files[LEAD])["services"]["locust-worker"]["environment"])
    for name in LOCUSTFILES:
        read = set(re.findall(r'os\.environ\.get\("([A-Z_]+)"', files[LOADTESTS / name]))
        assert read
        assert read <= given
    with (ROOT / "pyproject.toml").open("rb") as project:
        carried = tomllib.load(project)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {f"loadtests/{name}": f"tritongen/_loadtests/{name}" for name in LOCUSTFILES}.items() <= carried.items()


SENT = "models: [{name: a, source: m.onnx}, {name: b, source: m.onnx}]\nload:\n  scenarios:\n    s: {%s}\n    other: {users: 20000}"
EXPLICIT = "server: {model_control: explicit, load_models: [a]}\n"


@pytest.mark.parametrize(
    ("before", "scenario", "said"),
    [
        ("", "rate: 50000", []),
        ("", "arrivals: constant, warmup: 20s, slo: {p99: 5ms}", ["advice warmup knows no warmup", "advice slo no verdict"]),
        ("", "warmup: 0s", []),
        ("", "rate: 200000", ["warning rate 40,000 users"]),
        ("", "users: 10001", ["warning users 10,001 users"]),
        ("", "stages: ['1-60000:10s']", ["warning stages 12,000 users", "advice stages 60000 requests a second"]),
        ("", "arrivals: 'trace:times.txt'", ["advice arrivals 50 requests a second"]),
        ("", "data: random, models: {a: {data: files.npz}}", ["advice models.a.data no files of data"]),
        (EXPLICIT, "models: {a: 1, b: 2}", ["warning models.b model 'b', which the server does not load"]),
        (EXPLICIT, "rate: 10", []),
        (EXPLICIT.replace("[a]", "['*']"), "models: [a, b]", []),
        ("deploy: {load: {scenario: other}}\n", "arrivals: 'trace:times.txt'", ["warning users 20,000 users"]),
    ],
)
def test_what_locust_sends_otherwise_is_said_at_its_key(tmp_path, before, scenario, said):
    (tmp_path / "times.txt").write_text("0\n1\n")
    spec = loaded(tmp_path, before + SENT % scenario)
    found = judge_deployment(spec, PLACES).found
    name = "other" if "other" in before else "s"
    assert len(found) == len(said)
    for finding, wanted in zip(found, said, strict=True):
        severity, key, words = wanted.split(" ", 2)
        assert (finding.code, finding.severity.name.lower()) == ("TG440", severity)
        assert finding.location == spec.locate(("load", "scenarios", name, *key.split(".")))
        assert words in finding.message


STATEFUL = "{name: s, source: m.onnx, config: {sequence_batching: {max_sequence_idle_microseconds: 5000000}}}"


@pytest.mark.parametrize(
    ("text", "asked", "said"),
    [
        (f"models: [{MODEL}, {STATEFUL}]", ["m"], "does not ask model 's'"),
        (f"models: [{MODEL}, {STATEFUL}]\nload: {{scenarios: {{day: {{rate: 5}}}}}}", ["m"], "does not ask model 's'"),
        (f"models: [{MODEL}, {STATEFUL}]\nload: {{scenarios: {{day: {{rate: 5, models: [s]}}}}}}", ["s"], "asks model 's'"),
        (f"models: [{MODEL}, {STATEFUL}]\nload: {{scenarios: {{day: {{rate: 5, models: [m]}}}}}}", ["m"], ""),
        (f"models: [{STATEFUL}]", ["s"], "asks model 's'"),
        (f"server: {{model_control: explicit, load_models: [m]}}\nmodels: [{MODEL}, {STATEFUL}]", ["m"], ""),
    ],
)
def test_models_that_take_sequences_are_not_asked_single_requests_unless_they_are_named(tmp_path, text, asked, said):
    spec = loaded(tmp_path, text)
    assert [one.model for one in loads_of(texts(spec)[SCENARIO])] == asked
    found = judge_deployment(spec, PLACES).found
    assert [finding.code for finding in found] == ["TG440"] * bool(said)
    assert all(said in finding.message and "sequence_batching" in finding.location.text for finding in found)
