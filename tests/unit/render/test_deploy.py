"""The files of a deployment: valid compose files that say what the spec says, whatever its names, paths and values are."""

from __future__ import annotations

import ast
import dataclasses
import shlex
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import compose
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tritongen.load import ModelLoad
from tritongen.render.deploy import CPU_FILE, DOCKERFILE, LEAD, SCENARIO, Places, deployment, judge_deployment
from tritongen.spec import Spec, load_spec
from tritongen.templating import comment
from tritongen.workflow.deploying import Deploying

PLACES = Places("spec.yaml", "./model_repository", "./model_repository.artifacts", "./model_repository.cpu")
VARIABLES = {"LOCUSTFILE", "LOCUST_USERS", "LOCUST_SPAWN_RATE", "MODEL", "ROWS", "BATCH", "SHAPES", "TRITONGEN"}
GPU = {"capabilities": ["gpu"], "driver": "nvidia"}

MODEL = "{name: m, source: m.onnx, instances: [{kind: gpu}]}"
SPECS = {
    "cpu": "models: [{name: m, source: m.onnx, instances: [{kind: cpu}]}]",
    "one gpu": f"deploy: {{gpus: [0]}}\nmodels: [{MODEL}]",
    "four gpus": f"deploy: {{gpus: [0, 1, 2, 3]}}\nmodels: [{MODEL}]",
    "mig": f"deploy: {{gpus: [MIG-8f7c6d1e-0000-1111-2222-333344445555]}}\nmodels: [{MODEL}]",
    "all gpus": f"models: [{MODEL}]",
    "several models": "models: [{name: a, source: m.onnx}, {name: b, source: m.onnx, backend: tensorrt}, {name: c, source: m.onnx, accelerator: tensorrt}]",
    "cache": "models: [{name: m, source: m.onnx, response_cache: true}]",
    "explicit": "server: {model_control: explicit, load_models: [b]}\nmodels: [{name: a, source: m.onnx}, {name: b, source: m.onnx}]",
    "odd names": 'repository: "we\'ll ${see} {{ it }}\\""\nmodels: [{name: _a.b+c-d, source: m.onnx}]',
    "secrets by file": f"deploy: {{monitoring: {{admin_password: secrets/grafana.txt}}}}\nmodels: [{MODEL}]",
    "plans as root": 'deploy: {user: "0:0"}\nmodels: [{name: m, source: m.onnx, backend: tensorrt}, {name: n, source: m.onnx, accelerator: tensorrt}]',
    "no metrics": f"server: {{metrics: {{enabled: false}}}}\ndeploy: {{monitoring: {{admin_password: p}}}}\nmodels: [{MODEL}]",
    "open to all": f"server: {{listen: {{address: '::', http: 80}}, strict_readiness: false}}\nmodels: [{MODEL}]",
    "limits": f"triton: {{cpus: 4}}\ndeploy: {{memory: 8GiB, ulimits: {{nofile: 1024}}, restart: 'no', start_period: 90s}}\nmodels: [{MODEL}]",
}


def loaded(folder, text: str):
    path = folder / "spec.yaml"
    path.write_text(f"version: 1\n{text}\n")
    return load_spec(path)


def texts(spec, places: Places = PLACES) -> dict[PurePosixPath, str]:
    made = deployment(spec, places, tritongen_version="9.8.7")
    return {LEAD: made.header + made.body, **made.others}


@pytest.fixture
def services(tmp_path):
    """The services of a spec, on GPUs or without one."""

    def of(text: str, *, cpu: bool = False) -> dict[str, Any]:
        return compose.read(texts(loaded(tmp_path, text))[CPU_FILE if cpu else LEAD])["services"]

    return of


@pytest.mark.parametrize("name", SPECS)
def test_both_files_are_valid_and_ask_for_locusts_variables_alone(name, tmp_path):
    files = texts(loaded(tmp_path, SPECS[name]))
    for path in (LEAD, CPU_FILE):
        assert compose.faults(files[path]) == []
        assert compose.variables_of(files[path]) == VARIABLES
        read = compose.read(files[path])
        wanted = {name for service in read["services"].values() for name in service.get("depends_on", ())}
        assert wanted <= set(read["services"])
        volumes = {mount["source"] for service in read["services"].values() for mount in service.get("volumes", ()) if mount["type"] == "volume"}
        assert volumes == set(read.get("volumes", ()))
    ast.parse(files[SCENARIO])
    assert "'tritongen[load]==9.8.7'" in files[DOCKERFILE]


def loads_of(locustfile: str) -> tuple[ModelLoad, ...]:
    """What the user of a locustfile sends."""
    (user,) = [node for node in ast.parse(locustfile).body if isinstance(node, ast.ClassDef)]
    (calls,) = [node.value for node in user.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "models"]
    made = [(ast.literal_eval(call.args[0]), {word.arg: ast.literal_eval(word.value) for word in call.keywords}) for call in calls.elts]
    return tuple(ModelLoad(name, **words) for name, words in made)


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
    assert "wait_time = constant_throughput(5.0)" in text
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


def test_locust_follows_the_scenario_that_the_deployment_names(tmp_path):
    jobs, steps = (texts(loaded(tmp_path, f"deploy: {{load: {{scenario: {name}}}}}{TRAFFIC}")) for name in ("jobs", "steps"))
    assert loads_of(jobs[SCENARIO]) == (ModelLoad("b"),)
    assert "class ScenarioUser(TritonHttpUser)" in jobs[SCENARIO]
    assert "constant_throughput" not in jobs[SCENARIO]
    assert compose.read(jobs[LEAD])["services"]["locust-master"]["environment"]["LOCUST_USERS"] == "12"
    # Of stages the highest rate, in as many users as are enough for it.
    assert "wait_time = constant_throughput(5.0)" in steps[SCENARIO]
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
        assert given["environment"].items() >= {"MODEL": "m", "SHAPES": "x=3x4", "ROWS": "1", "GRPC_URL": "grpc://tritonserver:8001"}.items()


def test_variables_reach_the_builder_of_plans_and_gpus_have_the_numbers_of_nvidia_smi(services):
    found = services(f"deploy: {{environment: {{CUDA_MODULE_LOADING: LAZY}}}}\n{SPECS['several models']}")
    wanted = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_MODULE_LOADING": "LAZY"}
    assert found["plan-builder"]["environment"] == found["tritonserver"]["environment"] == wanted
    assert "environment" not in services(SPECS["cpu"])["tritonserver"]


def without_gpu(service: dict[str, Any], driver: Path = Path("/nonexistent"), version: Path = Path("/dev/null")) -> subprocess.CompletedProcess[str]:
    """Run the check for a GPU on a machine whose /proc has these files."""
    shell, flag, script = service["entrypoint"]
    script = script.replace("-e /proc/driver/nvidia/version", f"-e {driver}").replace("/proc/version", str(version))
    return subprocess.run([shell, flag, script], capture_output=True, text=True, timeout=60, check=False)


def reserved(service: dict[str, Any]) -> list[dict[str, Any]]:
    return service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("cpu", []),
        ("one gpu", [{**GPU, "device_ids": ["0"]}]),
        ("four gpus", [{**GPU, "device_ids": ["0", "1", "2", "3"]}]),
        ("mig", [{**GPU, "device_ids": ["MIG-8f7c6d1e-0000-1111-2222-333344445555"]}]),
        ("all gpus", [{**GPU, "count": "all"}]),
    ],
)
def test_the_server_gets_the_gpus_that_the_spec_names(services, name, devices):
    on_gpu, on_cpu = services(SPECS[name]), services(SPECS[name], cpu=True)
    assert reserved(on_gpu["tritonserver"]) == devices
    assert ("nvidia-gpu" in on_gpu) == bool(devices)
    assert reserved(on_cpu["tritonserver"]) == []
    assert "nvidia-gpu" not in on_cpu


def test_plans_are_built_before_the_server_starts_by_the_only_one_that_may_write(services):
    found = services(SPECS["several models"])
    builder, server = found["plan-builder"], found["tritonserver"]
    assert builder["command"] == ["sh", "/models.artifacts/build_plans.sh", "/models"]
    assert builder["image"] == server["image"] == "nvcr.io/nvidia/tritonserver:26.08-py3"
    assert reserved(builder) == reserved(server)
    assert server["depends_on"]["plan-builder"] == {"condition": "service_completed_successfully"}
    assert {mount["target"]: mount.get("read_only", False) for mount in builder["volumes"]} == {"/models": False, "/models.artifacts": False}
    writable = {mount["target"] for mount in server["volumes"] if not mount.get("read_only", False)}
    assert writable == {"/engine-cache"}
    assert "plan-builder" not in services(SPECS["several models"], cpu=True)
    assert "plan-builder" not in services(SPECS["cache"])


def test_nobody_is_root_but_who_gives_the_volume_its_owner(services):
    found = services(SPECS["several models"])
    assert {name for name, service in found.items() if service.get("user", "").startswith("0")} == {"engine-cache"}
    assert found["engine-cache"]["entrypoint"] == ["chown", "1000:1000", "/engine-cache"]
    assert found["tritonserver"]["user"] == "1000:1000"
    as_root = services(SPECS["plans as root"])
    assert "engine-cache" not in as_root
    assert (as_root["tritonserver"]["user"], as_root["grafana"]["user"]) == ("0:0", "472:0")
    assert "engine-cache" not in services(SPECS["plans as root"].replace("0:0", "00"))
    gaining = {name for name, service in found.items() if "no-new-privileges:true" not in service.get("security_opt", ())}
    assert gaining == {"nvidia-gpu", "engine-cache", "prometheus", "locust-master", "locust-worker"}


@pytest.mark.parametrize(
    ("spec", "stated", "name"),
    [
        ("spec.yaml", "", "a-model.v2"),
        ("x/spec.yaml", "", "a-model.v2"),
        ("deploy/OCR prod.yaml", "", "ocr-prod"),
        ("../__.yaml", "", "tritongen"),
        ("ocr.yaml", "deploy: {name: mine}", "mine"),
    ],
)
def test_the_project_is_called_by_the_spec(tmp_path, spec, stated, name):
    made = loaded(tmp_path, f"{stated}\nmodels: [{{name: A-model.v2, source: m.onnx}}]")
    files = texts(made, dataclasses.replace(PLACES, spec=spec))
    assert {compose.read(files[path])["name"] for path in (LEAD, CPU_FILE)} == {name.replace(".", "-")}


def test_one_service_builds_locusts_image(services):
    found = services(SPECS["cpu"])
    assert [name for name, service in found.items() if "build" in service] == ["locust-master"]
    assert (found["locust-worker"]["pull_policy"], found["locust-worker"]["image"]) == ("never", found["locust-master"]["image"])
    given = services(f"deploy: {{load: {{image: r.example/load:1}}}}\n{SPECS['cpu']}")
    assert {"build", "pull_policy"}.isdisjoint({*given["locust-worker"], *given["locust-master"]})


def test_every_model_is_asked_for_and_engines_have_time(services):
    server = services(SPECS["several models"])["tritonserver"]
    asked = [word.removeprefix("http://localhost:8000") for word in server["healthcheck"]["test"] if word.startswith("http")]
    assert asked == ["/v2/health/ready", "/v2/models/a/ready", "/v2/models/b/ready", "/v2/models/c/ready"]
    assert server["healthcheck"]["start_period"] == "17m"
    assert services(SPECS["limits"])["tritonserver"]["healthcheck"]["start_period"] == "90s"
    assert services(SPECS["explicit"])["tritonserver"]["healthcheck"]["test"][-1].endswith("/v2/models/b/ready")
    assert services(SPECS["open to all"])["tritonserver"]["healthcheck"]["test"][-1].endswith("/v2/health/ready")


def test_the_engine_waits_longer_than_triton_does(services):
    assert services("models: [{name: m, source: m.onnx}]")["tritonserver"]["stop_grace_period"] == "40s"
    assert services("server: {exit_timeout: 5m}\nmodels: [{name: m, source: m.onnx}]")["tritonserver"]["stop_grace_period"] == "310s"


def test_ports_are_on_loopback_unless_asked(services):
    text = "models: [{name: m, source: m.onnx}]"
    published = [port for service in services(text).values() for port in service.get("ports", ())]
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}
    assert {port["published"] for port in published} == {"8000", "8001", "8002", "9090", "3000", "8089"}
    http = services(SPECS["open to all"])["tritonserver"]["ports"][0]
    assert http == {"target": 8000, "published": "80", "host_ip": "::", "protocol": "tcp"}


def test_a_cache_is_there_where_a_model_asks_for_one(services):
    assert "--cache-config=local,size=67108864" in services(SPECS["cache"])["tritonserver"]["command"]
    assert not any("cache" in word for word in services(SPECS["all gpus"])["tritonserver"]["command"])


def test_plans_have_the_settings_of_the_backend_that_they_need(services):
    model = "{{name: {name}, source: m.onnx, backend: tensorrt, tensorrt: {{build: {{{build}}}}}}}"
    asked = model.format(name="a", build="version_compatible: true, plugins: [/opt/a.so]"), model.format(name="b", build="plugins: [/opt/a.so, b.so]")

    def settings_of(text, **how):
        return [word for word in services(text, **how)["tritonserver"]["command"] if word.startswith("--backend-config")]

    text = f"models: [{', '.join(asked)}]"
    assert settings_of(text) == ["--backend-config=tensorrt,version-compatible=true", "--backend-config=tensorrt,plugins=/opt/a.so;b.so"]
    assert settings_of(text, cpu=True) == []
    stated = f"server: {{backend_config: {{tensorrt: {{plugins: '/opt/a.so;b.so;c.so'}}}}}}\n{text}"
    assert settings_of(stated) == ["--backend-config=tensorrt,plugins=/opt/a.so;b.so;c.so", "--backend-config=tensorrt,version-compatible=true"]


def test_a_password_is_a_file_and_stands_nowhere(tmp_path):
    spec = loaded(tmp_path, SPECS["secrets by file"])
    text = texts(spec, dataclasses.replace(PLACES, password_file="./secrets/grafana.txt"))[LEAD]
    read = compose.read(text)
    assert compose.faults(text) == []
    assert read["secrets"] == {"grafana-admin-password": {"file": "./secrets/grafana.txt"}}
    assert read["services"]["grafana"]["environment"] == {"GF_SECURITY_ADMIN_PASSWORD__FILE": "/run/secrets/grafana-admin-password"}
    assert read["services"]["grafana"]["user"] == "1000:1000"
    check = read["services"]["grafana"]["entrypoint"][2]
    for content, code in (("", 3), (" \n", 3), ("a word", 0)):
        (tmp_path / "secret").write_text(content)
        ran = check.replace("/run/secrets/grafana-admin-password", shlex.quote(str(tmp_path / "secret"))).replace("exec /run.sh", "exit 0")
        assert subprocess.run(["sh", "-c", ran], capture_output=True, timeout=60, check=False).returncode == code
    # Without one, nobody can log in.
    open_ = compose.read(texts(spec)[LEAD])["services"]["grafana"]["environment"]
    assert open_["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert open_["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    # The volume belongs to the same user before there is a password.
    assert compose.read(texts(spec)[LEAD])["services"]["grafana"]["user"] == "1000:1000"


def test_without_metrics_nothing_looks_at_them(services):
    found = services(SPECS["no metrics"])
    assert {"prometheus", "grafana"}.isdisjoint(found)
    assert [port["target"] for port in found["tritonserver"]["ports"]] == [8000, 8001]


@pytest.mark.parametrize(("has_driver", "kernel", "code"), [(True, "Linux", 0), (False, "Linux", 3), (False, "Linux microsoft-standard-WSL2", 0)])
def test_a_machine_without_a_gpu_is_told_what_to_do(services, tmp_path, has_driver, kernel, code):
    driver, version = tmp_path / "driver", tmp_path / "version"
    version.write_text(kernel)
    if has_driver:
        driver.touch()
    run = without_gpu(services(SPECS["one gpu"])["nvidia-gpu"], driver, version)
    assert run.returncode == code
    assert ("docker compose -f docker-compose.cpu.yml up" in run.stderr) == (code != 0)
    assert ("tritongen render --cpu spec.yaml" in run.stderr) == (code != 0)


@pytest.mark.parametrize("cache", ["/models", "/models/engines", "/models.artifacts", "/opt", "/opt/tritonserver/backends"])
def test_a_cache_that_would_hide_the_models_is_refused(tmp_path, cache):
    spec = loaded(tmp_path, f"triton: {{engine_cache: {cache}}}\nmodels: [{{name: m, source: m.onnx, accelerator: tensorrt}}]")
    (finding,) = judge_deployment(spec, PLACES).found
    assert finding.code == "TG435"
    assert finding.location.line == 2
    assert judge_deployment(loaded(tmp_path, "models: [{name: m, source: m.onnx, accelerator: tensorrt}]"), PLACES).found == []


def test_a_path_that_is_no_text_is_refused(tmp_path):
    found = judge_deployment(loaded(tmp_path, SPECS["cache"]), dataclasses.replace(PLACES, repository="./\udcff")).found
    assert [finding.code for finding in found] == ["TG435"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("server: {listen: {http: 3000}}", ["TG438"]),
        ("server: {listen: {address: 0.0.0.0, http: 9090, metrics: 8089}}", ["TG438", "TG438"]),
        ("deploy: {load: {port: 9090}, monitoring: {address: '::'}}", ["TG438"]),
        ("server: {listen: {address: 192.0.2.1, http: 3000}}", []),
    ],
)
def test_two_services_with_one_port_are_refused(tmp_path, text, found):
    assert [finding.code for finding in judge_deployment(loaded(tmp_path, f"{text}\nmodels: [{MODEL}]"), PLACES).found] == found


@pytest.mark.parametrize(
    ("written", "folder", "repository", "cpu_repository"),
    [
        ("model_repository", ".", "./model_repository", "./model_repository.cpu"),
        ("../shared/models", ".", "../shared/models", "../shared/models.cpu"),
        ("/srv/models", ".", "/srv/models", "/srv/models.cpu"),
        ("a/b", "..", "./here/a/b", "./here/a/b.cpu"),
        (".", "x", "..", "../../here.cpu"),
    ],
)
def test_paths_are_relative_to_the_deployment_unless_they_were_absolute(tmp_path, written, folder, repository, cpu_repository):
    here = tmp_path / "here"
    here.mkdir()
    spec = loaded(here, f"repository: {written}\ndeploy: {{folder: {folder}}}\nmodels: [{{name: m, source: m.onnx}}]")
    plan = Deploying(spec, None, cpu=False).plan(force=False)
    read = {path: compose.read(plan.contents[path].decode())["services"]["tritonserver"]["volumes"][0]["source"] for path in (LEAD, CPU_FILE)}
    assert plan.root == (here / folder).resolve()
    assert read == {LEAD: repository, CPU_FILE: cpu_repository}


def test_artifacts_lie_beside_the_repository_itself(tmp_path):
    """A repository that is a link: what Triton must not see is where the render puts it."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "model_repository").symlink_to(tmp_path / "disk")
    spec = loaded(tmp_path, SPECS["several models"])
    for repository, artifacts in (("model_repository", f"{tmp_path}/disk.artifacts"), ("disk", "./disk.artifacts")):
        changed = dataclasses.replace(spec, spec=spec.spec.model_copy(update={"repository": repository}))
        read = compose.read(Deploying(changed, None, cpu=False).plan(force=False).contents[LEAD].decode())
        assert [mount["source"] for mount in read["services"]["plan-builder"]["volumes"]] == [f"./{repository}", artifacts]


def test_a_port_that_is_another_ones_default_is_said_where_it_was_written(tmp_path):
    """The other key stands nowhere in the spec."""
    spec = loaded(tmp_path, f"server:\n  listen:\n    http: 3000\nmodels: [{MODEL}]")
    (finding,) = judge_deployment(spec, PLACES).found
    assert finding.location.line == 4
    assert "deploy.monitoring.grafana_port is too by default" in finding.message


def test_the_server_without_gpus_is_told_nothing_of_them(services):
    text = """
server:
  rate_limit: {resources: [{name: slot, count: 2, gpu: 1}, {name: other, count: 3}]}
  host_policies: {gpu_0: {numa_node: 0}, cpu: {numa_node: 1}}
  backend_config: {tensorrt: {coalesce-request-input: true}, onnxruntime: {a: b}}
models: [{name: m, source: m.onnx, instances: [{kind: gpu}]}]
"""
    said = services(text, cpu=True)["tritonserver"]["command"]
    assert [word for word in said if "limit-res" in word or "policy" in word or "backend" in word] == [
        "--rate-limit-resource=other:3",
        "--host-policy=cpu,numa-node=1",
        "--backend-config=onnxruntime,a=b",
    ]
    assert sum("gpu" in word or "slot" in word or "tensorrt" in word for word in services(text)["tritonserver"]["command"]) == 3


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | st.sampled_from(
    [
        "$",
        "$$",
        "${X}",
        "$X",
        "{{ x }}",
        "{% raw %}",
        '"',
        "'",
        "\\",
        "\n",
        "- a: b",
        "#",
        "no",
        "0",
        "null",
        "~",
        "\u2028",
        "\x85",
        "\x7f",
        "&a",
        "*a",
        "!!x",
        "${",
    ]
)
NAME = TEXT.filter(lambda text: text.strip() and not any(ord(char) < 32 or ord(char) == 127 for char in text))


PARTS = st.fixed_dictionaries(
    {
        "repository": NAME,
        "password": NAME,
        "spec": TEXT,
        "variables": st.dictionaries(st.sampled_from(["A", "B_1", "yes"]), TEXT, max_size=2),
        "backend": NAME.map(lambda text: text.replace(",", "").replace("=", "")).filter(bool),
        "value": NAME,
        "policy": NAME.map(lambda text: text.replace(",", "")).filter(bool),
        "resource": NAME.map(lambda text: text.replace(":", "")).filter(bool),
        "model": st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.+-]{0,12}\Z"),
        "tensor": TEXT.filter(bool),
        "scenario": TEXT.filter(bool),
    }
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(PARTS)
def test_nothing_in_a_spec_breaks_out(tmp_path, parts):
    check_parts(tmp_path, parts)


@pytest.mark.fuzz
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(PARTS)
def test_nothing_in_a_spec_breaks_out_for_long(tmp_path, parts):
    check_parts(tmp_path, parts)


def check_parts(folder, parts: dict[str, Any]) -> None:
    """Render a spec that holds the parts, read the files back, and compare."""
    backend, policy, resource = parts["backend"], parts["policy"], parts["resource"]
    data = {
        "version": 1,
        "server": {
            "backend_config": {backend: {backend: parts["value"]}},
            "host_policies": {policy: {"numa_node": 1}},
            "rate_limit": {"resources": [{"name": resource, "count": 3}]},
        },
        "deploy": {"environment": parts["variables"], "load": {"scenario": parts["scenario"]}},
        "load": {"scenarios": {parts["scenario"]: {"rate": 20}}},
        "models": [{"name": parts["model"], "source": "m.onnx", "shapes": {parts["tensor"]: [1, 2]}}],
    }
    spec = dataclasses.replace(loaded(folder, SPECS["cache"]), spec=Spec.model_validate(data))
    places = Places(parts["spec"], *(f"./{parts['repository']}{end}" for end in ("", ".artifacts", ".cpu")), f"./{parts['password']}")
    files = texts(spec, places)
    for path, root in ((LEAD, places.repository), (CPU_FILE, places.cpu_repository)):
        read = compose.read(files[path])
        server = read["services"]["tritonserver"]
        assert server["volumes"][0]["source"] == root
        assert server.get("environment", {}) == {**({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if path == LEAD else {}), **parts["variables"]}
        assert server["command"] == [
            "tritonserver",
            "--model-repository=/models",
            "--disable-auto-complete-config",
            "--rate-limit=execution_count",
            f"--rate-limit-resource={resource}:3",
            f"--host-policy={policy},numa-node=1",
            f"--backend-config={backend},{backend}={parts['value']}",
        ]
        assert read["secrets"]["grafana-admin-password"]["file"] == places.password_file
        assert compose.variables_of(files[path]) == {*VARIABLES, "LOCUST_RUN_TIME"}
    assert compose.faults(files[LEAD]) == []
    run = without_gpu(compose.read(files[LEAD])["services"]["nvidia-gpu"])
    assert run.returncode == 3
    assert f"render --cpu {comment(shlex.quote(parts['spec']))}, then" in run.stderr
    (load,) = loads_of(files[SCENARIO])
    assert load == ModelLoad(parts["model"], shape_mix=(({parts["tensor"]: (1, 2)}, 1.0),))
